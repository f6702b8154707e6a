#include "gallop/tune/remote/line_socket.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace gallop::tune {

bool LineSocket::write() {
  size_t written = 0;
  while (written < out_.size()) {
    const ssize_t size =
        ::send(socket_.get(), out_.data() + written, out_.size() - written, MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) {
      if (errno != EAGAIN && errno != EWOULDBLOCK) return false;
      break;
    }
    written += static_cast<size_t>(size);
  }
  out_.erase(0, written);
  return true;
}

bool LineSocket::read(size_t most_bytes) {
  std::array<char, 65536> part{};
  in_.erase(0, std::exchange(taken_, 0));
  while (true) {
    const ssize_t size = ::recv(socket_.get(), part.data(), part.size(), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    if (size == 0) return false;
    in_.append(part.data(), static_cast<size_t>(size));
    if (in_.size() > most_bytes) return false;
  }
}

std::optional<std::string> LineSocket::take_line() {
  const size_t end = in_.find('\n', taken_);
  if (end == std::string::npos) return std::nullopt;
  std::string line = in_.substr(taken_, end - taken_);
  taken_ = end + 1;
  return line;
}

}  // namespace gallop::tune
