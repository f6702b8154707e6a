#pragma once

#include <optional>
#include <string>

#include "gallop/track/footprint.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace gallop::app {

/// The options `--country`, `--grams`, `--pue` and `--price`, which convert energy to CO2 and
/// money.
struct CostOptions {
  std::string country;
  std::optional<double> grams;  ///< Of CO2 per kWh; nullopt: unknown.
  double pue = 1, price = 0;
  int year = 0;  ///< Of the country's data.

  void add_to(CLI::App& parser);
  /// Must be called after parsing. Throws UsageError for an unknown country.
  track::Surroundings surroundings();
};

}  // namespace gallop::app
