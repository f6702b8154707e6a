#include "gallop/base/shared_folder.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "gallop/base/temporary_folder.h"
#include "unit/base/error_of.h"

namespace gallop {
namespace {

constexpr int64_t kFree = 1 << 20;
constexpr int64_t kNeverFree = int64_t{1} << 60;

class SharedFolderTest : public testing::Test {
 protected:
  SharedFolderTest() {
    for (const fs::path& place : places) fs::create_directory(place);
  }

  fs::path at(size_t place) const {
    return places[place] / ("gallop-" + std::to_string(geteuid()));
  }
  void leave_in(size_t place) const {
    fs::create_directory(at(place));
    fs::permissions(at(place), fs::perms::owner_all);
    write_file_atomically(at(place) / "left", "by one that was killed");
  }

  const TemporaryFolder folder{fs::temp_directory_path(), "gallop-shared-"};
  const std::vector<fs::path> places = {folder.path() / "a", folder.path() / "b"};
};

TEST_F(SharedFolderTest, IsRemovedByTheLastUser) {
  std::optional<SharedFolder> first(std::in_place, places, kFree);
  EXPECT_EQ(first->path(), at(0));
  struct stat info = {};
  ASSERT_EQ(stat(first->path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  write_file_atomically(first->path() / "data", "decoded");
  std::optional<SharedFolder> second(std::in_place, places, kFree);
  EXPECT_EQ(second->path(), first->path());
  first.reset();
  EXPECT_EQ(read_file(at(0) / "data"), "decoded");
  second.reset();
  EXPECT_TRUE(fs::is_empty(at(0)));
}

TEST_F(SharedFolderTest, PrefersAFolderInUseThenOneWithSpace) {
  {
    const SharedFolder only({places[1]}, kFree);
    EXPECT_EQ(SharedFolder(places, kFree).path(), at(1));
  }
  EXPECT_EQ(SharedFolder(places, kFree).path(), at(0));
  EXPECT_EQ(SharedFolder(places, kNeverFree).path().parent_path().parent_path(), folder.path());
  EXPECT_EQ(SharedFolder({folder.path() / "none", places[1]}, kFree).path(), at(1));
}

TEST_F(SharedFolderTest, IsEmptiedAfterItsUsersWereKilled) {
  leave_in(0);
  leave_in(1);
  const SharedFolder first(places, kFree);
  EXPECT_TRUE(fs::is_empty(at(0)));
  EXPECT_TRUE(fs::is_empty(at(1)));
  leave_in(1);
  write_file_atomically(at(0) / "data", "decoded");
  SharedFolder::remove_left(places);
  EXPECT_TRUE(fs::is_empty(at(1)));
  EXPECT_TRUE(fs::exists(at(0) / "data")) << "it is in use";
}

TEST_F(SharedFolderTest, IsInUseUntilItsProcessEnds) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const SharedFolder used(places, kFree);
    write_file_atomically(used.path() / "data", "decoded");
    if (write(ready[1], "r", 1) != 1) _exit(1);
    for (;;) pause();
  }
  char letter = 0;
  ASSERT_EQ(read(ready[0], &letter, 1), 1);
  SharedFolder::remove_left(places);
  EXPECT_TRUE(fs::exists(at(0) / "data"));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  SharedFolder::remove_left(places);
  EXPECT_FALSE(fs::exists(at(0) / "data"));
  close(ready[0]);
  close(ready[1]);
}

TEST_F(SharedFolderTest, IsTheSameForConcurrentStarts) {
  constexpr int kProcesses = 6;
  for (int round = 0; round < 100; ++round) {
    int begin[2], chosen[2], leave[2];
    ASSERT_EQ(pipe(begin) + pipe(chosen) + pipe(leave), 0);
    std::vector<pid_t> children;
    for (int process = 0; process < kProcesses; ++process) {
      children.push_back(fork());
      if (children.back() != 0) continue;
      alarm(60);  // Kills a process that waits forever.
      close(begin[1]);
      close(leave[1]);
      char letter = 0;
      if (read(begin[0], &letter, 1) != 0) _exit(1);
      const SharedFolder used(places, kFree);
      letter = used.path() == at(0) ? '0' : '1';
      if (write(chosen[1], &letter, 1) != 1) _exit(1);
      if (read(leave[0], &letter, 1) != 0) _exit(1);
      _exit(0);
    }
    close(chosen[1]);
    close(begin[1]);  // All processes now read the end of the pipe.
    std::string answers;
    char letter = 0;
    while (answers.size() < kProcesses && read(chosen[0], &letter, 1) == 1) answers += letter;
    close(leave[1]);
    for (const pid_t child : children) {
      int status = 0;
      waitpid(child, &status, 0);
      EXPECT_EQ(status, 0) << "round " << round;
    }
    for (const int end : {begin[0], chosen[0], leave[0]}) close(end);
    ASSERT_EQ(answers, std::string(kProcesses, '0')) << "round " << round;
  }
}

TEST_F(SharedFolderTest, RejectsAFolderAccessibleToOthers) {
  const auto refused = [&] { return error_of([&] { SharedFolder({places[0]}, kFree); }); };
  fs::create_directory(at(0));
  fs::permissions(at(0), fs::perms::owner_all | fs::perms::others_exec);
  EXPECT_NE(refused().find("its mode must be 0700"), std::string::npos) << refused();
  SharedFolder::remove_left(places);
  fs::remove(at(0));
  fs::create_directory_symlink(folder.path(), at(0));
  EXPECT_NE(refused().find(at(0).string() + ": cannot open"), std::string::npos) << refused();
  fs::remove(at(0));
  EXPECT_NE(error_of([&] { SharedFolder({folder.path() / "none"}, kFree); }).find("No such file"),
            std::string::npos);
  if (geteuid() != 0) GTEST_SKIP() << "another user's folder needs root";
  fs::create_directory(at(0));
  fs::permissions(at(0), fs::perms::owner_all);
  ASSERT_EQ(chown(at(0).c_str(), 65534, 65534), 0);
  EXPECT_NE(refused().find("belongs to another user"), std::string::npos) << refused();
  EXPECT_EQ(SharedFolder(places, kFree).path(), at(1));
}

}  // namespace
}  // namespace gallop
