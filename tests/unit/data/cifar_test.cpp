#include "gallop/data/readers.h"
#include "unit/data/expect_error.h"
#include "unit/data/format_files.h"

namespace gallop::data {
namespace {

std::string record(const std::vector<uint8_t>& labels, int seed) {
  return make_cifar_record(labels, make_picture(32, 32, 3, seed));
}

std::string names(const std::string& stem, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += stem + std::to_string(i) + "\n";
  return text + "\n";
}

void add_cifar10(const TestFolder& folder, const std::string& at = "") {
  for (uint8_t i = 1; i <= 5; ++i) {
    folder.add(at + "data_batch_" + std::to_string(i) + ".bin", record({i}, i) + record({0}, 9));
  }
  folder.add(at + "test_batch.bin", record({9}, 6));
  folder.add(at + "batches.meta.txt", names("class", 10));
}

void add_cifar100(const TestFolder& folder) {
  folder.add("train.bin", record({19, 99}, 1) + record({3, 7}, 2));
  folder.add("test.bin", record({0, 1}, 3));
  folder.add("fine_label_names.txt", names("fine", 100));
  folder.add("coarse_label_names.txt", names("coarse", 20));
}

ReadContext context(const TestFolder& folder) {
  return {.path = folder.name(), .skip_broken = false, .threads = 2};
}

TEST(Cifar10, ReadsBatchesInOrderFromTheFolderOrTheArchivesFolder) {
  for (const std::string at : {"", "cifar-10-batches-bin/"}) {
    const TestFolder folder;
    add_cifar10(folder, at);
    const auto parts = read_cifar10({}, context(folder));
    ASSERT_EQ(parts->train->size(), 10);
    EXPECT_EQ(parts->train->label(4), 3);
    EXPECT_EQ(parts->train->label(5), 0);
    EXPECT_EQ(parts->test->label(0), 9);
    EXPECT_EQ(parts->test->class_names()[9], "class9");
    EXPECT_EQ(parts->train->stored_shape(), (ImageShape{32, 32, 3}));
    Image image;
    parts->train->read(4, {}, image);
    EXPECT_EQ(image.pixels, make_picture(32, 32, 3, 3).pixels);
    ASSERT_EQ(parts->notes.size(), 1u);
    EXPECT_TRUE(contains(parts->notes[0], "10 training images, where the original has 50,000"));
  }
}

TEST(Cifar100, ReadsFineAndCoarseLabels) {
  const TestFolder folder;
  add_cifar100(folder);
  const auto fine = read_cifar100({}, context(folder));
  EXPECT_EQ(fine->train->label(0), 99);
  EXPECT_EQ(fine->train->class_names()[99], "fine99");
  const auto coarse = read_cifar100({.labels = "coarse"}, context(folder));
  EXPECT_EQ(coarse->train->label(0), 19);
  EXPECT_EQ(coarse->train->class_names().size(), 20u);
}

TEST(Cifar, RefusesTruncatedFiles) {
  const TestFolder folder;
  add_cifar10(folder);
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{3072}, size_t{3074}}) {
    const fs::path path = folder.add("data_batch_3.bin", (record({1}, 1) + "xx").substr(0, bytes));
    EXPECT_TRUE(contains(data_error([&] { read_cifar10({}, context(folder)); }),
                         path.string() + ": " + std::to_string(bytes) + " bytes"));
  }
}

TEST(Cifar, RefusesLabelsOutOfRange) {
  const TestFolder folder;
  add_cifar10(folder);
  folder.add("data_batch_2.bin", record({1}, 1) + record({10}, 1));
  EXPECT_TRUE(contains(data_error([&] { read_cifar10({}, context(folder)); }),
                       "data_batch_2.bin: item 1 has label 10, but there are 10 classes (0 to 9)"));
  const auto parts = read_cifar10({}, {.path = folder.name(), .skip_broken = true});
  ASSERT_EQ(parts->skipped.size(), 1u);
  EXPECT_EQ(parts->skipped[0].count, 1);
  EXPECT_EQ(parts->skipped[0].reason, "invalid label");
  for (int64_t i = 0; i < parts->train->size(); ++i) {
    EXPECT_LT(parts->train->label(i), 10);
  }
  const TestFolder other;
  add_cifar100(other);
  other.add("test.bin", record({20, 0}, 1));
  EXPECT_NO_THROW(read_cifar100({}, context(other)));
  EXPECT_TRUE(contains(data_error([&] { read_cifar100({.labels = "coarse"}, context(other)); }),
                       "item 0 has label 20, but there are 20 classes"));
}

TEST(Cifar, SaysWhatIsMissing) {
  const TestFolder folder;
  add_cifar10(folder);
  fs::remove(folder.path() / "data_batch_4.bin");
  const std::string message = data_error([&] { read_cifar10({}, context(folder)); });
  EXPECT_TRUE(contains(message, "has no data_batch_4.bin"));
  EXPECT_TRUE(contains(message, "cifar-10-binary.tar.gz | tar -xz -C"));
  folder.add("data_batch_4.bin", record({4}, 4));
  folder.add("batches.meta.txt", names("class", 9));
  EXPECT_TRUE(contains(data_error([&] { read_cifar10({}, context(folder)); }),
                       "9 class names, where 10 are expected"));
}

}  // namespace
}  // namespace gallop::data
