#include "gallop/data/idx.h"

#include <cstring>

#include "unit/data/expect_error.h"
#include "unit/data/format_files.h"

namespace gallop::data {
namespace {

Bytes bytes_of(const std::string& text) {
  Bytes bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

std::string parse_error(const std::string& file, int dimensions) {
  return data_error([&] { parse_idx(bytes_of(file), dimensions, "x"); });
}

TEST(Idx, ReadsPlainAndGzipWhateverTheName) {
  const TestFolder folder;
  const std::string file = make_idx({2, 1, 3}, "abcdef");
  for (const std::string& content : {file, make_gzip(file)}) {
    const IdxArray array = read_idx(folder.add("images", content), 3);
    EXPECT_EQ(array.sizes, (std::vector<int64_t>{2, 1, 3}));
    EXPECT_EQ(std::memcmp(array.values.data(), "abcdef", 6), 0);
  }
}

TEST(Idx, RefusesEveryTruncation) {
  const std::string file = make_idx({2, 1, 3}, "abcdef");
  for (size_t bytes = 0; bytes < file.size(); ++bytes) {
    EXPECT_TRUE(contains(parse_error(file.substr(0, bytes), 3), "x: truncated")) << bytes;
  }
  EXPECT_TRUE(contains(parse_error(file + "g", 3), "x: too long"));
}

TEST(Idx, RefusesOtherMagicNumbers) {
  std::string file = make_idx({2}, "ab");
  EXPECT_TRUE(contains(parse_error(file, 3), "truncated"));
  EXPECT_TRUE(contains(parse_error(make_idx({2, 1}, "ab"), 1), "in 2 dimensions"));
  file[2] = '\x0d';
  EXPECT_TRUE(contains(parse_error(file, 1), "type 0x0d"));
  file[0] = '\x1f';
  EXPECT_TRUE(contains(parse_error(file, 1), "not an IDX file"));
}

TEST(Idx, RefusesSizesWhoseProductOverflows) {
  const std::string message = parse_error(make_idx({0x80000000, 0x80000000, 0x80000000}, "ab"), 3);
  EXPECT_TRUE(contains(message, "truncated: the header says 2147483648 x 2147483648 x 2147483648"));
  // 2^32 * 2^32 wraps around to 0 in 64 bits.
  EXPECT_TRUE(contains(parse_error(make_idx({0xffffffff, 0xffffffff, 2}, ""), 3), "truncated"));
}

TEST(Idx, NamesTheDamagedFile) {
  const TestFolder folder;
  const fs::path path = folder.add("labels.gz", make_gzip(make_idx({5}, "abcde")).substr(0, 20));
  EXPECT_TRUE(contains(data_error([&] { read_idx(path, 1); }), path.string() + ": truncated"));
  EXPECT_TRUE(contains(data_error([&] { read_idx(folder.path() / "none", 1); }), "cannot open"));
}

}  // namespace
}  // namespace gallop::data
