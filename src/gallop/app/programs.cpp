#include "gallop/app/programs.h"

#include <unistd.h>

#include <cerrno>
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

void exec_full_program() {
  const fs::path program = full_program();
  std::vector<std::string> args = read_command_line();
  std::vector<char*> pointers;
  for (std::string& word : args) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execv(program.c_str(), pointers.data());
  const int reason = errno;
  throw DeviceError(fmt::format("{}: cannot be started: {}", printable(program.string()),
                                std::generic_category().message(reason)));
}

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
