#include "gallop/track/content.h"

#include <gtest/gtest.h>

#include "gallop/base/child_process.h"
#include "gallop/base/hash.h"
#include "gallop/base/temporary_folder.h"
#include "unit/base/error_of.h"

namespace gallop::track {
namespace {

using Names = std::vector<std::string>;

class Contents : public testing::Test {
 protected:
  fs::path data() const { return folder_.path() / "data"; }
  fs::path cache() const { return folder_.path() / "cache"; }
  void write(const std::string& name, const std::string& text) const {
    make_folders((data() / name).parent_path());
    write_file_atomically(data() / name, text);
  }
  Content read(const ReadLimits& limits = {}) const {
    return ContentReader(cache()).read(data(), limits);
  }

  TemporaryFolder folder_{fs::temp_directory_path(), "gallop-content-"};
};

TEST_F(Contents, ListTheFilesOfAFolderByName) {
  write("dog/1.jpg", "abc");
  write("cat/2.jpg", "");
  write("cat/10.jpg", "abcd");
  const Content content = read();
  ASSERT_EQ(content.files.size(), 3u);
  EXPECT_EQ(content.files[0].name, "cat/10.jpg");
  EXPECT_EQ(content.files[1].name, "cat/2.jpg");
  EXPECT_EQ(content.files[2].name, "dog/1.jpg");
  EXPECT_EQ(content.files[0].checksum, xxh3_128("abcd"));
  EXPECT_EQ(content.bytes(), 7);
  EXPECT_TRUE(content.is_read());
}

TEST_F(Contents, ListASingleFileByItsName) {
  write("train.bin", "abc");
  const Content content = ContentReader(cache()).read(data() / "train.bin");
  ASSERT_EQ(content.files.size(), 1u);
  EXPECT_EQ(content.files[0].name, "train.bin");
}

// The listing is checked by xxhsum itself.
TEST_F(Contents, AreVerifiedByXxhsum) {
  write("cat/1 and 2.jpg", std::string(9'000'000, 'x'));
  write("dog/3.jpg", "abc");
  write_file_atomically(folder_.path() / "listing.txt", read().listing());
  const auto check = [&] {
    return run_to_end({.program = "sh",
                       .arguments = {"-c", "cd \"$1\" && xxh128sum --check ../listing.txt", "sh",
                                     data().string()},
                       .keep_output = true});
  };
  const ChildRun found = check();
  if (found.end.exit_code == 127) GTEST_SKIP() << "no xxh128sum; Debian's package xxhash has it";
  EXPECT_TRUE(found.is_good()) << found.output;
  write("dog/3.jpg", "abd");
  EXPECT_FALSE(check().is_good());
}

TEST_F(Contents, CacheChecksumsOfUnchangedFiles) {
  write("1.jpg", "abc");
  write("2.jpg", "abc");
  const Content first = read();
  // A manipulated cache shows which files are looked up.
  for (const auto& entry : fs::directory_iterator(cache())) {
    std::string text = read_file(entry.path());
    for (size_t at; (at = text.find(xxh3_128("abc"))) != std::string::npos;) {
      text.replace(at, 32, xxh3_128("wrong"));
    }
    write_file_atomically(entry.path(), text);
  }
  write("2.jpg", "abd");
  const Content second = read();
  EXPECT_EQ(second.files[0].checksum, xxh3_128("wrong"));
  EXPECT_EQ(second.files[1].checksum, xxh3_128("abd"));
}

TEST_F(Contents, WorkWithoutTheCache) {
  write("1.jpg", "abc");
  const std::string checksum = read().checksum();
  for (const auto& entry : fs::directory_iterator(cache())) {
    write_file_atomically(entry.path(), "no\tcache\n\t\t\n");
  }
  EXPECT_EQ(read().checksum(), checksum);
  fs::remove_all(cache());
  write_file_atomically(cache(), "a file where the folder should be");
  EXPECT_EQ(read().checksum(), checksum);
}

TEST_F(Contents, RecordOnlySizesBeyondTheLimit) {
  write("1.jpg", "abcdef");
  const Content content = read({.bytes = 5});
  EXPECT_FALSE(content.is_read());
  EXPECT_EQ(content.bytes(), 6);
  EXPECT_TRUE(read({.bytes = 6}).is_read());
  // Cached files are not read.
  EXPECT_TRUE(read({.bytes = 0}).is_read());
}

TEST_F(Contents, StopOnRequest) {
  write("1.jpg", "abc");
  EXPECT_FALSE(read({.stop = [] { return true; }}).is_read());
  EXPECT_TRUE(read().is_read());
}

TEST_F(Contents, DifferByName) {
  write("1.jpg", "abc");
  write("2.jpg", "abc");
  const Content before = parse_listing(read().listing(), "listing");
  write("2.jpg", "abd");
  write("3.jpg", "");
  fs::remove(data() / "1.jpg");
  const ContentDifference found = difference(before, read());
  EXPECT_EQ(found.changed, Names{"2.jpg"});
  EXPECT_EQ(found.missing, Names{"1.jpg"});
  EXPECT_EQ(found.added, Names{"3.jpg"});
  EXPECT_TRUE(difference(before, before).is_empty());
}

TEST_F(Contents, EscapeNamesWithLineEndsAndBackslashes) {
  const Names names{"a\nb", "a\rb", "a\tb", "a\\b", "a\\nb"};
  for (const std::string& name : names) write(name, name);
  const Content content = read();
  EXPECT_NE(content.listing().find("\n\\" + xxh3_128("a\\b") + "  a\\\\b\n"), std::string::npos);
  EXPECT_NE(content.listing().find("  a\tb\n"), std::string::npos);
  EXPECT_NE(content.listing().find("  a\rb\n"), std::string::npos);
  const Content parsed = parse_listing(content.listing(), "listing");
  ASSERT_EQ(parsed.files.size(), names.size());
  EXPECT_TRUE(difference(parsed, content).is_empty());
  // Cached, although one is changed.
  write("a\nb", "changed");
  EXPECT_EQ(difference(parsed, read()).changed, Names{"a\nb"});
  EXPECT_TRUE(read({.bytes = 0}).is_read());
}

TEST_F(Contents, ReadListingsWithoutEscapes) {
  const std::string checksum = xxh3_128("abc");
  const Content content = parse_listing(checksum + "  cat/1.jpg\n", "listing");
  ASSERT_EQ(content.files.size(), 1U);
  EXPECT_EQ(content.files[0].name, "cat/1.jpg");
  EXPECT_EQ(content.files[0].checksum, checksum);
}

TEST_F(Contents, ReadOnlyTheNamedFilesOfAFolder) {
  write("1.jpg", "abc");
  write("cat/2.jpg", "abcd");
  write("other.txt", "x");
  const NamedFiles named{.folder = data().string(),
                         .names = {"cat/2.jpg", "1.jpg", "none.jpg", "1.jpg"}};
  const Content content = ContentReader(cache()).read(named);
  ASSERT_EQ(content.files.size(), 2U);
  EXPECT_EQ(content.files[0].name, "1.jpg");
  EXPECT_EQ(content.files[1].checksum, xxh3_128("abcd"));
}

TEST_F(Contents, ReportUnreadableFiles) {
  EXPECT_NE(error_of([&] { read(); }).find("data: cannot be read"), std::string::npos);
  EXPECT_EQ(error_of([] { parse_listing("abc", "x.txt"); }), "x.txt: not a listing of files: abc");
}

}  // namespace
}  // namespace gallop::track
