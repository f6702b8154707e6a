#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "gallop/base/file.h"

namespace gallop::tune {

/// Lines over a socket that does not block.
class LineSocket {
 public:
  explicit LineSocket(FileDescriptor socket) : socket_(std::move(socket)) {}

  int get() const { return socket_.get(); }
  void put(const std::string& line) { out_ += line + "\n"; }
  /// What is not yet written.
  size_t waiting_bytes() const { return out_.size(); }
  /// Write and read what can be now. False where the connection is gone, or a line is longer than
  /// that.
  bool write();
  bool read(size_t most_bytes);
  /// The next whole line that was read, without its end.
  std::optional<std::string> take_line();

 private:
  FileDescriptor socket_;
  std::string in_, out_;
  size_t taken_ = 0;  // Of `in_`.
};

}  // namespace gallop::tune
