#include "unit/fixtures.h"

namespace gallop {

std::filesystem::path fixtures() { return GALLOP_FIXTURES; }

}  // namespace gallop
