#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gallop/kernel/update_rules.h"

namespace gallop::kernel {

/// A type-erased rule of update_rules.h.
struct UpdateRule {
  size_t number;  ///< Index in UpdateRules.
  const char* name;
  int states, running, factors, options;
  Measures measures;
  int signs_of_8_bits;  ///< EightBits::kSigns of the rule.
  /// The rule's functions; `factors` and `next` have room for the maximum.
  void (*begin)(const UpdateMoment<double>& at, double* factors, double* next);
  /// Null for rules without a trust ratio.
  double (*ratio)(const UpdateMoment<double>& at, double parameter_norm, double measured_norm);
};

std::span<const UpdateRule> update_rules();

/// The rule of this name. Throws InternalError if there is none.
const UpdateRule& update_rule(std::string_view name);

}  // namespace gallop::kernel
