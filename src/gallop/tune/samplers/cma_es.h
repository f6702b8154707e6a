#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gallop/tune/sampler.h"

namespace gallop::tune {

/// Covariance matrix adaptation evolution strategy (Hansen, "The CMA evolution strategy: a
/// tutorial", 2016) over all unconditional intervals, in coordinates of [0, 1]. Categorical and
/// conditional parameters are sampled by TPE or at random. Asynchronous: a trial that ends after
/// its generation updates the current one, moved to a plausible distance (Hansen, "Injecting
/// external solutions into CMA-ES", 2011).
struct CmaEsConfig {
  int64_t population = 0;  ///< Population size; 0: 4 + floor(3 ln dimensions).
  /// Number of random complete trials, the best of which is the initial mean; 0: the center.
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

/// Throws UsageError for several objectives, or a space without an unconditional interval.
std::unique_ptr<Sampler> make_cma_es(const CmaEsConfig& config, const StudySettings& settings);

}  // namespace gallop::tune
