#include "gallop/app/tune/output_lines.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"

namespace gallop::app {

namespace {

constexpr int kLookMilliseconds = 100;
constexpr size_t kMostArrived = size_t{1} << 26;  // Bytes buffered but not yet processed.

}  // namespace

OutputLines::OutputLines(int descriptor, const fs::path& file)
    : descriptor_(descriptor), file_(std::fopen(file.c_str(), "ab"), &std::fclose) {
  if (file_ == nullptr) throw DeviceError(fmt::format("{}: cannot write", file.string()));
  reader_ = std::thread([this] { read_all(); });
}

OutputLines::~OutputLines() {
  ends_ = true;
  reader_.join();
}

bool OutputLines::wait(std::chrono::milliseconds moment) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, moment, [&] { return is_over_ || !arrived_.empty(); });
  pending_ += std::exchange(arrived_, {});
  return !is_over_;
}

void OutputLines::read_all() {
  while (!ends_ && read_some()) {
  }
  const std::lock_guard lock(mutex_);
  is_over_ = true;
  changed_.notify_one();
}

bool OutputLines::read_some() {
  // poll() ignores negative descriptors and then only waits.
  pollfd waited{.fd = has_room() ? descriptor_ : -1, .events = POLLIN, .revents = 0};
  if (::poll(&waited, 1, kLookMilliseconds) <= 0) return true;
  std::array<char, 1 << 16> buffer{};
  const ssize_t bytes = ::read(descriptor_, buffer.data(), buffer.size());
  if (bytes < 0) return errno == EINTR || errno == EAGAIN;
  if (bytes == 0) return false;
  std::fwrite(buffer.data(), 1, static_cast<size_t>(bytes), file_.get());
  std::fflush(file_.get());
  const std::lock_guard lock(mutex_);
  arrived_.append(buffer.data(), static_cast<size_t>(bytes));
  changed_.notify_one();
  return true;
}

bool OutputLines::has_room() {
  const std::lock_guard lock(mutex_);
  return arrived_.size() < kMostArrived;
}

}  // namespace gallop::app
