#pragma once

#include <cmath>
#include <string>

#include <CLI/TypeTools.hpp>
#include <CLI/Validators.hpp>

namespace gallop::app {

/// Requires a finite number of at least 0. The message of CLI::NonNegativeNumber has the greatest
/// number with all its 309 digits.
inline CLI::Validator non_negative() {
  return CLI::Validator(
      [](const std::string& text) {
        double number = 0;
        const bool fits =
            CLI::detail::lexical_cast(text, number) && number >= 0 && std::isfinite(number);
        return fits ? std::string() : "must be a number of at least 0, but is " + text;
      },
      "NONNEGATIVE");
}

}  // namespace gallop::app
