#include "unit/fixtures.h"

#include <cstdlib>

namespace gallop {

std::filesystem::path fixtures() {
  const char* const other = std::getenv("GALLOP_TEST_FIXTURES");
  return other != nullptr ? other : GALLOP_FIXTURES;
}

std::filesystem::path beside_program(const char* name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

}  // namespace gallop
