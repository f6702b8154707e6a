#include "gallop/kernel/update_table.h"

#include <array>
#include <utility>

#include "gallop/base/error.h"

namespace gallop::kernel {

namespace {

template <int kNumber>
UpdateRule entry() {
  using Rule = typename RuleOf<kNumber, UpdateRules>::Type;
  static_assert(Rule::kStates <= kMostStates && Rule::kRunning <= kMostRunning);
  static_assert(int{Rule::kFactors} <= kMostFactors && int{Rule::kOptions} <= kMostOptions);
  UpdateRule rule{.number = kNumber,
                  .name = Rule::kName,
                  .states = Rule::kStates,
                  .running = Rule::kRunning,
                  .factors = Rule::kFactors,
                  .options = Rule::kOptions,
                  .measures = Rule::kMeasures,
                  .signs_of_8_bits = EightBits<Rule>::kSigns,
                  .begin = Rule::template begin<double>,
                  .ratio = nullptr};
  if constexpr (Rule::kMeasures != Measures::kNothing) rule.ratio = Rule::template ratio<double>;
  return rule;
}

template <int... kNumbers>
std::array<UpdateRule, sizeof...(kNumbers)> entries(std::integer_sequence<int, kNumbers...>) {
  return {entry<kNumbers>()...};
}

}  // namespace

std::span<const UpdateRule> update_rules() {
  static const auto kTable = entries(std::make_integer_sequence<int, UpdateRules::kCount>());
  return kTable;
}

const UpdateRule& update_rule(std::string_view name) {
  for (const UpdateRule& rule : update_rules()) {
    if (name == rule.name) return rule;
  }
  throw InternalError("no update rule '" + std::string(name) + "'");
}

}  // namespace gallop::kernel
