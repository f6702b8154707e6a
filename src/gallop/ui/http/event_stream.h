#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace gallop::ui::http {

/// Text that goes to a client as it comes, until one side closes it. One thread sends, the server's
/// takes.
class EventStream {
 public:
  /// Does nothing where it is closed. Closes it where the client has not taken a megabyte.
  void send(std::string_view text);
  /// What has been sent still goes to the client.
  void close();
  /// The reader is gone.
  void abandon();
  bool is_closed() const;

  /// For the server: what it does where nothing waits to be taken, and once something does.
  struct Waiting {
    std::function<void()> sleep, wake;
  };
  void serve(Waiting waiting);
  /// Up to `most` bytes into `out`, 0 where it sleeps now, -1 at the end.
  std::ptrdiff_t take(char* out, size_t most);

 private:
  void wake();

  mutable std::mutex mutex_;
  std::string text_;
  bool is_closed_ = false, is_asleep_ = false;
  Waiting waiting_;
};

}  // namespace gallop::ui::http
