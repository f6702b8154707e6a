// Schedules that PyTorch does not have, by their papers' formulas; and rejected options.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "unit/schedule/build.h"

namespace gallop::schedule {
namespace {

// Compares the schedule with a formula of progress, along the whole run.
void expect_formula(const std::string& yaml, double (*formula)(double progress)) {
  const auto schedule = build(yaml);
  for (int i = 0; i <= 1000; ++i) {
    const double progress = i / 1000.;
    EXPECT_NEAR(schedule->factor(progress), formula(progress), 1e-12) << yaml << " " << progress;
  }
}

TEST(InverseSqrt, MatchesTheTransformerSchedule) {
  // d^-0.5 min(t^-0.5, t w^-1.5), over its peak (d w)^-0.5.
  expect_formula("{name: inverse-sqrt, warmup: 0.1}", [](double t) {
    const double w = 0.1;
    return t == 0 ? 0 : std::sqrt(w) * std::fmin(std::pow(t, -0.5), t * std::pow(w, -1.5));
  });
}

TEST(Wsd, DecaysOnlyAtTheEnd) {
  expect_formula("{name: wsd, warmup: 0.1, decay: 0.2}", [](double t) {
    if (t < 0.1) return t / 0.1;
    return t <= 0.8 ? 1 : 1 - std::sqrt((t - 0.8) / 0.2);
  });
  expect_formula("{name: wsd, warmup: 4 steps, decay: 1 epoch, shape: linear, final: 0.1}",
                 [](double t) {
                   if (t < 0.1) return t / 0.1;
                   return t <= 0.75 ? 1 : 1 - 0.9 * (t - 0.75) / 0.25;
                 });
  expect_formula("{name: wsd, warmup: 0, decay: 0.5, shape: cosine}", [](double t) {
    return t <= 0.5 ? 1 : 0.5 + 0.5 * std::cos(M_PI * (t - 0.5) / 0.5);
  });
  expect_formula("{name: wsd, warmup: 0, decay: 0}", [](double) { return 1.0; });
}

TEST(Warmup, PrecedesAScheduleOverTheRestOfTheRun) {
  expect_formula("{name: cosine, warmup: 0.2, final: 0.5}", [](double t) {
    return t < 0.2 ? t / 0.2 : 0.75 + 0.25 * std::cos(M_PI * (t - 0.2) / 0.8);
  });
  expect_formula(
      "{name: linear, warmup: 0.2, warmup_kind: exponential, warmup_start: 0.01}",
      [](double t) { return t < 0.2 ? std::pow(0.01, 1 - t / 0.2) : 1 - (t - 0.2) / 0.8; });
  expect_formula(
      "{name: polynomial, warmup: 1 epoch, warmup_kind: constant, warmup_start: 0.1, "
      "power: 2}",
      [](double t) { return t < 0.25 ? 0.1 : std::pow((1 - t) / 0.75, 2); });
  // Epochs and steps of a line count from the end of the warm-up.
  expect_formula("{name: linear, warmup: 1 epoch, length: 1 epoch}", [](double t) {
    return t < 0.25 ? t / 0.25 : std::fmax(0, 1 - (t - 0.25) / 0.25);
  });
}

TEST(Chained, MultipliesItsMembers) {
  expect_formula(
      "{name: chained, members: [{warmup: {length: 0.1}}, {step: {step_size: 1 epoch}}]}",
      [](double t) { return std::fmin(1, t / 0.1) * std::pow(0.1, std::floor(t / 0.25)); });
}

TEST(Sequence, RunsEachMemberOnItsPart) {
  expect_formula(
      "{name: sequence, milestones: [0.2], members: [{warmup: {length: 1}}, cosine]}",
      [](double t) { return t < 0.2 ? t / 0.2 : 0.5 + 0.5 * std::cos(M_PI * (t - 0.2) / 0.8); });
  // For members, too, epochs are those of the run.
  expect_formula(
      "{name: sequence, milestones: [2 epochs], members: [constant, {linear: {length: 1 "
      "epoch}}]}",
      [](double t) { return t < 0.5 ? 1 : std::fmax(0, 1 - (t - 0.5) / 0.25); });
}

TEST(Sequence, UsesTheMomentumOfTheActiveMember) {
  const auto schedule = build(
      "{name: sequence, milestones: [0.5], members: [{cyclic: {period: 1, base_momentum: 0.8, "
      "max_momentum: 0.9}}, constant]}");
  EXPECT_EQ(schedule->momentum(0), 0.9);
  EXPECT_NEAR(*schedule->momentum(0.25), 0.8, 1e-12);
  EXPECT_EQ(schedule->momentum(0.5), std::nullopt);
}

TEST(Plateau, UsesOnlyEvaluationsOfItsPart) {
  const auto schedule = build(
      "{name: sequence, milestones: [0.5], members: [constant, {reduce-on-plateau: {patience: "
      "0}}]}");
  for (int i = 0; i < 5; ++i) schedule->evaluated(0.1, {.loss = 1});
  EXPECT_EQ(schedule->factor(0.6), 1);
  schedule->evaluated(0.6, {.loss = 1});
  schedule->evaluated(0.7, {.loss = 1});
  EXPECT_EQ(schedule->factor(0.8), 0.1);
  EXPECT_EQ(schedule->factor(0.2), 1);
}

TEST(Plateau, NanIsNoImprovement) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto decays_after = [](const std::vector<double>& losses) {
    const auto schedule = build("{name: reduce-on-plateau, patience: 1}");
    for (size_t i = 0; i < losses.size(); ++i) {
      schedule->evaluated(0, {.loss = losses[i]});
      if (schedule->factor(0) < 1) return i + 1;
    }
    return size_t{0};
  };
  EXPECT_EQ(decays_after({kNan, 1, 0.5, kNan, 0.25}), 0u);
  EXPECT_EQ(decays_after({1, kNan, kNan}), 3u);
  EXPECT_EQ(decays_after({-kInfinity, 1, 0.5, 0.25}), 0u);
}

TEST(Plateau, FollowsAnyMetricInItsDirection) {
  const auto evaluation = [](double value, bool higher_is_better) {
    return Metrics{.others = {{"other", 1, true}, {"f1", value, higher_is_better}}};
  };
  for (const bool is_higher_better : {true, false}) {
    const double sign = is_higher_better ? 1 : -1;
    const auto schedule = build("{name: reduce-on-plateau, patience: 0, metric: f1}");
    EXPECT_EQ(schedule->followed_metrics(), std::vector<std::string>{"f1"});
    schedule->evaluated(0.1, evaluation(-5 * sign, is_higher_better));
    schedule->evaluated(0.2, evaluation(5 * sign, is_higher_better));
    EXPECT_EQ(schedule->factor(0), 1);
    schedule->evaluated(0.3, evaluation(4 * sign, is_higher_better));
    EXPECT_EQ(schedule->factor(0), 0.1);
    // An undefined metric is not better.
    schedule->evaluated(0.4, evaluation(std::nan(""), is_higher_better));
    EXPECT_NEAR(schedule->factor(0), 0.01, 1e-12);
  }
  // Nor is it the best if it is the first.
  const auto schedule = build("{name: reduce-on-plateau, patience: 1, metric: f1}");
  schedule->evaluated(0.1, evaluation(std::nan(""), true));
  schedule->evaluated(0.2, evaluation(-7, true));
  schedule->evaluated(0.3, evaluation(-8, true));
  EXPECT_EQ(schedule->factor(0), 1);
  const auto chained = build("{name: chained, members: [cosine, {reduce-on-plateau: {}}]}");
  EXPECT_EQ(chained->followed_metrics(), std::vector<std::string>{"loss"});
}

TEST(Refused, ContradictionsAreNamed) {
  const std::pair<const char*, const char*> kCases[] = {
      {"{name: one-cycle, warmup: 1.2}",
       "recipe:1:27: warmup: must be a fraction of the run from 0 to 1, or such as '30 epochs' or "
       "'500 steps', not '1.2'"},
      {"{name: one-cycle, warmup: 5 epochs}",
       "schedule one-cycle: a warm-up of '5 epochs' is 1.25 of the run; with 2 phases it must be "
       "shorter than it"},
      {"{name: one-cycle, warmup: 1}", "with 2 phases it must be shorter than it"},
      {"{name: one-cycle, warmup: 0.6, phases: 3}", "with 3 phases it must be at most half of it"},
      {"{name: one-cycle, base_momentum: 0.8}",
       "base_momentum and max_momentum must be set together"},
      {"{name: cyclic, base_momentum: 0.9, max_momentum: 0.8}",
       "base_momentum 0.9 is above max_momentum 0.8"},
      {"{name: cyclic, period: 0}", "schedule cyclic: period is '0'; it must be above 0"},
      {"{name: cyclic, rise: 1}", "rise: must be a number above 0 and below 1"},
      {"{name: cosine-restarts, period: 0 epochs}", "period is '0 epochs'; it must be above 0"},
      {"{name: cosine-restarts, multiplier: 0.5}", "multiplier: must be a number from 1 to 100"},
      {"{name: step, step_size: 0}", "schedule step: step_size is '0'"},
      {"{name: step, gamma: 0}", "gamma: must be a number above 0"},
      {"{name: exponential, step_size: 0 steps}", "schedule exponential: step_size is '0 steps'"},
      {"{name: linear, length: 0}", "schedule linear: length is '0'"},
      {"{name: multi-step, milestones: [0.5, 0.5]}",
       "schedule multi-step: milestones must ascend, but '0.5' comes after '0.5'"},
      {"{name: multi-step, milestones: [3 epochs, 5 steps]}",
       "milestones must ascend, but '5 steps' comes after '3 epochs'"},
      {"{name: multi-step, milestones: []}", "schedule multi-step: milestones must not be empty"},
      {"{name: multi-step, milestones: [0]}", "the first milestone is '0'"},
      {"{name: multi-step, milestones: [0.5, soon]}",
       "recipe:1:38: milestones: must be a fraction"},
      {"{name: cosine, warmup: 5 epochs}", "a warm-up of '5 epochs' is longer than the run"},
      {"{name: cosine, warmup: 0.1, warmup_kind: constant}",
       "schedule cosine: the constant warm-up starts at 0"},
      {"{name: warmup, kind: exponential}", "schedule warmup: the exponential warm-up starts at 0"},
      {"{name: inverse-sqrt, warmup: 0}", "schedule inverse-sqrt: warmup is 0"},
      {"{name: wsd, warmup: 0.5, decay: 0.6}",
       "schedule wsd: a warm-up of '0.5' and a decay of '0.6' are longer than the run"},
      {"{name: chained}", "schedule chained: no members"},
      {"{name: chained, members: []}", "schedule chained: no members"},
      {"{name: chained, members: [{cosin: {}}]}", "did you mean 'cosine'?"},
      {"{name: chained, members: [{sequence: {milestones: [0.5], members: [constant, {cyclic: "
       "{base_momentum: 0.8, max_momentum: 0.9}}]}}, {one-cycle: {base_momentum: 0.85, "
       "max_momentum: 0.95}}]}",
       "schedule chained: more than one member sets a momentum"},
      {"{name: chained, members: [{cyclic: {base_momentum: 0.8, max_momentum: 0.9}}, {cyclic: "
       "{base_momentum: 0.8, max_momentum: 0.9}}]}",
       "more than one member sets a momentum"},
      {"{name: sequence}", "schedule sequence: no members"},
      {"{name: sequence, members: [constant, cosine]}",
       "schedule sequence: 2 members need 1 milestones, not 0"},
      {"{name: sequence, members: [constant, cosine], milestones: [4 epochs]}",
       "milestone '4 epochs' is not within the run"},
      {"{name: sequence, members: [constant, {chained: {}}], milestones: [0.5]}",
       "schedule chained: no members"},
  };
  for (const auto& [yaml, message] : kCases) {
    EXPECT_NE(refusal(yaml).find(message), std::string::npos) << yaml << ": " << refusal(yaml);
  }
  EXPECT_NE(refusal("{name: step, step_size: 5 steps}", RunLength())
                .find("the schedule is given in steps, but the run's length in them is unknown"),
            std::string::npos);
}

// Steps after which a cycle ends, in a run of 40.
std::vector<int> ends_of(const std::string& yaml) {
  const auto schedule = build(yaml);
  std::vector<int> ends;
  for (int step = 1; step <= 40; ++step) {
    const auto over = schedule->cycle_ends((step - 1) / 40., step / 40.);
    if (!over) return {-1};
    if (*over) ends.push_back(step);
  }
  return ends;
}

TEST(Schedules, ReportTheEndsOfCycles) {
  using Steps = std::vector<int>;
  const Steps none = {-1};
  EXPECT_EQ(ends_of("{name: cosine}"), none);
  EXPECT_EQ(ends_of("{name: cosine-restarts, period: 0.25}"), Steps({10, 20, 30, 40}));
  EXPECT_EQ(ends_of("{name: cosine-restarts, period: 3 steps}"),
            Steps({3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 33, 36, 39}));
  EXPECT_EQ(ends_of("{name: cosine-restarts, period: 5 steps, multiplier: 2}"), Steps({5, 15, 35}));
  EXPECT_EQ(ends_of("{name: cyclic, period: 1 epoch}"), Steps({10, 20, 30, 40}));
  EXPECT_EQ(ends_of("{name: chained, members: [linear, {cyclic: {period: 1 epoch}}]}"),
            Steps({10, 20, 30, 40}));
  EXPECT_EQ(ends_of("{name: chained, members: [linear, cosine]}"), none);
  EXPECT_EQ(ends_of("{name: sequence, milestones: [0.25], members: [{warmup: {length: 1}}, "
                    "{cosine-restarts: {period: 15 steps}}]}"),
            Steps({25, 40}));
  EXPECT_EQ(ends_of("{name: sequence, milestones: [0.5], members: [{cosine-restarts: {period: 8 "
                    "steps}}, cosine]}"),
            Steps({8, 16, 20}));
}

}  // namespace
}  // namespace gallop::schedule
