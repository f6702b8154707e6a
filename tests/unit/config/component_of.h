#pragma once

#include <string>

#include "gallop/config/component.h"
#include "gallop/config/resolve.h"

namespace gallop::config {

/// A member of a family by a text such as "adamw state_bits=8 betas=[0.9,0.99]".
template <typename Registry>
Component component_of(const Registry& registry, const std::string& text) {
  Component component(registry, text.substr(0, text.find(' ')));
  Node options;
  for (size_t at = text.find(' '); at != std::string::npos; at = text.find(' ', at + 1)) {
    const size_t equals = text.find('=', at);
    const std::string key = text.substr(at + 1, equals - at - 1);
    const std::string value = text.substr(equals + 1, text.find(' ', equals) - equals - 1);
    options.at_or_add(key, {}) = parse_override_value(value, key);
  }
  Problems problems;
  read_fields(
      options, [&](Visitor& visitor) { component.visit_fields(visitor); }, problems);
  problems.throw_if_any();
  return component;
}

}  // namespace gallop::config
