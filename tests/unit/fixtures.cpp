#include "unit/fixtures.h"

namespace gallop {

std::filesystem::path fixtures() { return GALLOP_FIXTURES; }

std::filesystem::path beside_program(const char* name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

}  // namespace gallop
