#include "gallop/base/input.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop {

namespace {

[[noreturn]] void fail(const fs::path& path, const std::string& reason) {
  throw DataError(fmt::format("{}: {}", printable(path.string()), reason));
}

// Unlike open_for_reading(), waits for a writer of a pipe.
FileDescriptor open_pipe(const fs::path& path) {
  FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) fail(path, "cannot open: " + std::generic_category().message(errno));
  return file;
}

}  // namespace

std::string read_input(const fs::path& path, int64_t max_bytes) {
  std::error_code error;
  const fs::file_type type = fs::status(path, error).type();
  if (type != fs::file_type::fifo && type != fs::file_type::character) {
    return read_file(path, max_bytes);
  }
  const FileDescriptor pipe = open_pipe(path);
  std::string content;
  std::array<char, 1 << 16> buffer{};
  while (true) {
    const ssize_t got = read(pipe.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path, "cannot read: " + std::generic_category().message(errno));
    if (got == 0) return content;
    content.append(buffer.data(), static_cast<size_t>(got));
    if (static_cast<int64_t>(content.size()) > max_bytes) {
      fail(path, fmt::format("more than the {} that are expected", format_bytes(max_bytes)));
    }
  }
}

}  // namespace gallop
