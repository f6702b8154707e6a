#include "gallop/base/process_group_reaper.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "gallop/base/error.h"

namespace gallop {

namespace {

// The write end of its input is only open in this process, so that it closes when that dies.
constexpr const char* kScript = R"(read -r done || kill -s KILL -- "-$0")";

void check(int error) {
  if (error == 0) return;
  throw DeviceError(fmt::format("cannot start sh, which ends a group of processes: {}",
                                std::generic_category().message(error)));
}

// In another process group, so that Ctrl-C does not reach it.
struct Attributes {
  Attributes() {
    sigset_t none, ignored_here;
    sigemptyset(&none);
    sigemptyset(&ignored_here);
    sigaddset(&ignored_here, SIGXFSZ);
    posix_spawnattr_init(&value);
    posix_spawnattr_setsigmask(&value, &none);
    posix_spawnattr_setsigdefault(&value, &ignored_here);
    posix_spawnattr_setpgroup(&value, 0);
    posix_spawnattr_setflags(
        &value, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~Attributes() { posix_spawnattr_destroy(&value); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;

  posix_spawnattr_t value{};
};

// Does not inherit output pipes, so that their readers do not wait for the reaper.
struct Files {
  explicit Files(int input) {
    posix_spawn_file_actions_init(&value);
    posix_spawn_file_actions_adddup2(&value, input, STDIN_FILENO);
    for (const int output : {STDOUT_FILENO, STDERR_FILENO}) {
      posix_spawn_file_actions_addopen(&value, output, "/dev/null", O_WRONLY, 0);
    }
  }
  ~Files() { posix_spawn_file_actions_destroy(&value); }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;

  posix_spawn_file_actions_t value{};
};

}  // namespace

ProcessGroupReaper::ProcessGroupReaper(pid_t group) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) check(errno);
  line_ = FileDescriptor(ends[0]);
  const FileDescriptor input(ends[1]);
  std::array<std::string, 4> words = {"sh", "-c", kScript, std::to_string(group)};
  const std::array<char*, 5> pointers = {words[0].data(), words[1].data(), words[2].data(),
                                         words[3].data(), nullptr};
  const Attributes attributes;
  const Files files(input.get());
  check(posix_spawnp(&id_, "sh", &files.value, &attributes.value, pointers.data(), environ));
}

ProcessGroupReaper::~ProcessGroupReaper() {
  // A pipe would raise SIGPIPE if the reaper was killed.
  send(line_.get(), "\n", 1, MSG_NOSIGNAL);
  while (waitpid(id_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace gallop
