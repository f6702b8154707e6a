#include "gallop/tensor/zip_archive.h"

#include <unistd.h>

#include <fstream>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/tensor/zip_bytes.h"
#include "unit/fixtures.h"
#include "unit/zip_writer.h"

namespace gallop {
namespace {

class ZipArchiveFile : public testing::Test {
 protected:
  ZipArchiveFile() { make_folders(folder_); }
  ~ZipArchiveFile() override { fs::remove_all(folder_); }

  ZipArchive open(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return ZipArchive(path_);
  }

  using Content = std::map<std::string, std::string>;
  static Content read(ZipArchive& zip) {
    Content content;
    for (const ZipEntry& entry : zip.entries()) content[entry.name] = zip.bytes(entry);
    return content;
  }

  // The error without the file's name; empty if there is none.
  std::string problem(const std::string& bytes) {
    try {
      ZipArchive zip = open(bytes);
      read(zip);
    } catch (const DataError& error) {
      const std::string text = error.what(), prefix = path_.string() + ": ";
      EXPECT_TRUE(text.starts_with(prefix)) << text;
      return text.substr(prefix.size());
    }
    return "";
  }

  void expect_problem(const std::string& bytes, const std::string& expected) {
    const std::string actual = problem(bytes);
    EXPECT_NE(actual.find(expected), std::string::npos)
        << "expected: " << expected << "\nactual: " << actual;
  }

  fs::path folder_ = fs::temp_directory_path() / fmt::format("gallop-zip-{}", getpid());
  fs::path path_ = folder_ / "a.zip";
};

const std::vector<ZipFile> kFiles = {
    {"net/one", "1111"}, {"net/data/none", ""}, {"net/two", std::string("\0\xff", 2)}};

std::vector<ZipWriter> writers() {
  return {ZipWriter{}, ZipWriter{.sizes_follow = false, .alignment = 1}, ZipWriter{.zip64 = true},
          ZipWriter{.sizes_follow = false, .zip64 = true, .alignment = 1}};
}

size_t directory_of(const std::string& zip, size_t index = 0) {
  size_t at = zip.find("PK\x01\x02");
  while (index-- > 0) at = zip.find("PK\x01\x02", at + 1);
  return at;
}

TEST_F(ZipArchiveFile, ReadsWhatZipBytesWrites) {
  std::vector<std::pair<std::string, std::string_view>> entries;
  Content expected;
  for (const ZipFile& file : kFiles) {
    entries.emplace_back(file.name, file.content);
    expected[file.name] = file.content;
  }
  ZipArchive zip = open(zip_bytes(entries));
  EXPECT_EQ(read(zip), expected);
  EXPECT_EQ(zip.names(), (std::vector<std::string>{"net/one", "net/data/none", "net/two"}));
  for (const ZipEntry& entry : zip.entries()) EXPECT_EQ(entry.offset % 64, 0);
  EXPECT_EQ(zip_bytes(entries), zip_bytes(entries));
  ZipArchive none = open(zip_bytes({}));
  EXPECT_TRUE(none.entries().empty());
}

TEST_F(ZipArchiveFile, ReadsEntriesInTheOrderOfTheFile) {
  for (const ZipWriter& writer : writers()) {
    ZipArchive zip = open(writer.write(kFiles));
    EXPECT_EQ(zip.names(), (std::vector<std::string>{"net/one", "net/data/none", "net/two"}));
    for (const ZipFile& file : kFiles) {
      const ZipEntry* entry = zip.find(file.name);
      ASSERT_NE(entry, nullptr);
      EXPECT_EQ(entry->offset % static_cast<int64_t>(writer.alignment), 0);
      EXPECT_EQ(zip.bytes(*entry), file.content);
    }
    EXPECT_EQ(zip.find("one"), nullptr);
  }
}

TEST_F(ZipArchiveFile, ReadsEmptyArchivesAndComments) {
  EXPECT_TRUE(open(ZipWriter{}.write({})).entries().empty());
  EXPECT_EQ(open(ZipWriter{}.write(kFiles, "a comment")).entries().size(), 3u);
  EXPECT_EQ(open(ZipWriter{}.write(kFiles, std::string(0xffff, 'c'))).entries().size(), 3u);
}

TEST_F(ZipArchiveFile, ReadsArchivesOfPythonAndTorch) {
  ZipArchive python(fixtures() / "archives/python.zip");
  EXPECT_EQ(read(python), (Content{{"a/one", "1111111111"}, {"a/empty", ""}, {"a/b/two ä", "22"}}));
  ZipArchive torch(fixtures() / "archives/net.pt2");
  Content content = read(torch);
  EXPECT_EQ(content.at("net/archive_format"), "pt2");
  EXPECT_EQ(content.at("net/data/weights/weight_0").size(), 48u);
  for (const ZipEntry& entry : torch.entries()) EXPECT_EQ(entry.offset % 64, 0) << entry.name;
}

TEST_F(ZipArchiveFile, SkipsFolders) {
  EXPECT_EQ(open(ZipWriter{}.write({{"net/", ""}, {"net/a", "1"}})).names(),
            std::vector<std::string>{"net/a"});
  expect_problem(ZipWriter{}.write({{"net/", "1"}}), "entry 'net/' is a folder with content");
}

TEST_F(ZipArchiveFile, NamesTheDamagedEntryWhenItIsRead) {
  std::string bytes = ZipWriter{}.write(kFiles);
  bytes[bytes.find("1111") + 1] = '3';
  ZipArchive zip = open(bytes);
  EXPECT_EQ(zip.bytes(*zip.find("net/two")).size(), 2u);
  try {
    zip.bytes(*zip.find("net/one"), "weight 'fc.weight'");
    FAIL() << "no error";
  } catch (const DataError& error) {
    EXPECT_EQ(std::string(error.what()),
              path_.string() + fmt::format(": weight 'fc.weight' is damaged (CRC-32 {:08x} instead "
                                           "of {:08x}); get the file again",
                                           libdeflate_crc32(0, "1311", 4),
                                           libdeflate_crc32(0, "1111", 4)));
  }
  EXPECT_THROW(zip.bytes(*zip.find("net/one")), DataError);
}

TEST_F(ZipArchiveFile, RejectsUnsafeAndRepeatedNames) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "entry '' has no name"},
      {"/net/a", "entry '/net/a' has a name that is not a relative path"},
      {"net/../a", "not a relative path"},
      {"./a", "not a relative path"},
      {"net//a", "not a relative path"},
      {"..", "not a relative path"},
      {"net\\a", "control character or backslash"},
      {std::string("a\0b", 3), "control character or backslash"},
      {"a\x1b[0m", "control character or backslash"},
      {std::string(5000, 'a'), "name of 5000 bytes"},
  };
  for (const auto& [name, expected] : cases) {
    expect_problem(ZipWriter{}.write({{name, "1"}}), expected);
  }
  expect_problem(ZipWriter{}.write({{"a", "1"}, {"b", "2"}, {"a", "3"}}), "has two entries 'a'");
}

TEST_F(ZipArchiveFile, RejectsCompressedAndEncryptedEntries) {
  std::string bytes = ZipWriter{}.write(kFiles);
  std::string changed = bytes;
  set_number(changed, directory_of(bytes) + 10, 8, 2);
  expect_problem(changed, "entry 'net/one' is compressed (method 8)");
  changed = bytes;
  set_number(changed, directory_of(bytes, 2) + 8, 0x809, 2);
  expect_problem(changed, "entry 'net/two' is encrypted");
}

TEST_F(ZipArchiveFile, RejectsOverlapsAndAbsurdSizes) {
  const std::string bytes = ZipWriter{}.write(kFiles);
  std::string changed = bytes;
  // An entry that holds the next one.
  set_number(changed, directory_of(bytes) + 20, 80, 4);
  set_number(changed, directory_of(bytes) + 24, 80, 4);
  expect_problem(changed, "entries 'net/one' and 'net/data/none' overlap");
  changed = bytes;
  set_number(changed, directory_of(bytes) + 24, 80, 4);
  expect_problem(changed, "its sizes 4 and 80 differ");
  changed = bytes;
  set_number(changed, directory_of(bytes) + 20, 0xfffffffe, 4);
  set_number(changed, directory_of(bytes) + 24, 0xfffffffe, 4);
  expect_problem(changed, "entry 'net/one' of 4294967294 bytes goes beyond");
  changed = bytes;
  set_number(changed, directory_of(bytes) + 42, 0x7fffffff, 4);
  expect_problem(changed, "entry 'net/one' is not within the file");
  changed = bytes;
  set_number(changed, directory_of(bytes, 1) + 42, 0, 4);
  expect_problem(changed, "contradicts the archive's directory");

  const std::string large = ZipWriter{.zip64 = true}.write(kFiles);
  const size_t field = directory_of(large) + 46 + kFiles[0].name.size() + 4;
  for (const uint64_t size : {~uint64_t{0}, ~uint64_t{0} >> 1, uint64_t{1} << 62}) {
    changed = large;
    set_number(changed, field, size, 8);
    set_number(changed, field + 8, size, 8);
    EXPECT_NE(problem(changed), "") << size;
    changed = large;
    set_number(changed, field + 16, size, 8);
    expect_problem(changed, "is not within the file");
  }
  changed = large;
  set_number(changed, field - 2, 16, 2);
  expect_problem(changed, "has no valid zip64 field");
}

TEST_F(ZipArchiveFile, RejectsInconsistentEndRecords) {
  const std::string bytes = ZipWriter{}.write(kFiles);
  const size_t end = bytes.size() - 22;
  const auto with = [&bytes](size_t at, uint64_t value, size_t count) {
    std::string changed = bytes;
    set_number(changed, at, value, count);
    return changed;
  };
  expect_problem("", "not a zip archive");
  expect_problem(std::string(100, 'P'), "its end record is missing");
  expect_problem(with(end + 4, 1, 2), "several disks");
  expect_problem(with(end + 8, 2, 2), "several disks");
  expect_problem(with(end + 12, 7, 4), "its directory does not end where its end record begins");
  expect_problem(with(end + 8, 0x20002, 4), "its directory has more bytes than entries");
  expect_problem(with(end + 8, 0x40004, 4), "its directory ends within entry 3 of 4");
  expect_problem("x" + bytes, "its directory does not end where its end record begins");
  expect_problem(bytes + "x", "its end record is missing");

  std::string large = ZipWriter{.zip64 = true}.write(kFiles);
  set_number(large, large.size() - 22 + 12, 5, 4);
  expect_problem(large, "its two end records contradict each other");
}

// Any damage is either found or without effect.
TEST_F(ZipArchiveFile, FindsEveryFlippedByte) {
  for (const ZipWriter& writer : writers()) {
    const std::string bytes = writer.write(kFiles);
    ZipArchive original = open(bytes);
    const Content content = read(original);
    for (size_t i = 0; i < bytes.size(); ++i) {
      for (const int flip : {0x01, 0x80, 0xff}) {
        std::string changed = bytes;
        changed[i] = static_cast<char>(changed[i] ^ flip);
        try {
          ZipArchive zip = open(changed);
          EXPECT_EQ(read(zip), content) << "byte " << i;
        } catch (const DataError&) {
        }
      }
    }
  }
}

TEST_F(ZipArchiveFile, RejectsEveryTruncation) {
  for (const ZipWriter& writer : writers()) {
    const std::string bytes = writer.write(kFiles);
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_NE(problem(bytes.substr(0, size)), "") << size;
    }
  }
}

}  // namespace
}  // namespace gallop
