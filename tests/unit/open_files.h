#pragma once

#include <sys/resource.h>

namespace gallop {

/// Limits the number of open files while it exists: 0 lets no file be opened.
class OpenFileLimit {
 public:
  explicit OpenFileLimit(rlim_t files) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit limit{.rlim_cur = files, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~OpenFileLimit() { setrlimit(RLIMIT_NOFILE, &before_); }
  OpenFileLimit(const OpenFileLimit&) = delete;
  OpenFileLimit& operator=(const OpenFileLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace gallop
