#pragma once

#include <string>

#include "gallop/tune/sampler.h"

namespace gallop::tune {

/// Tree-structured Parzen estimator: of some points drawn from the density of the good trials,
/// takes the one where it is largest beside the density of the rest (Bergstra et al., "Algorithms
/// for hyper-parameter optimization", 2011). What it does besides is as in Optuna 5: densities of
/// all parameters together (Falkner et al., "BOHB", 2018), trials that run count as bad ones (the
/// "constant liar" of Ginsbourger et al., 2010), several objectives (Ozaki et al., 2022), limits
/// (Watanabe and Hutter, "c-TPE", 2023).
struct TpeConfig {
  int64_t startup = 10;
  int64_t candidates = 24;
  std::string densities = "auto";
  bool count_running = true;
};

void visit(config::Visitor& visitor, TpeConfig& config);
std::unique_ptr<Sampler> make_tpe(const TpeConfig& config, const StudySettings& settings);

}  // namespace gallop::tune
