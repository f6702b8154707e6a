#include "gallop/tune/value_word.h"

#include <nlohmann/json.hpp>

namespace gallop::tune {

std::string value_word(const Space& space, size_t index, double value) {
  const std::string text = space.value_text(index, value);
  const auto json = nlohmann::json::parse(text);
  return json.is_string() ? json.get<std::string>() : text;
}

}  // namespace gallop::tune
