#include "gallop/app/run_handoff.h"

#include <cstdlib>

namespace gallop::app {

namespace {

constexpr const char* kVariable = "GALLOP_RUN_NOTE";
constexpr int64_t kMostBytes = 1 << 16;

}  // namespace

RunHandoff::RunHandoff() : folder_(fs::temp_directory_path(), kFolderPrefix) {}

std::map<std::string, std::string> RunHandoff::variables() const {
  return {{kVariable, file().string()}};
}

std::string RunHandoff::read() const {
  return fs::exists(file()) ? read_file(file(), kMostBytes) : std::string();
}

void RunHandoff::tell(const fs::path& run) {
  const char* const path = std::getenv(kVariable);
  if (path != nullptr) write_file_atomically(path, fs::absolute(run).string());
}

}  // namespace gallop::app
