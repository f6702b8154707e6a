#include "gallop/base/input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include <gtest/gtest.h>

#include "gallop/base/error.h"

namespace gallop {
namespace {

class InputTest : public testing::Test {
 protected:
  InputTest() {
    std::string name = (fs::temp_directory_path() / "gallop-input-XXXXXX").string();
    folder = mkdtemp(name.data());
    pipe = folder / "pipe";
    EXPECT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  }
  ~InputTest() override { fs::remove_all(folder); }

  // The result of reading a pipe into which `content` is written in two parts.
  std::string read_piped(const std::string& content, int64_t max_bytes) {
    std::jthread writer([&] {
      const FileDescriptor file(open(pipe.c_str(), O_WRONLY));
      const size_t half = content.size() / 2;
      EXPECT_EQ(write(file.get(), content.data(), half), static_cast<ssize_t>(half));
      const size_t rest = content.size() - half;
      EXPECT_EQ(write(file.get(), content.data() + half, rest), static_cast<ssize_t>(rest));
    });
    return read_input(pipe, max_bytes);
  }

  fs::path folder, pipe;
};

TEST_F(InputTest, ReadsAPipeToTheEnd) {
  EXPECT_EQ(read_piped("train: {epochs: 3}\n", 100), "train: {epochs: 3}\n");
}

TEST_F(InputTest, RefusesAPipeThatIsLongerThanAllowed) {
  EXPECT_THROW(read_piped("0123456789", 9), DataError);
}

TEST_F(InputTest, ReadsAFile) {
  write_file_atomically(folder / "file", "text");
  EXPECT_EQ(read_input(folder / "file", 4), "text");
  EXPECT_THROW(read_input(folder / "file", 3), DataError);
  EXPECT_THROW(read_input(folder / "nothing", 3), DataError);
  EXPECT_THROW(read_input(folder, 3), DataError);
}

}  // namespace
}  // namespace gallop
