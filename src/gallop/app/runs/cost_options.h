#pragma once

#include <string>

#include "gallop/track/footprint.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace gallop::app {

/// The options `--country`, `--grams`, `--pue` and `--price`, by which energy becomes CO2 and
/// money.
struct CostOptions {
  std::string country;
  double grams = 0, pue = 1, price = 0;
  int year = 0;  ///< Of what is known of the country.

  void add_to(CLI::App& parser);
  /// Once the arguments are read. Throws UsageError for a country that is not known.
  track::Surroundings surroundings();
};

}  // namespace gallop::app
