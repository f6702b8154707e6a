#include "gallop/app/runs/cost_options.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "gallop/app/non_negative.h"

namespace gallop::app {

void CostOptions::add_to(CLI::App& parser) {
  parser.add_option("--country", country, "country code of the electricity: DE or DEU")
      ->envname("GALLOP_COUNTRY");
  parser.add_option("--grams", grams, "grams of CO2 per kWh, instead of a country's")
      ->check(non_negative());
  parser.add_option("--pue", pue, "power usage effectiveness of the data center")
      ->envname("GALLOP_PUE")
      ->check(CLI::Range(1.0, 10.0));
  parser.add_option("--price", price, "price of one hour of the machine")
      ->envname("GALLOP_PRICE")
      ->check(non_negative());
}

track::Surroundings CostOptions::surroundings() {
  if (!grams && !country.empty()) {
    const auto known = track::carbon_intensity(country);
    grams = known.grams;
    year = known.year;
  }
  return {.grams_per_kwh = grams, .pue = pue, .price_per_hour = price};
}

}  // namespace gallop::app
