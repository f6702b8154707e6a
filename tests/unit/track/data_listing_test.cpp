#include "gallop/track/data_listing.h"

#include <gtest/gtest.h>

#include "gallop/base/temporary_folder.h"
#include "unit/base/error_of.h"

namespace gallop::track {
namespace {

class DataListing : public testing::Test {
 protected:
  fs::path at(const std::string& name) const { return folder_.path() / name; }
  void write(const std::string& name, const std::string& text) const {
    make_folders(at(name).parent_path());
    write_file_atomically(at(name), text);
  }
  Content list(size_t most = kMostListed) const {
    return list_data({.paths = {at("data/train").string(), at("data/test").string()}}, most);
  }

  TemporaryFolder folder_{fs::temp_directory_path(), "gallop-listing-"};
};

TEST_F(DataListing, ReportsAddedRemovedRenamedAndResizedFiles) {
  write("data/train/cat/1.png", "abc");
  write("data/train/cat/2.png", "abcd");
  write("data/train/dog/1.png", "abc");
  write("data/test/cat/1.png", "abc");
  const Content before = list();
  ASSERT_EQ(before.files.size(), 4U);
  EXPECT_EQ(before.files[0].name, "test/cat/1.png");
  EXPECT_EQ(describe(difference(before, list())), "");
  // Hidden files are ignored, and a data set may be moved.
  write("data/train/.cache/1", "");
  fs::rename(at("data"), at("moved"));
  EXPECT_EQ(describe(difference(before, list_data({.paths = {at("moved/train").string() + "/",
                                                             at("moved/test").string()}}))),
            "");
  fs::rename(at("moved"), at("data"));
  write("data/train/cat/2.png", "abcde");
  EXPECT_EQ(describe(difference(before, list())), "1 file changed (train/cat/2.png)");
  fs::rename(at("data/train/dog/1.png"), at("data/train/dog/3.png"));
  EXPECT_EQ(describe(difference(before, list())),
            "1 file added (train/dog/3.png), 1 removed (train/dog/1.png), 1 changed "
            "(train/cat/2.png)");
  for (const char* name : {"a", "b", "c", "d"}) write(std::string("data/test/cat/") + name, "");
  EXPECT_EQ(describe(difference(before, list())),
            "5 files added (test/cat/a, test/cat/b, test/cat/c, ...), 1 removed (train/dog/1.png), "
            "1 changed (train/cat/2.png)");
}

TEST_F(DataListing, HasTheFilesThatATableNames) {
  write("data/faces.csv", "abc");
  write("data/cat/1.png", "abc");
  write("data/cat/other.png", "abc");
  const auto list_named = [&] {
    return list_data({.paths = {at("data/faces.csv").string()},
                      .named = {{.folder = at("data").string(),
                                 .names = {"cat/1.png", "cat/none.png", "cat/1.png"}}}});
  };
  const Content before = list_named();
  ASSERT_EQ(before.files.size(), 2U);
  EXPECT_EQ(before.files[0].name, "cat/1.png");
  EXPECT_EQ(before.files[1].name, "faces.csv");
  write("data/cat/1.png", "abcd");
  EXPECT_EQ(describe(difference(before, list_named())), "1 file changed (cat/1.png)");
  fs::remove(at("data/cat/1.png"));
  EXPECT_EQ(describe(difference(before, list_named())), "1 file removed (cat/1.png)");
}

TEST_F(DataListing, OfAnOlderVersionHasNoNamedFiles) {
  write("faces.csv", "abc");
  write("1.png", "abc");
  const DataPaths data{.paths = {at("faces.csv").string()},
                       .named = {{.folder = folder_.path().string(), .names = {"1.png"}}}};
  EXPECT_EQ(listed_paths(list_data(data), data).named.size(), 1U);
  EXPECT_EQ(listed_paths(list_data(data, 1), data).named.size(), 1U);
  const Content older = list_data({.paths = data.paths});
  EXPECT_TRUE(difference(older, list_data(listed_paths(older, data))).is_empty());
}

TEST_F(DataListing, HasAnEntryPerFolderForManyFiles) {
  write("data/train/cat/1.png", "abc");
  write("data/train/cat/2.png", "abcd");
  write("data/train/dog/1.png", "abc");
  write("data/test/cat/1.png", "abc");
  const Content before = list(3);
  ASSERT_EQ(before.files.size(), 3U);
  EXPECT_EQ(before.files[1].name, "train/cat/");
  EXPECT_EQ(before.files[1].bytes, 7);
  fs::rename(at("data/train/cat/1.png"), at("data/train/cat/3.png"));
  EXPECT_EQ(describe(difference(before, list(3))), "1 file changed (train/cat/)");
}

TEST_F(DataListing, RoundTripsAndDetectsDamage) {
  write("data/train/cat/1.png", "abc");
  write("data/test/with blanks.png", "");
  const Content listing = list();
  EXPECT_FALSE(read_data_listing(folder_.path()));
  write_data_listing(folder_.path(), listing);
  const auto again = read_data_listing(folder_.path());
  ASSERT_TRUE(again);
  EXPECT_EQ(describe(difference(listing, *again)), "");
  EXPECT_EQ(again->bytes(), 3);
  const std::string text = read_file(at("data-files.txt"));
  for (size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] ^= 1;
    write("data-files.txt", damaged);
    EXPECT_NE(error_of([&] { read_data_listing(folder_.path()); }).find("damaged"),
              std::string::npos)
        << i;
  }
  write("data-files.txt", "");
  EXPECT_NE(error_of([&] { read_data_listing(folder_.path()); }).find("damaged"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              list_data({.paths = {at("nowhere").string()}});
            }).find("nowhere: cannot be read"),
            std::string::npos);
}

}  // namespace
}  // namespace gallop::track
