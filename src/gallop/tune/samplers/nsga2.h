#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "gallop/tune/sampler.h"

namespace gallop::tune {

/// NSGA-II (Deb et al., "A fast and elitist multiobjective genetic algorithm: NSGA-II", 2002) over
/// all parameters, for any number of objectives, with constrained domination. A parameter that is
/// active in only one parent is taken from it.
struct Nsga2Config {
  int64_t population = 50;
  /// "uniform": each value from either parent. "blx": uniform in the parents' range extended on
  /// both sides (BLX-0.5; Eshelman and Schaffer, 1993). "sbx": close to either parent (Deb and
  /// Agrawal, "Simulated binary crossover", 1995), for half of the values. Choices are always from
  /// either parent.
  std::string crossover = "uniform";
  double crossover_probability = 0.9;  ///< Otherwise the child has a single parent.
  double swap_probability = 0.5;       ///< Of taking a value from the second parent.
  /// Mutation probability per parameter; none: 1 / number of active parameters.
  std::optional<double> mutation_probability;
};

void visit(config::Visitor& visitor, Nsga2Config& config);
std::unique_ptr<Sampler> make_nsga2(const Nsga2Config& config, const StudySettings& settings);

}  // namespace gallop::tune
