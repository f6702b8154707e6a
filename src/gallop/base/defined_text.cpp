#include "gallop/base/defined_text.h"

#include <cmath>

#include <fmt/format.h>

namespace gallop {

std::string defined_text(double number, const char* format) {
  // fmt prints the sign of a NaN, which has no meaning.
  return std::isnan(number) ? "undefined" : fmt::format(fmt::runtime(format), number);
}

}  // namespace gallop
