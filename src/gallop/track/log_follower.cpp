#include "gallop/track/log_follower.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/track/log_line.h"

namespace gallop::track {

namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr size_t kLineBytes = size_t{1} << 12;  // Longer than usual lines.

[[noreturn]] void refuse(const fs::path& path, int reason) {
  throw DataError(fmt::format("{}: cannot read: {}", printable(path.string()),
                              std::generic_category().message(reason)));
}

// Appends up to `bytes` bytes of the file; false at its end.
bool append_piece(const FileDescriptor& file, const fs::path& path, int64_t offset, size_t bytes,
                  std::string& text) {
  const size_t before = text.size();
  text.resize(before + bytes);
  ssize_t count = 0;
  do {
    count = pread(file.get(), text.data() + before, bytes, offset);
  } while (count < 0 && errno == EINTR);
  if (count < 0) refuse(path, errno);
  text.resize(before + static_cast<size_t>(count));
  return count > 0;
}

}  // namespace

void LogFollower::read(const Reader& reader) {
  const FileDescriptor file(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file && errno != ENOENT) refuse(path_, errno);
  if (!file || !is_same(file)) {
    reset();
    reader.restart();
  }
  damaged_at_end_ = 0;
  std::string text;
  int64_t begin_of_text = offset_;
  while (file && append_piece(file, path_, begin_of_text + static_cast<int64_t>(text.size()),
                              kPieceBytes, text)) {
    size_t begin = 0;
    for (size_t end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
      take(std::string_view(text).substr(begin, end - begin),
           begin_of_text + static_cast<int64_t>(begin), reader);
    }
    text.erase(0, begin);
    begin_of_text += static_cast<int64_t>(begin);
  }
}

void LogFollower::take(std::string_view line, int64_t offset, const Reader& reader) {
  auto record = record_of(line);
  if (!record) {
    ++damaged_at_end_;
    return;
  }
  damaged_ += damaged_at_end_;
  damaged_at_end_ = 0;
  offset_ = offset + static_cast<int64_t>(line.size()) + 1;
  mark_ = line.substr(line.size() - kChecksumDigits);
  reader.record(std::move(*record), offset);
}

// A new file may have the same name and inode.
bool LogFollower::is_same(const FileDescriptor& file) const {
  if (offset_ == 0) return true;
  std::string found(mark_.size() + 1, '\0');
  const auto bytes = static_cast<int64_t>(found.size());
  return read_exactly(file, path_, offset_ - bytes, found.data(), bytes) && found == mark_ + "\n";
}

void LogFollower::reset() {
  offset_ = 0;
  mark_.clear();
  damaged_ = damaged_at_end_ = 0;
}

Record read_record(const FileDescriptor& log, const fs::path& path, int64_t offset) {
  std::string line;
  size_t end = std::string::npos;
  while (end == std::string::npos &&
         append_piece(log, path, offset + static_cast<int64_t>(line.size()), kLineBytes, line)) {
    end = line.find('\n');
  }
  auto record = record_of(std::string_view(line).substr(0, end));
  if (!record) {
    throw DataError(fmt::format("{}: changed while it was read", printable(path.string())));
  }
  return std::move(*record);
}

}  // namespace gallop::track
