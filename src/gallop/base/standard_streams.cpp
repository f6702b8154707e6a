#include "gallop/base/standard_streams.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>

namespace gallop {

bool is_reader_gone(int file) {
  const int error = errno;
  pollfd output{.fd = file, .events = POLLOUT, .revents = 0};
  // A terminal that was closed reports POLLHUP as well; its processes get SIGHUP.
  const bool is_gone = poll(&output, 1, 0) > 0 && (output.revents & (POLLERR | POLLHUP)) != 0;
  errno = error;
  return is_gone;
}

void open_closed_streams() {
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(file, F_GETFD) >= 0 || errno != EBADF) continue;
    // open() returns the lowest free descriptor, which is this one.
    [[maybe_unused]] const int opened = open("/dev/null", file == STDIN_FILENO ? O_RDONLY : O_RDWR);
  }
}

}  // namespace gallop
