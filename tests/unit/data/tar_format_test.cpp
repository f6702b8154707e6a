#include "gallop/data/tar_format.h"

#include <fmt/format.h>

#include "unit/data/expect_error.h"
#include "unit/data/format_files.h"

namespace gallop::data {
namespace {

std::vector<TarMember> members_of(const std::string& archive) {
  const TestFolder folder;
  const fs::path path = folder.add("x.tar", archive);
  const FileDescriptor file = open_for_reading(path);
  TarReader reader(file, path);
  std::vector<TarMember> members;
  while (auto member = reader.next()) members.push_back(*member);
  return members;
}

std::string error_of(const std::string& archive) {
  return data_error([&] { members_of(archive); });
}

// Recomputes the checksum of a modified header.
std::string with_checksum(std::string header) {
  header.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  char digits[8];
  std::snprintf(digits, sizeof digits, "%06o", sum);
  return header.replace(148, 8, std::string(digits, 7) + " ");
}

TEST(TarFormat, ListsMembersWithTheirPlaces) {
  const std::string archive =
      make_tar_member("./a.jpg", "12345") + make_tar_member("folder/", "", '5') +
      make_tar_member("folder/b", std::string(513, 'x')) + make_tar_link("link", "a.jpg") +
      make_tar_member("empty", "") + make_tar_member("c", "z", '\0') + make_tar_end();
  const auto members = members_of(archive);
  ASSERT_EQ(members.size(), 6u);
  EXPECT_EQ(members[0].name, "a.jpg");
  EXPECT_EQ(members[0].size, 5);
  EXPECT_EQ(archive.substr(static_cast<size_t>(members[0].offset), 5), "12345");
  EXPECT_EQ(members[1].kind, TarKind::kFolder);
  EXPECT_EQ(members[2].name, "folder/b");
  EXPECT_EQ(members[2].size, 513);
  EXPECT_EQ(members[3].kind, TarKind::kSymbolicLink);
  EXPECT_EQ(members[3].link, "a.jpg");
  EXPECT_EQ(members[4].size, 0);
  EXPECT_EQ(members[5].kind, TarKind::kFile);
  EXPECT_EQ(archive[static_cast<size_t>(members[5].offset)], 'z');
}

TEST(TarFormat, IgnoresTheSizeOfHardLinks) {
  const auto members = members_of(make_tar_header("link", 100'000, '1') + make_tar({{"a", "1"}}));
  ASSERT_EQ(members.size(), 2u);
  EXPECT_EQ(members[0].kind, TarKind::kHardLink);
  EXPECT_EQ(members[0].size, 0);
  EXPECT_EQ(members[1].name, "a");
}

TEST(TarFormat, ReadsLongLinks) {
  const std::string target = fmt::format("{:d>150}/1.jpg", "");
  const std::string gnu = make_tar_member("././@LongLink", target + '\0', 'K') +
                          make_tar_link("a", target.substr(0, 100)) + make_tar_link("b", "c");
  const std::string pax = make_tar_member("pax", make_pax_record("linkpath", target), 'x') +
                          make_tar_link("a", target.substr(0, 100), '1') +
                          make_tar_link("b", "c", '1');
  for (const std::string& archive : {gnu, pax}) {
    const auto members = members_of(archive + make_tar_end());
    ASSERT_EQ(members.size(), 2u);
    EXPECT_EQ(members[0].link, target);
    EXPECT_EQ(members[1].link, "c") << "a long link is for one member only";
  }
}

TEST(TarFormat, ReadsLongNames) {
  const std::string name = fmt::format("{:d>150}/{:f>120}.jpg", "", "");
  const std::string gnu = make_tar_member("././@LongLink", name + '\0', 'L') +
                          make_tar_member(name.substr(0, 100), "1") + make_tar({{"b", "2"}});
  const std::string pax =
      make_tar_member("pax", make_pax_record("mtime", "1.5") + make_pax_record("path", name), 'x') +
      make_tar_member(name.substr(0, 100), "1") + make_tar({{"b", "2"}});
  for (const std::string& archive : {gnu, pax}) {
    const auto members = members_of(archive);
    ASSERT_EQ(members.size(), 2u);
    EXPECT_EQ(members[0].name, name);
    EXPECT_EQ(members[1].name, "b") << "a long name is for one member only";
  }
  const auto members = members_of(make_tar_member("1.jpg", "1", '0', "train/cat") + make_tar_end());
  EXPECT_EQ(members[0].name, "train/cat/1.jpg");
}

TEST(TarFormat, ReadsPaxAndBinarySizes) {
  const std::string pax = make_tar_member("pax", make_pax_record("size", "3"), 'x') +
                          make_tar_header("a", 0) + "123" + std::string(509, '\0') +
                          make_tar({{"b", "2"}});
  EXPECT_EQ(members_of(pax)[0].size, 3);
  EXPECT_EQ(members_of(pax)[1].name, "b");
  std::string header = make_tar_header("a", 0);
  header.replace(124, 12, std::string("\x80\0\0\0\0\0\0\0\0\0\0\x03", 12));
  const std::string binary =
      with_checksum(header) + "123" + std::string(509, '\0') + make_tar({{"b", "2"}});
  EXPECT_EQ(members_of(binary)[0].size, 3);
  EXPECT_EQ(members_of(binary)[1].name, "b");
}

TEST(TarFormat, SkipsGlobalPaxHeaders) {
  const auto members = members_of(make_tar_member("g", make_pax_record("path", "wrong"), 'g') +
                                  make_tar({{"a", "1"}}));
  EXPECT_EQ(members[0].name, "a");
}

TEST(TarFormat, RefusesEveryTruncation) {
  const std::string archive = make_tar_member("pax", make_pax_record("path", "long"), 'x') +
                              make_tar_member("a", "12345") +
                              make_tar_member("b", std::string(700, 'x')) + make_tar_end();
  // The end marker is two blocks; one block is sufficient.
  for (size_t bytes = 0; bytes < archive.size() - 512; bytes += 23) {
    EXPECT_FALSE(error_of(archive.substr(0, bytes)).empty()) << bytes;
  }
  for (size_t bytes = 0; bytes < archive.size() - 512; bytes += 512) {
    EXPECT_FALSE(error_of(archive.substr(0, bytes)).empty()) << bytes;
  }
  EXPECT_TRUE(
      contains(error_of(archive.substr(0, 2560 + 100)),
               "x.tar: truncated in member 'b': it has 700 bytes, the archive ends after 100"));
  EXPECT_TRUE(contains(error_of(archive.substr(0, 3584)), "truncated after member 'b'"));
  EXPECT_EQ(members_of(archive).size(), 2u);
}

TEST(TarFormat, RefusesWhatIsNoTar) {
  EXPECT_TRUE(contains(error_of(""), "not a tar archive"));
  EXPECT_TRUE(contains(error_of(std::string(600, 'x')), "not a tar archive"));
  EXPECT_TRUE(contains(error_of(make_gzip(make_tar({{"a", "1"}}))),
                       "not a tar archive, but a file that gzip has compressed; images are read in "
                       "place, so decompress it first: gunzip"));
  EXPECT_TRUE(
      contains(error_of("BZh91AY" + std::string(600, 'x')), "decompress it first: bunzip2"));
  EXPECT_TRUE(contains(error_of(std::string("\xFD"
                                            "7zXZ\0",
                                            6)),
                       "decompress it first: unxz"));
  std::string archive = make_tar({{"a", "1"}, {"b", "2"}});
  archive[1024] = 'c';
  EXPECT_TRUE(contains(error_of(archive), "no valid header at byte 1024, after member 'a'"));
}

TEST(TarFormat, RefusesSizesThatOverflow) {
  for (const std::string size : {"9223372036854775807", "99999999999999999999", "-1", "1x", ""}) {
    EXPECT_FALSE(error_of(make_tar_member("pax", make_pax_record("size", size), 'x') +
                          make_tar({{"a", "1"}}))
                     .empty())
        << size;
  }
  for (const std::string& size :
       {std::string("\x80\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), std::string(12, '\xff'),
        std::string("\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", 12),
        std::string("12x4567890 \0", 12), std::string("777777777777")}) {
    std::string header = make_tar_header("a", 0);
    header.replace(124, 12, size);
    EXPECT_FALSE(error_of(with_checksum(header) + make_tar_end()).empty());
  }
}

TEST(TarFormat, RefusesDamagedAndHugePaxHeaders) {
  for (const std::string records : {"x", "5", "5 ", "99 a=b\n", "6 a=b\n!", "0 a=b\n", "6 a+b\n",
                                    "3 \n", "99999999999999999999 a=b\n"}) {
    EXPECT_TRUE(contains(error_of(make_tar_member("p", records, 'x') + make_tar({{"a", "1"}})),
                         "damaged pax header"))
        << records;
  }
  EXPECT_TRUE(contains(error_of(make_tar_header("p", 1 << 21, 'x') + std::string(1 << 21, ' ')),
                       "a pax header of 2.0 MiB"));
  EXPECT_TRUE(contains(error_of(make_tar_header("p", 1 << 17, 'L') + std::string(1 << 17, ' ')),
                       "a long name of 128.0 KiB"));
  EXPECT_TRUE(
      contains(error_of(make_tar_header("p", 9000, 'L') + "abc"), "truncated in a long name"));
}

TEST(TarFormat, PassesOverFilesStoredWithHoles) {
  const std::string pax = make_tar_member("p",
                                          make_pax_record("GNU.sparse.major", "1") +
                                              make_pax_record("GNU.sparse.name", "a") +
                                              make_pax_record("path", "GNUSparseFile.1/a"),
                                          'x') +
                          make_tar({{"GNUSparseFile.1/a", "1"}, {"b", "2"}});
  // A map that continues in two blocks after the header.
  std::string header = make_tar_header("a", 3, 'S');
  header[482] = 1;
  std::string map(512, '\0');
  map[504] = 1;
  const std::string gnu = with_checksum(header) + map + std::string(512, '\0') + "123" +
                          std::string(509, '\0') + make_tar({{"b", "2"}});
  for (const std::string& archive : {pax, gnu}) {
    const auto members = members_of(archive);
    ASSERT_EQ(members.size(), 2u);
    EXPECT_EQ(members[0].name, "a");
    EXPECT_EQ(members[0].kind, TarKind::kSparse);
    EXPECT_EQ(members[1].name, "b");
  }
  EXPECT_TRUE(contains(error_of(with_checksum(header) + map), "truncated"));
}

TEST(TarFormat, RefusesJoinedArchives) {
  EXPECT_TRUE(contains(error_of(make_tar({{"a", "1"}}) + make_tar({{"b", "2"}})),
                       "another archive follows at byte 2048"));
  EXPECT_EQ(members_of(make_tar({{"a", "1"}}) + std::string(9000, '\0')).size(), 1u);
}

}  // namespace
}  // namespace gallop::data
