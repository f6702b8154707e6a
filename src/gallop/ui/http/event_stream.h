#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace gallop::ui::http {

/// A stream of text to a client until either side closes it. One thread sends; the server's thread
/// takes.
class EventStream {
 public:
  /// Does nothing if the stream is closed. Closes it if a megabyte is pending.
  void send(std::string_view text);
  /// Closes the stream after the pending text.
  void close();
  /// Called when the client has disconnected.
  void abandon();
  bool is_closed() const;

  /// Server callbacks: `sleep` when nothing is pending, `wake` when something is again.
  struct Waiting {
    std::function<void()> sleep, wake;
  };
  void serve(Waiting waiting);
  /// Copies up to `most` bytes to `out`; 0 if it sleeps now, -1 at the end.
  std::ptrdiff_t take(char* out, size_t most);

 private:
  void wake();

  mutable std::mutex mutex_;
  std::string text_;
  bool is_closed_ = false, is_asleep_ = false;
  Waiting waiting_;
};

}  // namespace gallop::ui::http
