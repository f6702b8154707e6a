#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gallop/schedule/schedule.h"

namespace gallop::schedule {

/// Multiplies the factor by `factor` after more than `patience` consecutive evaluations that have
/// not improved on the best by `threshold`, then waits for `cooldown` evaluations. The rules are
/// those of PyTorch's ReduceLROnPlateau.
struct PlateauConfig {
  std::string metric = "loss";
  double factor = 0.1;
  int64_t patience = 10;
  double threshold = 1e-4;
  std::string threshold_mode = "rel";
  int64_t cooldown = 0;
  double min = 0;
  double eps = 1e-8;  ///< Smaller changes are not applied.
};

void visit(config::Visitor& visitor, PlateauConfig& config);

std::unique_ptr<Schedule> make_plateau(const PlateauConfig& config, const RunLength& length);

}  // namespace gallop::schedule
