#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "gallop/base/file.h"

namespace gallop::tune {

/// Lines over a non-blocking socket.
class LineSocket {
 public:
  explicit LineSocket(FileDescriptor socket) : socket_(std::move(socket)) {}

  int get() const { return socket_.get(); }
  void put(const std::string& line) { out_ += line + "\n"; }
  /// The bytes that are not written yet.
  size_t waiting_bytes() const { return out_.size(); }
  /// Write and read without blocking. False if the connection is closed, or a line is longer than
  /// allowed.
  bool write();
  bool read(size_t most_bytes);
  /// The next complete line, without its end.
  std::optional<std::string> take_line();

 private:
  FileDescriptor socket_;
  std::string in_, out_;
  size_t taken_ = 0;  // Of `in_`.
};

}  // namespace gallop::tune
