#include "gallop/config/field_text.h"

#include <fmt/format.h>

#include "gallop/config/scalar.h"

namespace gallop::config {

std::string join_key(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

std::string allowed_range(const Field& field, const char* noun) {
  std::string text = noun;
  const bool has_both = field.min && field.max && !field.above_min && !field.below_max;
  if (has_both) {
    text += fmt::format(" from {} to {}", number_text(*field.min), number_text(*field.max));
  } else if (field.min) {
    text +=
        fmt::format(" {} {}", field.above_min ? "above" : "of at least", number_text(*field.min));
  }
  if (field.max && !has_both) {
    text += fmt::format("{} {} {}", field.min ? " and" : "", field.below_max ? "below" : "at most",
                        number_text(*field.max));
  }
  if (field.or_auto) text += " or auto";
  return text;
}

}  // namespace gallop::config
