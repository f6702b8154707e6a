#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "gallop/track/log.h"

namespace gallop::track {

/// The energy that a run has used in all sessions, including superseded steps.
struct Energy {
  double joules = 0;
  std::string method;  ///< See SystemReading; empty if it was not measured.
  double seconds = 0;  ///< Seconds of training.
};

/// Sums the energy of records, in any order.
class EnergySum {
 public:
  void add(const Record& record);
  Energy energy() const;

 private:
  struct Span {
    double begin = 0, end = 0;
  };
  Energy energy_;
  std::map<int64_t, Span> sessions_;
};

Energy energy_of(const Log& log);

/// The carbon intensity of a country's electricity, in grams of CO2 equivalents per kilowatt-hour.
struct CarbonIntensity {
  double grams = 0;
  int year = 0;  ///< Year of the data.
};

/// By ISO 3166-1 alpha-2 or alpha-3 code, case-insensitive: "DE", "deu". Yearly means of Our World
/// in Data (Ember, Energy Institute), as in CodeCarbon 3. Throws UsageError for an unknown country.
CarbonIntensity carbon_intensity(const std::string& country);

/// The environment of a computer.
struct Surroundings {
  std::optional<double> grams_per_kwh;  ///< Of CO2; nullopt: unknown.
  double pue = 1;                       ///< Power usage effectiveness of the data center.
  double price_per_hour = 0;            ///< Of the machine.
};

struct Footprint {
  double kwh = 0;  ///< Including the overhead of the data center.
  double grams = 0;
  double price = 0;
};

Footprint footprint_of(const Energy& energy, const Surroundings& surroundings);

}  // namespace gallop::track
