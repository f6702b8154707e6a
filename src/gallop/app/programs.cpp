#include "gallop/app/programs.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/hardware.h"
#include "gallop/base/text.h"

namespace gallop::app {

namespace {

constexpr const char* kFullProgram = "libexec/gallop/gallop";

// Blocks or unblocks the signals of StopSignals. exec keeps the mask and pending signals.
void mask_stop_signals(int how) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGHUP}) sigaddset(&set, signal);
  pthread_sigmask(how, &set, nullptr);
}

fs::path this_program() { return fs::read_symlink("/proc/self/exe"); }

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

}  // namespace

fs::path full_program() {
  const fs::path folder = this_program().parent_path();
  fs::path beside = folder / kFullProgram, installed = folder.parent_path() / kFullProgram;
  if (is_file(beside)) return beside;
  if (is_file(installed)) return installed;
  throw DeviceError(
      fmt::format("{} is missing: this command needs the full program with LibTorch, which 'cmake "
                  "--install' and 'make install' install there",
                  printable(installed.string())));
}

void exec_full_program(StopSignals signals) {
  const fs::path program = full_program();
  std::vector<std::string> args = read_command_line();
  std::vector<char*> pointers;
  for (std::string& word : args) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  if (signals == StopSignals::kHeld) mask_stop_signals(SIG_BLOCK);
  execv(program.c_str(), pointers.data());
  const int reason = errno;
  deliver_held_signals();
  throw DeviceError(fmt::format("{}: cannot be started: {}", printable(program.string()),
                                std::generic_category().message(reason)));
}

void deliver_held_signals() { mask_stop_signals(SIG_UNBLOCK); }

fs::path program_path() {
  fs::path program = this_program();
  const fs::path root = program.parent_path().parent_path().parent_path();
  if (program != root / kFullProgram) return program;
  for (const fs::path& front : {root / "gallop", root / "bin" / "gallop"}) {
    if (is_file(front)) return front;
  }
  return program;
}

}  // namespace gallop::app
