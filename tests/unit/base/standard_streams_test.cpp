#include "gallop/base/standard_streams.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include <gtest/gtest.h>

#include "gallop/base/file.h"

namespace gallop {
namespace {

TEST(ReaderIsGone, DetectsAPipeWithoutReader) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const FileDescriptor write_end(ends[1]);
  {
    const FileDescriptor read_end(ends[0]);
    EXPECT_FALSE(is_reader_gone(write_end.get()));
  }
  EXPECT_TRUE(is_reader_gone(write_end.get()));
}

TEST(ReaderIsGone, DetectsAClosedSocket) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const FileDescriptor one(ends[0]);
  {
    const FileDescriptor other(ends[1]);
    EXPECT_FALSE(is_reader_gone(one.get()));
  }
  EXPECT_TRUE(is_reader_gone(one.get()));
}

TEST(ReaderIsGone, IsFalseForFiles) {
  const FileDescriptor file(open("/dev/null", O_WRONLY | O_CLOEXEC));
  EXPECT_FALSE(is_reader_gone(file.get()));
}

}  // namespace
}  // namespace gallop
