// Readers return the same data with and without sharing.
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/data/readers.h"
#include "gallop/data/shared_data.h"
#include "unit/data/format_files.h"

namespace gallop::data {
namespace {

class SharedReaders : public testing::Test {
 protected:
  template <typename Reader>
  auto read(const Reader& reader, SharedData* data) const {
    return reader({.path = folder.name(), .skip_broken = false, .threads = 2, .shared = data});
  }
  // Pixels and labels of a set in memory.
  static std::string content(const ImageSet& images) {
    std::string all;
    const ImageShape shape = images.stored_shape().value();
    for (int64_t i = 0; i < images.size(); ++i) {
      const auto* pixels = reinterpret_cast<const char*>(images.stored_pixels(i));
      all.append(pixels, static_cast<size_t>(shape.height * shape.width * shape.channels));
      all += std::to_string(images.label(i));
    }
    return all;
  }
  static std::string content(const TextSet& text) {
    std::string all;
    for (const int32_t token : text.tokens) all += std::to_string(token) + " ";
    for (const std::string& word : text.vocabulary) all += word;
    return all;
  }
  template <typename Reader>
  void expect_alike(const Reader& reader, size_t files) {
    const auto alone = read(reader, nullptr);
    for (int process = 0; process < 2; ++process) {
      SharedData data(store.path());
      const auto parts = read(reader, &data);
      EXPECT_EQ(data.trouble(), "");
      EXPECT_EQ(content(*parts->train), content(*alone->train));
      EXPECT_EQ(content(*parts->test), content(*alone->test));
      expect_identity(*parts->train);
    }
    EXPECT_EQ(stored(), files);
  }
  static void expect_identity(const ImageSet& images) { EXPECT_FALSE(images.identity().empty()); }
  static void expect_identity(const TextSet&) {}
  size_t stored() const {
    size_t count = 0;
    for (const auto& entry : fs::directory_iterator(store.path())) {
      count += entry.path().filename().string().size() == 32 ? 1 : 0;
    }
    return count;
  }

  const TestFolder folder, store;
};

TEST_F(SharedReaders, Mnist) {
  for (const std::string part : {"train", "t10k"}) {
    folder.add(part + "-images-idx3-ubyte.gz",
               make_gzip(make_idx({3, 2, 2}, "abcdefghi" + part.substr(0, 3))));
    folder.add(part + "-labels-idx1-ubyte", make_idx({3}, std::string("\0\x09\x01", 3)));
  }
  expect_alike([](const ReadContext& context) { return read_mnist({}, context); }, 4);
}

TEST_F(SharedReaders, Cifar) {
  folder.add("train.bin", make_cifar_record({19, 99}, make_picture(32, 32, 3, 1)) +
                              make_cifar_record({3, 7}, make_picture(32, 32, 3, 2)));
  folder.add("test.bin", make_cifar_record({0, 1}, make_picture(32, 32, 3, 3)));
  for (const auto& [name, count] : {std::pair{"fine", 100}, std::pair{"coarse", 20}}) {
    std::string names;
    for (int i = 0; i < count; ++i) names += name + std::to_string(i) + "\n";
    folder.add(std::string(name) + "_label_names.txt", names);
  }
  expect_alike([](const ReadContext& context) { return read_cifar100({}, context); }, 2);
  // Other labels are different data.
  expect_alike(
      [](const ReadContext& context) { return read_cifar100({.labels = "coarse"}, context); }, 4);
}

TEST_F(SharedReaders, Text) {
  folder.add("train.txt", "bä\n漢a😀b");
  folder.add("test.txt", "aab");
  expect_alike([](const ReadContext& context) { return read_text({}, context); }, 1);
  expect_alike([](const ReadContext& context) { return read_text({.unit = "bytes"}, context); }, 2);
}

TEST_F(SharedReaders, AChangedFileIsReadAnew) {
  folder.add("train.txt", "abc");
  SharedData data(store.path());
  const auto read_train = [&] {
    return content(*read([](const ReadContext& c) { return read_text({}, c); }, &data)->train);
  };
  EXPECT_EQ(read_train(), "0 1 2 abc");
  folder.add("train.txt", "abcd");
  EXPECT_EQ(read_train(), "0 1 2 3 abcd");
}

TEST_F(SharedReaders, ImagesAreKnownByTheirFiles) {
  const auto identity = [&] {
    return read([](const ReadContext& context) { return read_folder({}, context); }, nullptr)
        ->train->identity();
  };
  const auto stamp = [&] {
    return read([](const ReadContext& context) { return read_folder({}, context); }, nullptr)
        ->train->stamp(1);
  };
  folder.add("cat/1.jpg", "one");
  folder.add("cat/2.jpg", "two");
  const std::string before = identity();
  const uint64_t stamp_before = stamp();
  EXPECT_EQ(identity(), before);
  EXPECT_EQ(stamp(), stamp_before);
  folder.add("cat/2.jpg", "longer");
  EXPECT_EQ(identity(), before);
  EXPECT_NE(stamp(), stamp_before);
  folder.add("cat/0.jpg", "none");
  EXPECT_NE(identity(), before);
}

TEST_F(SharedReaders, ShardsAreKnownByTheirState) {
  const auto identity = [&] {
    return read([](const ReadContext& context) { return read_tar({}, context); }, nullptr)
        ->train->identity();
  };
  const auto shard = [](const std::string& image) {
    return make_tar({{"1.jpg", image}, {"1.cls", "0"}});
  };
  folder.add("train-0.tar", shard("one"));
  const std::string before = identity();
  EXPECT_EQ(identity(), before);
  EXPECT_FALSE(before.empty());
  folder.add("train-0.tar", shard("longer" + std::string(1000, ' ')));
  EXPECT_NE(identity(), before);
}

}  // namespace
}  // namespace gallop::data
