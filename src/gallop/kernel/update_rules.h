#pragma once

#include "gallop/kernel/rules/adadelta.h"
#include "gallop/kernel/rules/adagrad.h"
#include "gallop/kernel/rules/adam.h"
#include "gallop/kernel/rules/adamax.h"
#include "gallop/kernel/rules/lamb.h"
#include "gallop/kernel/rules/lars.h"
#include "gallop/kernel/rules/lion.h"
#include "gallop/kernel/rules/nadam.h"
#include "gallop/kernel/rules/radam.h"
#include "gallop/kernel/rules/rmsprop.h"
#include "gallop/kernel/rules/schedule_free.h"
#include "gallop/kernel/rules/sgd.h"
#include "gallop/kernel/state_map.h"

namespace gallop::kernel {

/// Every rule. NVRTC compiles it too.
using UpdateRules = RuleList<
    SgdRule<Momentum::kNone, Decay::kCoupled>, SgdRule<Momentum::kPlain, Decay::kCoupled>,
    SgdRule<Momentum::kNesterov, Decay::kCoupled>, SgdRule<Momentum::kNone, Decay::kDecoupled>,
    SgdRule<Momentum::kPlain, Decay::kDecoupled>, SgdRule<Momentum::kNesterov, Decay::kDecoupled>,
    AdamRule<Decay::kCoupled, false>, AdamRule<Decay::kCoupled, true>,
    AdamRule<Decay::kDecoupled, false>, AdamRule<Decay::kDecoupled, true>, NadamRule, RadamRule,
    AdamaxRule, AdagradRule, AdadeltaRule, RmspropRule<false, false>, RmspropRule<false, true>,
    RmspropRule<true, false>, RmspropRule<true, true>, LionRule, ScheduleFreeRule<false>,
    ScheduleFreeRule<true>, LarsRule, LambRule>;

/// For rules whose states can be kept in 8 bits, which of them have a sign, as bits; below 0 for
/// others.
template <typename Rule>
struct EightBits {
  static constexpr int kSigns = -1;
};
template <Decay kDecay>
struct EightBits<AdamRule<kDecay, false>> {
  static constexpr int kSigns = 0b01;
};
template <>
struct EightBits<LionRule> {
  static constexpr int kSigns = 0b1;
};

/// The most that a rule may have.
inline constexpr int kMostStates = 4, kMostRunning = 4, kMostFactors = 16, kMostOptions = 12;

}  // namespace gallop::kernel
