#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "gallop/tune/sampler.h"

namespace gallop::tune {

/// The genetic algorithm NSGA-II (Deb et al., "A fast and elitist multiobjective genetic algorithm:
/// NSGA-II", 2002) over all parameters, for any number of objectives, with limits by constrained
/// domination. A parameter that only one parent has is taken from it.
struct Nsga2Config {
  int64_t population = 50;
  /// "uniform": each value from either parent. "blx": uniform from a little below both to a little
  /// above (BLX-0.5; Eshelman and Schaffer, 1993). "sbx": close to either (Deb and Agrawal,
  /// "Simulated binary crossover", 1995), for one value in two. Choices are always from either.
  std::string crossover = "uniform";
  double crossover_probability = 0.9;  ///< Else the child has one parent.
  double swap_probability = 0.5;       ///< Of a value of the second parent.
  /// Of a value that is drawn at random; one in as many as a child has where nothing is said.
  std::optional<double> mutation_probability;
};

void visit(config::Visitor& visitor, Nsga2Config& config);
std::unique_ptr<Sampler> make_nsga2(const Nsga2Config& config, const StudySettings& settings);

}  // namespace gallop::tune
