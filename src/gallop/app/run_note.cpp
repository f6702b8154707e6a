#include "gallop/app/run_note.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include <fmt/format.h>

#include "gallop/base/error.h"

namespace gallop::app {

namespace {

constexpr const char* kVariable = "GALLOP_RUN_NOTE";
constexpr int64_t kMostBytes = 1 << 16;

}  // namespace

RunNote::RunNote() {
  std::string path = (fs::temp_directory_path() / "gallop-run-XXXXXX").string();
  const FileDescriptor file(mkstemp(path.data()));
  if (!file) {
    throw DeviceError(
        fmt::format("{}: cannot create: {}", path, std::generic_category().message(errno)));
  }
  path_ = path;
}

RunNote::~RunNote() {
  std::error_code ignored;
  fs::remove(path_, ignored);
}

std::map<std::string, std::string> RunNote::variables() const {
  return {{kVariable, path_.string()}};
}

std::string RunNote::read() const { return read_file(path_, kMostBytes); }

void RunNote::tell(const fs::path& run) {
  const char* const path = std::getenv(kVariable);
  if (path != nullptr) write_file_atomically(path, fs::absolute(run).string());
}

}  // namespace gallop::app
