// Real files: the CIFAR-10 pictures as a folder and as an archive.
#include <cstdlib>

#include <gtest/gtest.h>

#include "gallop/data/readers.h"
#include "gallop/data/report.h"
#include "gallop/data/shard.h"
#include "unit/data/format_files.h"

namespace gallop::data {
namespace {

const char* test_data() { return std::getenv("GALLOP_TEST_DATA"); }

// Writes some classes of the archive as files, to avoid writing most of the 60,000.
void unpack(const fs::path& archive, const std::vector<std::string>& classes,
            const TestFolder& folder) {
  const FileDescriptor file = open_for_reading(archive);
  for (const ShardImage& image : read_shard(file, archive, false).images) {
    const fs::path name(image.name);
    const std::string class_name = name.parent_path().filename().string();
    if (std::find(classes.begin(), classes.end(), class_name) == classes.end()) continue;
    if (name.stem().string().back() != '0') continue;
    std::string content(static_cast<size_t>(image.size), '\0');
    ASSERT_TRUE(read_exactly(file, archive, image.offset, content.data(), image.size));
    folder.add(image.name, content);
  }
}

TEST(RealData, GivesTheSamePicturesFromFolderAndArchive) {
  if (test_data() == nullptr) GTEST_SKIP() << "GALLOP_TEST_DATA is not set";
  const fs::path archive = fs::path(test_data()) / "cifar10-jpeg.tar";
  if (!fs::exists(archive)) GTEST_SKIP() << archive << " is not there";
  const auto packed = read_tar({}, {.path = archive.string(), .threads = 2});
  ASSERT_EQ(packed->train->size(), 50'000);
  ASSERT_EQ(packed->test->size(), 10'000);
  ASSERT_EQ(packed->train->class_names().size(), 10u);

  const TestFolder folder;
  ASSERT_NO_FATAL_FAILURE(unpack(archive, {"airplane", "truck"}, folder));
  const auto unpacked = read_folder({}, {.path = folder.name(), .threads = 2});
  const ImageSet& files = *unpacked->test;
  ASSERT_EQ(files.size(), 200);
  std::map<std::string, int64_t> places;
  for (int64_t i = 0; i < packed->test->size(); ++i) {
    const std::string name = packed->test->describe(i);
    places[name.substr(name.find(": ") + 2)] = i;
  }
  Image from_file, from_archive;
  for (int64_t i = 0; i < files.size(); ++i) {
    const int64_t at = places.at(files.describe(i).substr(folder.name().size() + 1));
    files.read(i, {}, from_file);
    packed->test->read(at, {}, from_archive);
    EXPECT_EQ(from_file.height, 32);
    EXPECT_EQ(from_file.pixels, from_archive.pixels) << files.describe(i);
    EXPECT_EQ(files.class_names()[static_cast<size_t>(files.label(i))],
              packed->test->class_names()[static_cast<size_t>(packed->test->label(at))]);
  }
}

TEST(RealData, ReadsATextOfAMegabyte) {
  if (test_data() == nullptr) GTEST_SKIP() << "GALLOP_TEST_DATA is not set";
  const fs::path path = fs::path(test_data()) / "tinyshakespeare.txt";
  if (!fs::exists(path)) GTEST_SKIP() << path << " is not there";
  const auto parts = read_text({}, {.path = path.string()});
  EXPECT_EQ(parts->train->tokens.size(), 1'115'394u);
  EXPECT_EQ(parts->train->vocabulary.size(), 65u);
}

}  // namespace
}  // namespace gallop::data
