#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>

namespace gallop::data {

/// A one-byte message from one process to another.
class Signal {
 public:
  Signal() {
    if (pipe(ends_) != 0) std::abort();
  }
  ~Signal() {
    close(ends_[0]);
    close(ends_[1]);
  }
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;

  void send() const {
    if (write(ends_[1], "s", 1) != 1) std::abort();
  }
  void wait() const {
    char letter;
    if (read(ends_[0], &letter, 1) != 1) std::abort();
  }

 private:
  int ends_[2];
};

/// A child process that does some work of a test and then exits.
class Forked {
 public:
  explicit Forked(const std::function<bool()>& work) : id_(fork()) {
    if (id_ == 0) {
      bool is_good = false;
      try {
        is_good = work();
      } catch (...) {
      }
      _exit(is_good ? 0 : 1);
    }
  }
  ~Forked() {
    if (id_ > 0) kill();
  }
  Forked(const Forked&) = delete;
  Forked& operator=(const Forked&) = delete;

  void kill() {
    ::kill(id_, SIGKILL);
    end();
  }
  /// Whether the work returned true.
  bool end() {
    int status = 0;
    waitpid(id_, &status, 0);
    id_ = 0;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

 private:
  pid_t id_;
};

}  // namespace gallop::data
