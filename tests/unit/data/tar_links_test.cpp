#include "gallop/data/tar_links.h"

#include <fmt/format.h>

#include "unit/data/expect_error.h"

namespace gallop::data {
namespace {

// The content of a file identifies its offset.
TarMember file(const std::string& name, int64_t offset) {
  return {.name = name, .offset = offset, .size = 10 * offset};
}
TarMember link(const std::string& name, const std::string& target) {
  return {.name = name, .kind = TarKind::kSymbolicLink, .link = target};
}
TarMember hard_link(const std::string& name, const std::string& target) {
  return {.name = name, .kind = TarKind::kHardLink, .link = target};
}

// "name offset" or "name problem" of each entry, in order.
std::vector<std::string> followed(std::vector<TarMember> members) {
  std::vector<std::string> lines;
  size_t order = 0;
  for (const TarEntry& entry : follow_links(std::move(members), "x.tar")) {
    EXPECT_GE(entry.order, order);
    order = entry.order;
    if (entry.problem.empty()) {
      EXPECT_EQ(entry.member.size, 10 * entry.member.offset);
    }
    lines.push_back(entry.member.name + " " +
                    (entry.problem.empty() ? std::to_string(entry.member.offset) : entry.problem));
  }
  return lines;
}

using Lines = std::vector<std::string>;

TEST(TarLinks, LeadToMembersBeforeAndBehindThem) {
  EXPECT_EQ(followed({link("a/1", "2"), file("a/2", 7), hard_link("3", "a/2"), link("4", "a/2"),
                      link("a/5", "../6"), hard_link("7", "./6"), file("./6", 8)}),
            (Lines{"a/1 7", "a/2 7", "3 7", "4 7", "a/5 8", "7 8", "./6 8"}));
}

TEST(TarLinks, AreFollowedThroughOtherLinksAndFolders) {
  EXPECT_EQ(followed({link("1", "2"), link("2", "3"), hard_link("3", "4"), file("4", 5)}),
            (Lines{"1 5", "2 5", "3 5", "4 5"}));
  EXPECT_EQ(followed({link("all", "a/b"), link("1", "all/x"), link("2", "all/../x"),
                      file("a/b/x", 1), file("a/x", 2)}),
            (Lines{"all/x 1", "1 1", "2 2", "a/b/x 1", "a/x 2"}));
}

TEST(TarLinks, ToFoldersStandForTheirFiles) {
  EXPECT_EQ(followed({file("cat/1", 1), link("dog", "cat"), file("cat/more/2", 2),
                      link("cat/3", "1"), file("category", 3)}),
            (Lines{"cat/1 1", "dog/1 1", "dog/more/2 2", "dog/3 1", "cat/more/2 2", "cat/3 1",
                   "category 3"}));
}

TEST(TarLinks, ToNowhereHaveAProblem) {
  const std::string nowhere = "is a link to 'none', which is not in the archive";
  EXPECT_EQ(followed({link("1", "none"), link("2", "1"), hard_link("3", "none")}),
            (Lines{"1 " + nowhere, "2 " + nowhere, "3 " + nowhere}));
  EXPECT_EQ(followed({link("1", "/etc/passwd"), link("2", "../1"), link("a/3", "../../a/3")}),
            (Lines{"1 is a link that leads out of the archive, to '/etc/passwd'",
                   "2 is a link that leads out of the archive",
                   "a/3 is a link that leads out of the archive"}));
  EXPECT_EQ(followed({{.name = "pipe", .kind = TarKind::kOther}, link("1", "pipe")}),
            (Lines{"pipe is neither a file nor a link",
                   "1 is a link to 'pipe', which is not a plain file"}));
}

TEST(TarLinks, InACircleHaveAProblem) {
  const std::string loop = " is a link that leads back to itself";
  EXPECT_EQ(followed({link("1", "2"), link("2", "1"), link("3", "3"), hard_link("4", "4")}),
            (Lines{"1" + loop, "2" + loop, "3" + loop, "4" + loop}));
  EXPECT_EQ(followed({link("a/up", ".."), link("here", "."), file("a/1", 1)}),
            (Lines{"a/up is a link to a folder that it lies in",
                   "here is a link to a folder that it lies in", "a/1 1"}));
  EXPECT_EQ(followed({file("a/1", 1), link("a/b", "../b"), file("b/2", 2), link("b/a", "../a")}),
            (Lines{"a/1 1", "a/b/2 2",
                   "a/b/a is a link to a folder inside a linked folder, which is not followed",
                   "b/2 2", "b/a/1 1",
                   "b/a/b is a link to a folder inside a linked folder, which is not followed"}));
}

TEST(TarLinks, MayBeFortyInARowAsInLinux) {
  std::vector<TarMember> chain{file("0", 3)};
  for (int i = 1; i <= 41; ++i) chain.push_back(link(std::to_string(i), std::to_string(i - 1)));
  const Lines lines = followed(chain);
  EXPECT_EQ(lines[40], "40 3");
  EXPECT_EQ(lines[41], "41 is a link that leads back to itself");
}

TEST(TarLinks, ToFoldersStandForALimitedNumberOfFiles) {
  const std::vector<TarMember> members{file("a/1", 1), file("a/2", 1), link("b", "a"),
                                       link("c", "a")};
  EXPECT_EQ(follow_links(members, "x.tar", 4).size(), 6u);
  EXPECT_TRUE(contains(data_error([&] { follow_links(members, "x.tar", 3); }),
                       "x.tar: links to folders stand for more than 3 files"));
}

TEST(TarLinks, LeaveOtherMembersAsTheyAre) {
  EXPECT_EQ(followed({{.name = "a/", .kind = TarKind::kFolder},
                      file("a/1", 1),
                      {.name = "s", .kind = TarKind::kSparse}}),
            (Lines{"a/1 1", "s is stored with holes; pack it again without --sparse"}));
}

}  // namespace
}  // namespace gallop::data
