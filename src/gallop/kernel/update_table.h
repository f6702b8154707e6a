#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gallop/kernel/update_rules.h"

namespace gallop::kernel {

/// A rule of update_rules.h, as functions know it that are not made for each.
struct UpdateRule {
  size_t number;  ///< Among UpdateRules.
  const char* name;
  int states, running, factors, options;
  Measures measures;
  int signs_of_8_bits;  ///< EightBits::kSigns of it.
  /// The rule's; `factors` and `next` have room for all.
  void (*begin)(const UpdateMoment<double>& at, double* factors, double* next);
  /// Null without a trust ratio.
  double (*ratio)(const UpdateMoment<double>& at, double parameter_norm, double measured_norm);
};

std::span<const UpdateRule> update_rules();

/// Throws InternalError where there is none of this name.
const UpdateRule& update_rule(std::string_view name);

}  // namespace gallop::kernel
