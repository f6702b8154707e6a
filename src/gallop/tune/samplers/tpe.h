#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gallop/tune/sampler.h"

namespace gallop::tune {

/// Tree-structured Parzen estimator: of some points drawn from the density of the good trials,
/// takes the one where it is largest beside the density of the rest (Bergstra et al., "Algorithms
/// for hyper-parameter optimization", 2011). What it does besides is as in Optuna 5: densities of
/// all parameters together (Falkner et al., "BOHB", 2018), trials that run count as bad ones (the
/// "constant liar" of Ginsbourger et al., 2010), several objectives (Ozaki et al., 2022), limits
/// (Watanabe and Hutter, "c-TPE", 2023).
///
/// Some things are unlike Optuna, each because it measured better (docs/tune.md), and but for the
/// second only with one objective. The first trials are quasi-random. Numbers with the same
/// condition have one density. Of parameters with a condition, the best tenth of the trials that
/// have them are good, too, and trials in which the choice that the condition asks for was another
/// one count less. And kernels of good trials, whose small number makes Optuna's narrowest wide,
/// may be narrower, for parameters without a condition, by the factor 1 + (narrowing - 1) / (1 +
/// running): the more trials run, the less is known of what is asked for, and the more it pays to
/// spread.
struct TpeConfig {
  int64_t startup = 10;
  int64_t candidates = 24;
  double narrowing = 2;
  std::string densities = "auto";
  bool count_running = true;
};

/// Chooses some parameters of points, the others of which are chosen elsewhere.
class TpeChoice {
 public:
  /// `chosen`: for each parameter of the space whether it is chosen. Those that conditions of
  /// chosen ones ask for are chosen, too.
  TpeChoice(const TpeConfig& config, const StudySettings& settings,
            const std::vector<bool>& chosen);
  ~TpeChoice();

  /// A point like `point` but for what is chosen after the study's trials. Nothing where fewer than
  /// TpeConfig::startup of them are finished, or no candidate is allowed.
  std::optional<Point> choose(const Study& study, Point point, Random& random);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

void visit(config::Visitor& visitor, TpeConfig& config);
std::unique_ptr<Sampler> make_tpe(const TpeConfig& config, const StudySettings& settings);

}  // namespace gallop::tune
