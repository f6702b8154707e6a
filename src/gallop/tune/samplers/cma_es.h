#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gallop/tune/sampler.h"

namespace gallop::tune {

/// Covariance matrix adaptation evolution strategy (Hansen, "The CMA evolution strategy: a
/// tutorial", 2016) over all intervals that have no condition, each as a share of its coordinates.
/// Choices and parameters with conditions are chosen by densities of the best and of the rest, as
/// TPE does, or drawn at random. Workers do not wait for each other: a trial that ends after its
/// generation counts in the current one, moved to where that could have drawn it (Hansen,
/// "Injecting external solutions into CMA-ES", 2011).
struct CmaEsConfig {
  int64_t population = 0;  ///< Trials of a generation; 0 for 4 + floor(3 ln dimensions).
  /// It begins at the best of so many complete trials, which are random; in the middle for 0.
  int64_t startup = 0;
  double deviation = 1.0 / 6;
  /// IPOP: Auger and Hansen, "A restart CMA evolution strategy with increasing population size",
  /// 2005. BIPOP: Hansen, "Benchmarking a BI-population CMA-ES", 2009.
  std::string restarts = "ipop";
  std::string independent = "tpe";
  bool adapt_rates = false;
  bool pruned = false;
};

void visit(config::Visitor& visitor, CmaEsConfig& config);

/// Throws UsageError for a study of several objectives, or without an interval to search.
std::unique_ptr<Sampler> make_cma_es(const CmaEsConfig& config, const StudySettings& settings);

}  // namespace gallop::tune
