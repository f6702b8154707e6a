#pragma once

#include <cstddef>
#include <string>

#include "gallop/profile/profile.h"

namespace gallop::profile {

/// 0.123 as "12.3 %"
std::string percent(double share);

struct TextConfig {
  size_t layers = 10, operators = 8;  ///< The most lines of each table.
  size_t columns = 120;               ///< Lines are truncated; 0: never.
  std::string items = "samples";      ///< "images"
};

/// The profile on one screen: the step, its phases, its hardware limit, the slowest layers and
/// operators, and the loader.
std::string profile_text(const Profile& profile, const TextConfig& config);

/// {"first_step", "steps", "samples", "step_ms", "phases": [...], "layers": [...], ...}; times are
/// in milliseconds a step.
std::string profile_json(const Profile& profile, const MachinePeaks& peaks);

}  // namespace gallop::profile
