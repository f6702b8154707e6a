#include "gallop/base/file_state.h"

#include <cerrno>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop {

std::string file_state(const struct stat& info) {
  return fmt::format("{} {} {}.{:09}", info.st_ino, info.st_size, info.st_mtim.tv_sec,
                     info.st_mtim.tv_nsec);
}

std::string file_state(const fs::path& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) {
    throw DataError(fmt::format("{}: cannot read: {}", printable(path.string()),
                                std::generic_category().message(errno)));
  }
  return fmt::format("{}\n{}", fs::absolute(path).string(), file_state(info));
}

std::string file_states(const std::vector<fs::path>& paths) {
  std::string states;
  for (const fs::path& path : paths) {
    struct stat info = {};
    if (stat(path.c_str(), &info) == 0) states += file_state(info) + " ";
  }
  return states;
}

std::string identity_of(const std::string& kind, const std::vector<fs::path>& files) {
  std::string identity = kind;
  for (const fs::path& file : files) identity += "\n" + file_state(file);
  return identity;
}

}  // namespace gallop
