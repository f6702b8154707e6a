#include "gallop/data/gzip.h"

#include "unit/data/expect_error.h"
#include "unit/data/format_files.h"

namespace gallop::data {
namespace {

std::string unpacked(const std::string& file, int64_t max_bytes = 1 << 24) {
  const Bytes bytes = gunzip(file, "x.gz", max_bytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string varied(size_t bytes) {
  std::string text;
  uint32_t state = 1;
  for (size_t i = 0; i < bytes; ++i) {
    state = state * 1664525u + 1013904223u;
    text += static_cast<char>(state >> 28);
  }
  return text;
}

TEST(Gunzip, GivesTheContentBack) {
  for (const std::string& content : {std::string(), std::string("a"), varied(300'000)}) {
    EXPECT_EQ(unpacked(make_gzip(content)), content);
  }
}

TEST(Gunzip, ReadsConcatenatedMembersAndPadding) {
  const std::string large = varied(200'000);
  EXPECT_EQ(unpacked(make_gzip(large) + make_gzip("") + make_gzip("end") + std::string(100, '\0')),
            large + "end");
}

TEST(Gunzip, DoesNotBelieveTheStatedSize) {
  const std::string content = varied(100'000);
  std::string file = make_gzip(content);
  for (const char wrong : {'\0', '\xff'}) {
    file.replace(file.size() - 4, 4, 4, wrong);
    // The size is checked, so the file is rejected and never overrun.
    EXPECT_TRUE(contains(data_error([&] { unpacked(file); }), "x.gz: corrupt"));
  }
}

TEST(Gunzip, RefusesEveryTruncation) {
  const std::string file = make_gzip(varied(2'000));
  for (size_t bytes = 2; bytes < file.size(); ++bytes) {
    EXPECT_TRUE(contains(data_error([&] { unpacked(file.substr(0, bytes)); }), "x.gz: truncated"))
        << bytes;
  }
  EXPECT_TRUE(contains(data_error([] { unpacked(""); }), "not a gzip file"));
}

TEST(Gunzip, RefusesEveryChangedByteOfTheBody) {
  const std::string content = varied(500);
  const std::string file = make_gzip(content);
  for (size_t at = 10; at < file.size(); ++at) {
    std::string damaged = file;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    EXPECT_FALSE(data_error([&] { unpacked(damaged); }).empty()) << at;
  }
}

TEST(Gunzip, RefusesOtherDataBehindAndTooMuchOutput) {
  EXPECT_TRUE(
      contains(data_error([] { unpacked(make_gzip("a") + "garbage"); }), "other data follow"));
  const std::string bomb = make_gzip(std::string(1 << 22, 'a'));
  EXPECT_TRUE(contains(data_error([&] { unpacked(bomb, 1 << 20); }), "more than 1.0 MiB"));
  EXPECT_EQ(unpacked(bomb, 1 << 22).size(), 1u << 22);
}

}  // namespace
}  // namespace gallop::data
