#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "gallop/track/log.h"

namespace gallop::track {

/// What a run has taken, in all of its sessions, also in steps that it went back behind.
struct Energy {
  double joules = 0;
  std::string method;  ///< See SystemReading; empty where nothing was measured.
  double seconds = 0;  ///< In which it trained.
};

/// Adds it up, record by record, in any order.
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

/// Grams of CO2 equivalents for a kilowatt-hour of a country's electricity.
struct CarbonIntensity {
  double grams = 0;
  int year = 0;  ///< In which they were counted.
};

/// By the country's code, ISO 3166-1 alpha-2 or alpha-3, small letters too: "DE", "deu". Yearly
/// means of Our World in Data (Ember, Energy Institute), as CodeCarbon 3 has them. Throws
/// UsageError for a country that is not among them.
CarbonIntensity carbon_intensity(const std::string& country);

/// What surrounds a computer.
struct Surroundings {
  double grams_per_kwh = 0;
  double pue = 1;             ///< Power usage effectiveness: of the building to the computers.
  double price_per_hour = 0;  ///< Of the machine.
};

struct Footprint {
  double kwh = 0;  ///< With what the building takes besides.
  double grams = 0;
  double price = 0;
};

Footprint footprint_of(const Energy& energy, const Surroundings& surroundings);

}  // namespace gallop::track
