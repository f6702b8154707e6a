#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gallop/tune/sampler.h"

namespace gallop::tune {

/// Tree-structured Parzen estimator: of some candidates sampled from the density of the good
/// trials, takes the one with the largest density ratio to the rest (Bergstra et al., "Algorithms
/// for hyper-parameter optimization", 2011). Extensions are as in Optuna 5: multivariate densities
/// (Falkner et al., "BOHB", 2018), running trials as bad ones ("constant liar", Ginsbourger et al.,
/// 2010), several objectives (Ozaki et al., 2022), and constraints (Watanabe and Hutter, "c-TPE",
/// 2023).
///
/// Differences from Optuna, each because it measured better (docs/tune.md), and, except for the
/// second one, with one objective only: the first trials are quasi-random; numbers with the same
/// condition share one density; for conditional parameters, the best tenth of the trials that have
/// them is good as well, and trials with another choice of the parameter that the condition depends
/// on are down-weighted; and the kernels of good trials of unconditional parameters may be narrower
/// than Optuna's minimum by the factor 1 + (narrowing - 1) / (1 + running): the more trials run,
/// the less is known about their results, and the more exploration pays off.
struct TpeConfig {
  int64_t startup = 10;
  int64_t candidates = 24;
  double narrowing = 2;
  std::string densities = "auto";
  bool count_running = true;
};

/// Chooses some parameters of points; the others are chosen elsewhere.
class TpeChoice {
 public:
  /// `chosen` selects parameters of the space; those that their conditions depend on are chosen,
  /// too.
  TpeChoice(const TpeConfig& config, const StudySettings& settings,
            const std::vector<bool>& chosen);
  ~TpeChoice();

  /// A copy of `point` with the chosen parameters set. Nothing if fewer than TpeConfig::startup
  /// trials are finished, or if no candidate is allowed.
  std::optional<Point> choose(const Study& study, Point point, Random& random);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

void visit(config::Visitor& visitor, TpeConfig& config);
std::unique_ptr<Sampler> make_tpe(const TpeConfig& config, const StudySettings& settings);

}  // namespace gallop::tune
