#include "gallop/base/home.h"

#include <cstdlib>

namespace gallop {

fs::path expand_home(const std::string& path) {
  const char* const home = std::getenv("HOME");
  if (path.starts_with("~/") && home != nullptr) return fs::path(home) / path.substr(2);
  return path;
}

}  // namespace gallop
