#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "gallop/base/file.h"

namespace gallop::tune {

/// Line-based communication over a non-blocking socket.
class LineSocket {
 public:
  explicit LineSocket(FileDescriptor socket) : socket_(std::move(socket)) {}

  int get() const { return socket_.get(); }
  void put(const std::string& line) { out_ += line + "\n"; }
  /// The number of buffered bytes that are not written yet.
  size_t waiting_bytes() const { return out_.size(); }
  /// Write and read without blocking. False if the connection is closed, or a line exceeds the
  /// limit.
  bool write();
  bool read(size_t most_bytes);
  /// The next complete line, without its newline.
  std::optional<std::string> take_line();

 private:
  FileDescriptor socket_;
  std::string in_, out_;
  size_t taken_ = 0;  // Consumed bytes of `in_`.
};

}  // namespace gallop::tune
