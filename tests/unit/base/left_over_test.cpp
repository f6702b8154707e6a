#include "gallop/base/left_over.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include <gtest/gtest.h>

#include "gallop/base/temporary_folder.h"

namespace gallop {
namespace {

// Runs the action in a process that is then killed.
template <typename Function>
void run_and_be_killed(const Function& function) {
  const pid_t child = fork();
  if (child == 0) {
    function();
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
}

int64_t count_in(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

TEST(LeftOver, FolderOfAKilledProcessIsRemovedByTheNext) {
  const TemporaryFolder place(fs::temp_directory_path(), "gallop-left-");
  run_and_be_killed([&] {
    const auto* const left = new TemporaryFolder(place.path(), "work-");
    write_file_atomically(left->path() / "file", "content");
  });
  EXPECT_EQ(count_in(place.path()), 1);
  const TemporaryFolder next(place.path(), "work-");
  EXPECT_EQ(count_in(place.path()), 1);
  EXPECT_TRUE(fs::exists(next.path()));
}

TEST(LeftOver, KeepsAFolderInUse) {
  const TemporaryFolder place(fs::temp_directory_path(), "gallop-left-");
  const TemporaryFolder used(place.path(), "work-");
  const TemporaryFolder other(place.path(), "work-");
  remove_left_folders(place.path(), "work-");
  EXPECT_TRUE(fs::exists(used.path()));
  EXPECT_TRUE(fs::exists(other.path()));
}

TEST(LeftOver, RemovesOnlyMatchingFolders) {
  const TemporaryFolder place(fs::temp_directory_path(), "gallop-left-");
  for (const char* name : {"work-abcde", "work-abcdefg", "my-work-abcdef", "work-abc.ef", "work-"})
    fs::create_directory(place.path() / name);
  write_file_atomically(place.path() / "work-abcdef", "a file");
  fs::create_directory_symlink(place.path(), place.path() / "work-aaaaaa");
  fs::create_directory(place.path() / "work-Abcde1");
  remove_left_folders(place.path(), "work-");
  EXPECT_EQ(count_in(place.path()), 7);
  EXPECT_FALSE(fs::exists(place.path() / "work-Abcde1"));
  remove_left_folders(place.path() / "nowhere", "work-");
}

TEST(LeftOver, HalfWrittenFilesOfKilledProcessesAreRemoved) {
  const TemporaryFolder place(fs::temp_directory_path(), "gallop-left-");
  for (const char* name :
       {"recipe.yaml.tmp-123", "recipe.yaml", "notes.tmp-1b", ".tmp-7", "x.tmp-"})
    FileWriter(place.path() / name).finish();
  const fs::path used = place.path() / "info.json.tmp-9";
  FileWriter(used).finish();
  const FileDescriptor file = open_for_reading(used);
  ASSERT_TRUE(lock_temporary(file, used));
  remove_left_files(place.path());
  EXPECT_FALSE(fs::exists(place.path() / "recipe.yaml.tmp-123"));
  EXPECT_TRUE(fs::exists(used));
  EXPECT_EQ(count_in(place.path()), 5);
}

TEST(LeftOver, RecreatesAFolderRemovedBeforeItWasLocked) {
  const TemporaryFolder place(fs::temp_directory_path(), "gallop-left-");
  const fs::path path = place.path() / "file.tmp-1";
  FileWriter(path).finish();
  const FileDescriptor file = open_for_reading(path);
  fs::remove(path);
  EXPECT_FALSE(lock_temporary(file, path));
  FileWriter(path).finish();
  EXPECT_FALSE(lock_temporary(file, path)) << "that is another file";
}

}  // namespace
}  // namespace gallop
