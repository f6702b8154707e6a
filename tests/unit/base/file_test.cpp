#include "gallop/base/file.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "gallop/base/error.h"

namespace gallop {
namespace {

class FileTest : public testing::Test {
 protected:
  FileTest() {
    std::string name = (fs::temp_directory_path() / "gallop-file-XXXXXX").string();
    folder = mkdtemp(name.data());
  }
  ~FileTest() override { fs::remove_all(folder); }

  fs::path folder;
};

template <typename Problem, typename Function>
std::string message_of(Function function) {
  try {
    function();
  } catch (const Problem& error) {
    return error.what();
  }
  return "";
}

TEST_F(FileTest, ReadsWhatWasWritten) {
  const fs::path path = folder / "words";
  FileWriter writer(path);
  writer.write("one ");
  writer.write(std::string("t\0wo", 4));
  writer.finish();
  EXPECT_EQ(read_file(path), std::string("one t\0wo", 8));
  EXPECT_EQ(MappedFile(path).bytes(), std::string_view("one t\0wo", 8));
}

TEST_F(FileTest, ReplacesAtomicallyWithoutTemporaryFiles) {
  const fs::path path = folder / "state";
  write_file_atomically(path, "old");
  write_file_atomically(path, "new");
  EXPECT_EQ(read_file(path), "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
}

TEST_F(FileTest, ErrorsNameTheFileAndTheReason) {
  const fs::path missing = folder / "missing";
  const std::string unread = message_of<DataError>([&] { read_file(missing); });
  EXPECT_NE(unread.find("missing"), std::string::npos) << unread;
  EXPECT_NE(unread.find("No such file"), std::string::npos) << unread;
  const std::string unwritten =
      message_of<DeviceError>([&] { write_file_atomically(missing / "state", "text"); });
  EXPECT_EQ(unwritten, (missing / "state").string() + ": cannot create: No such file or directory");
  EXPECT_FALSE(message_of<DataError>([&] { MappedFile map(missing); }).empty());
}

TEST_F(FileTest, RefusesAFileLongerThanAllowed) {
  write_file_atomically(folder / "long", "12345");
  EXPECT_EQ(read_file(folder / "long", 5), "12345");
  EXPECT_FALSE(message_of<DataError>([&] { read_file(folder / "long", 4); }).empty());
}

TEST_F(FileTest, ReadsExactlyOrReportsTheEndOfTheFile) {
  write_file_atomically(folder / "short", "abcdef");
  const FileDescriptor file = open_for_reading(folder / "short");
  char out[4] = {};
  EXPECT_TRUE(read_exactly(file, "short", 2, out, 4));
  EXPECT_EQ(std::string_view(out, 4), "cdef");
  EXPECT_FALSE(read_exactly(file, "short", 3, out, 4));
}

TEST_F(FileTest, MapsAnEmptyFile) {
  write_file_atomically(folder / "empty", "");
  EXPECT_TRUE(MappedFile(folder / "empty").bytes().empty());
}

TEST_F(FileTest, LocksExclusively) {
  const fs::path path = folder / "lock";
  {
    const auto first = FileLock::try_lock(path, "first");
    ASSERT_TRUE(first);
    EXPECT_FALSE(FileLock::try_lock(path, "second"));
    EXPECT_EQ(FileLock::owner_of(path), "first");
  }
  EXPECT_TRUE(FileLock::try_lock(path, "third"));
}

}  // namespace
}  // namespace gallop
