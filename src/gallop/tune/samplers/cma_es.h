#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gallop/tune/sampler.h"

namespace gallop::tune {

/// Covariance matrix adaptation evolution strategy (Hansen, "The CMA evolution strategy: a
/// tutorial", 2016) over all unconditional intervals, in coordinates of [0, 1]. Choices and
/// conditional parameters are chosen by densities as in TPE, or drawn at random. Workers do not
/// wait for each other: a trial that ends after its generation counts in the current one, moved to
/// a point that that could have drawn (Hansen, "Injecting external solutions into CMA-ES", 2011).
struct CmaEsConfig {
  int64_t population = 0;  ///< Trials of a generation; 0 for 4 + floor(3 ln dimensions).
  /// Number of random complete trials, at the best of which it begins; in the center for 0.
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

/// Throws UsageError for several objectives, or a space without an interval.
std::unique_ptr<Sampler> make_cma_es(const CmaEsConfig& config, const StudySettings& settings);

}  // namespace gallop::tune
