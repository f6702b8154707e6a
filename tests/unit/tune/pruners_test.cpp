// Against Optuna: tests/parity/make_pruners.py made the fixture.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gallop/tune/pruner.h"
#include "gallop/tune/pruners/hyperband.h"
#include "gallop/tune/pruners/signed_rank.h"
#include "unit/fixtures.h"
#include "unit/tune/build.h"
#include "unit/tune/test_study.h"

namespace gallop::tune {
namespace {

using nlohmann::json;

const json& stored() {
  static const json all = [] {
    std::ifstream file(fixtures() / "pruners.json");
    return json::parse(file);
  }();
  return all;
}

TrialState state_of(const std::string& name) {
  if (name == "complete") return TrialState::kComplete;
  return name == "pruned" ? TrialState::kPruned : TrialState::kFailed;
}

/// A stored study, test event by event; calls `judge` after each report.
template <typename Judge>
void replay(const json& study, const json& brackets, TestStudy& test, const Judge& judge) {
  const Objective& objective = test.study.settings().objectives[0];
  for (const json& event : study["events"]) {
    const int64_t number = event[0];
    const auto loss = [&] {
      return event[2].is_null() ? NAN : objective.signed_value(event[2].get<double>());
    };
    if (event[1].is_number()) {
      test.report(number, event[1], loss());
      judge(test.trial(number));
    } else if (event[1] == "begin") {
      test.queue({0.5}, brackets.is_null() ? 0 : brackets[static_cast<size_t>(number)].get<int>());
      test.run(number);
    } else {
      const TrialState state = state_of(event[1]);
      test.end(number, state,
               state == TrialState::kComplete ? std::vector{loss()} : std::vector<double>{});
    }
  }
}

StudySettings settings_of(const json& study) {
  StudySettings settings = plain_settings();
  settings.objectives[0].maximize = study["maximize"];
  return settings;
}

// Whether the last reports, which the pruner patience compares with earlier ones, are all NaN.
bool ends_in_nan(const Trial& trial, const json& pruner) {
  if (pruner["name"] != "patience") return false;
  const size_t last = pruner["patience"].get<size_t>() + 1;
  const auto& reports = trial.reports;
  return reports.size() > last &&
         std::all_of(reports.end() - static_cast<std::ptrdiff_t>(last), reports.end(),
                     [](const Report& report) { return std::isnan(report.loss); });
}

TEST(Pruners, MatchOptuna) {
  for (const json& item : stored()["cases"]) {
    const json& study = stored()["studies"][item["study"].get<size_t>()];
    TestStudy test(settings_of(study));
    const auto pruner = build_pruner(item["pruner"].dump(), test.study.settings());
    std::string answers, expected = item["answers"];
    replay(study, item.value("brackets", json()), test, [&](const Trial& trial) {
      answers += pruner->should_stop(test.study, trial) ? '1' : '0';
      // Optuna continues if all reports within the patience are NaN.
      if (!ends_in_nan(trial, item["pruner"])) return;
      const bool is_alone = !item["pruner"].contains("then");
      expected[answers.size() - 1] = is_alone ? '1' : answers.back();
    });
    EXPECT_EQ(answers, expected) << item["pruner"] << " study " << item["study"];
  }
}

TEST(SignedRank, MatchesSciPy) {
  for (const json& item : stored()["signed_rank"]) {
    const auto differences = item["differences"].get<std::vector<double>>();
    EXPECT_NEAR(signed_rank_p(differences), item["p"].get<double>(), 1e-13) << item;
  }
}

const std::vector<std::string> kPruners = {
    "{name: none}",
    "{name: median, startup_trials: 2}",
    "{name: percentile, percentile: 70, startup_trials: 1, min_trials: 2}",
    "{name: patience, patience: 1}",
    "{name: patience, patience: 1, then: median, startup_trials: 1}",
    "{name: threshold, upper: 1}",
    "{name: successive-halving, reduction_factor: 2}",
    "{name: successive-halving, min_resource: 2, bootstrap_count: 2}",
    "{name: successive-halving, min_resource: 2, max_resource: 8}",
    "{name: successive-halving, max_resource: 11, rungs: 2, reduction_factor: 3}",
    "{name: hyperband, reduction_factor: 2}",
    "{name: hyperband, max_resource: 20}",
    "{name: asha, reduction_factor: 2}",
    "{name: asha, variant: promotion, reduction_factor: 2}",
    "{name: asha, variant: promotion, max_resource: 4, reduction_factor: 2}",
    "{name: wilcoxon}",
};

/// A study in which workers die and trials go on from an earlier step, with other losses, and whole
/// trials are taken up again. Calls `judge` after each report.
template <typename Judge>
void simulate(uint64_t seed, const Pruner& pruner, TestStudy& test, const Judge& judge) {
  Random random(seed, 0);
  const auto any_of = [&](const auto& numbers) {
    return *std::next(numbers.begin(), static_cast<int64_t>(random.below(numbers.size())));
  };
  for (int event = 0; event < 600; ++event) {
    const auto& study = test.study;
    const double draw = random.uniform();
    if (study.running().size() < 3) {
      const auto next = static_cast<int64_t>(study.trials().size());
      const int32_t bracket = pruner.bracket(study, next);
      test.run(study.waiting().empty() || draw < 0.5
                   ? test.queue({0.5}, bracket, pruner.first_stop(study, bracket))
                   : any_of(study.waiting()));
      continue;
    }
    if (draw < 0.02 && !study.finished().empty()) {
      const int64_t number = any_of(study.finished());
      if (test.trial(number).is_finished()) test.queue_again(number);
      continue;
    }
    const int64_t number = any_of(study.running());
    const auto& reports = test.trial(number).reports;
    if (draw < 0.06) {
      test.queue_again(number, test.trial(number).last_step);
    } else if (draw < 0.15 && !reports.empty()) {
      const double loss = random.uniform();
      if (draw < 0.08) {
        test.end(number, TrialState::kPruned, {});
      } else {
        test.complete(number, loss);
      }
    } else {
      const int64_t back = reports.empty() || random.uniform() < 0.9 ? -1 : 2;
      const int64_t last = reports.empty() ? 0 : reports.back().step;
      const double loss = random.uniform() < 0.05 ? NAN : std::round(40 * random.uniform()) / 20;
      test.report(number, std::max<int64_t>(last - back, 1), loss);
      judge(test.trial(number));
    }
  }
}

TEST(Pruners, AreDeterministicAcrossRestarts) {
  for (const std::string& recipe : kPruners) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      TestStudy test(plain_settings());
      const StudySettings& settings = test.study.settings();
      const auto pruner = build_pruner(recipe, settings);
      simulate(seed, *pruner, test, [&](const Trial& trial) {
        const auto fresh = build_pruner(recipe, settings);
        EXPECT_EQ(pruner->should_stop(test.study, trial), fresh->should_stop(test.study, trial))
            << recipe;
        const auto next = pruner->promote(test.study), again = fresh->promote(test.study);
        EXPECT_EQ(next ? next->trial : -1, again ? again->trial : -1) << recipe;
      });
    }
  }
}

TEST(Pruners, RejectSeveralObjectives) {
  StudySettings settings = plain_settings();
  settings.objectives.push_back({"memory", false});
  for (const std::string& recipe : kPruners) {
    if (recipe == "{name: none}") continue;
    const std::string said = refusal([&] { build_pruner(recipe, settings); });
    const std::string name = recipe.substr(7, recipe.find_first_of(",}") - 7);
    EXPECT_EQ(said, "pruner " + name + ": supports a single objective; the study has 2");
  }
}

TEST(Pruners, RejectContradictingOptions) {
  const auto said = [](const std::string& recipe) {
    return refusal([&] { build_pruner(recipe, plain_settings()); });
  };
  EXPECT_EQ(said("{name: threshold}"), "pruner threshold: neither lower nor upper is given");
  EXPECT_EQ(said("{name: threshold, lower: 2, upper: 1}"),
            "pruner threshold: lower is above upper");
  EXPECT_EQ(said("{name: successive-halving, bootstrap_count: 1}"),
            "pruner successive-halving: bootstrap_count needs a min_resource");
  EXPECT_EQ(said("{name: successive-halving, rungs: 2}"),
            "pruner successive-halving: rungs needs a max_resource, and no min_resource");
  EXPECT_EQ(said("{name: hyperband, bootstrap_count: 1}"),
            "pruner hyperband: bootstrap_count needs a max_resource");
  EXPECT_EQ(said("{name: hyperband, min_resource: 5, max_resource: 4}"),
            "pruner hyperband: max_resource is below min_resource");
  EXPECT_EQ(said("{name: asha, min_resource: 5, max_resource: 4}"),
            "pruner asha: max_resource is below min_resource");
  EXPECT_EQ(said("{name: patience, then: asha}"), "pruner patience: then cannot be asha");
}

/// The step at which the pruner stops a trial with these losses; 0 if it does not.
int64_t stop_of(const std::string& recipe, const std::vector<double>& losses) {
  TestStudy test(plain_settings());
  const auto pruner = build_pruner(recipe, test.study.settings());
  test.run(test.queue());
  int64_t step = 0;
  for (const double loss : losses) {
    test.report(0, ++step, loss);
    if (pruner->should_stop(test.study, test.trial(0))) return step;
  }
  return 0;
}

TEST(Patience, PrunesOnlyTrialsThatBecomeWorse) {
  const std::string patience = "{name: patience, patience: 2}";
  EXPECT_EQ(stop_of(patience, std::vector<double>(20, 1.0)), 0);
  EXPECT_EQ(stop_of(patience, {2, 1, 3, 3, 1, 3, 3, 1}), 0);
  EXPECT_EQ(stop_of(patience, {2, 1, 3, 3, 3}), 5);
  const std::string tolerant = "{name: patience, patience: 2, min_delta: 0.5}";
  EXPECT_EQ(stop_of(tolerant, {1, 1.5, 1.5, 1.5, 1.5}), 0);
  EXPECT_EQ(stop_of(tolerant, {1, 1.75, 1.75, 1.75}), 4);
}

TEST(Patience, NanIsWorse) {
  const auto stops_after = [](const std::vector<double>& losses) {
    return stop_of("{name: patience, patience: 1}", losses);
  };
  EXPECT_EQ(stops_after({1, NAN, NAN, 0.5}), 3);
  EXPECT_EQ(stops_after({NAN, NAN, NAN}), 3);
  EXPECT_EQ(stops_after({NAN, 5, 6, 4}), 0);
  EXPECT_EQ(stops_after({1, NAN, 0.5, NAN, 0.25}), 0);
}

TEST(Hyperband, HasTheBracketsOfItsPaper) {
  EXPECT_EQ(bracket_sizes(1, 81, 3), (std::vector<int64_t>{81, 34, 15, 8, 5}));
  // Five rungs of a factor of 3, where a logarithm in floating point finds fewer.
  EXPECT_EQ(bracket_sizes(1, 243, 3).size(), 6u);
  EXPECT_EQ(bracket_sizes(1, 242, 3).size(), 5u);
  EXPECT_EQ(bracket_sizes(2, 3, 4), (std::vector<int64_t>{1}));
  for (const int64_t factor : {2, 3, 1000}) {
    const auto sizes = bracket_sizes(1, std::numeric_limits<int64_t>::max(), factor);
    double sum = 0;
    for (const int64_t size : sizes) sum += static_cast<double>(size);
    EXPECT_GT(*std::min_element(sizes.begin(), sizes.end()), 0);
    EXPECT_LT(sum, 9e18);
  }
}

TEST(Hyperband, DrawsBracketsByTheirWeights) {
  const StudySettings settings = plain_settings();
  const auto pruner = build_pruner("{name: hyperband, max_resource: 81}", settings);
  const Study study(settings);
  std::map<int32_t, int> drawn;
  constexpr int kTrials = 14'300;
  for (int64_t number = 0; number < kTrials; ++number) ++drawn[pruner->bracket(study, number)];
  const std::vector<int> sizes = {8100, 3400, 1500, 800, 500};  // 100 times of 143.
  // Within five standard deviations.
  for (int bracket = 0; bracket < 5; ++bracket) {
    const double share = sizes[bracket] / static_cast<double>(kTrials);
    EXPECT_NEAR(drawn[bracket], sizes[bracket], 5 * std::sqrt(kTrials * share * (1 - share)));
  }
}

TEST(Hyperband, TakesItsLengthFromTheFirstCompleteTrial) {
  TestStudy test(plain_settings());
  const auto pruner = build_pruner("{name: hyperband}", test.study.settings());
  for (int64_t number = 0; number < 20; ++number) {
    EXPECT_EQ(pruner->bracket(test.study, number), 0);
  }
  test.run(test.queue());
  for (int64_t step = 1; step <= 9; ++step) test.report(0, step, 1);
  EXPECT_FALSE(pruner->should_stop(test.study, test.trial(0)));
  test.complete(0, 1);
  std::map<int32_t, int> drawn;
  for (int64_t number = 0; number < 100; ++number) ++drawn[pruner->bracket(test.study, number)];
  EXPECT_EQ(drawn.size(), 3u);
  test.run(test.queue());
  test.report(1, 1, 2);
  EXPECT_TRUE(pruner->should_stop(test.study, test.trial(1)));
}

TEST(SuccessiveHalving, TakesItsFirstRungFromTheFirstCompleteTrial) {
  TestStudy test(plain_settings());
  const auto pruner = build_pruner("{name: successive-halving}", test.study.settings());
  test.run(test.queue());
  for (int64_t step = 50; step <= 500; step += 50) test.report(0, step, 1);
  test.complete(0, 1);
  test.run(test.queue());
  test.report(1, 4, 2);
  EXPECT_FALSE(pruner->should_stop(test.study, test.trial(1)));
  test.report(1, 5, 2);
  EXPECT_TRUE(pruner->should_stop(test.study, test.trial(1)));
}

TEST(SuccessiveHalving, DoesNotPruneNearlyCompleteTrials) {
  TestStudy test(plain_settings());
  const auto pruner = build_pruner(
      "{name: successive-halving, min_resource: 3, max_resource: 9, reduction_factor: 3}",
      test.study.settings());
  for (const double loss : {1.0, 2.0}) {
    const int64_t number = test.queue();
    test.run(number);
    for (const int64_t step : {3, 9}) {
      test.report(number, step, loss);
      EXPECT_EQ(pruner->should_stop(test.study, test.trial(number)), loss > 1 && step == 3);
    }
  }
}

// As in W&B: not powers of the factor times an integer.
TEST(SuccessiveHalving, HasRungsAtFractionsOfTheLength) {
  const auto compared = [](const std::string& more) {
    TestStudy test(plain_settings());
    const auto pruner = build_pruner(
        "{name: successive-halving, max_resource: 100, reduction_factor: 3, " + more + "}",
        test.study.settings());
    std::vector<int64_t> steps;
    for (const double loss : {1.0, 2.0}) {
      const int64_t number = test.queue();
      test.run(number);
      for (int64_t step = 1; step <= 120; ++step) {
        test.report(number, step, loss);
        if (pruner->should_stop(test.study, test.trial(number))) steps.push_back(step);
      }
    }
    return steps;
  };
  EXPECT_EQ(compared("rungs: 3"), (std::vector<int64_t>{3, 11, 33}));
  EXPECT_EQ(compared("rungs: 9"), (std::vector<int64_t>{1, 3, 11, 33}));
  EXPECT_EQ(compared("rungs: 3, min_early_stopping_rate: 1"), (std::vector<int64_t>{11, 33}));
  EXPECT_EQ(compared("rungs: 3, min_early_stopping_rate: 7"), std::vector<int64_t>());
}

TEST(SuccessiveHalving, ComparesATrialOnceAtAReportThatPassesSeveralRungs) {
  TestStudy test(plain_settings());
  const auto pruner =
      build_pruner("{name: asha, min_resource: 1, reduction_factor: 2}", test.study.settings());
  const std::vector<double> losses = {3, 2, 4, 2.5};
  const std::vector<bool> stops = {false, false, true, false};
  for (size_t i = 0; i < losses.size(); ++i) {
    const int64_t number = test.queue();
    test.run(number);
    test.report(number, 5, losses[i]);
    // Half of 3 and 2 is 2.5, that of 3, 2 and 4 is 3.
    EXPECT_EQ(pruner->should_stop(test.study, test.trial(number)), stops[i]) << i;
  }
}

TEST(Asha, HasNoRungBeyondTheLargestStep) {
  TestStudy test(plain_settings());
  const auto pruner = build_pruner("{name: asha}", test.study.settings());
  const int64_t number = test.queue();
  test.run(number);
  test.report(number, std::numeric_limits<int64_t>::max(), 1);
  EXPECT_FALSE(pruner->should_stop(test.study, test.trial(number)));
}

/// A study with asha by promotion; trials report `loss` at each step.
class Promoted {
 public:
  explicit Promoted(const std::string& more = "")
      : test(plain_settings()),
        pruner(build_pruner(
            "{name: asha, variant: promotion, min_resource: 2, reduction_factor: 3" + more + "}",
            test.study.settings())) {}

  int64_t begin() {
    const int64_t number = test.queue({0.5}, 0, pruner->first_stop(test.study, 0));
    return number;
  }
  void run(int64_t number, double loss) {
    test.run(number);
    const auto& reports = test.trial(number).reports;
    int64_t step = reports.empty() ? 0 : reports.back().step;
    do {
      test.report(number, ++step, loss);
    } while (!pruner->should_stop(test.study, test.trial(number)));
    EXPECT_EQ(step, test.trial(number).last_step);
    test.end(number, TrialState::kPruned, {});
  }
  int64_t promoted() {
    const auto next = pruner->promote(test.study);
    if (!next) return -1;
    test.queue_again(next->trial, next->last_step);
    return next->trial;
  }

  TestStudy test;
  std::unique_ptr<Pruner> pruner;
};

// Algorithm 2 of Li et al., 2020, by hand.
TEST(Asha, PromotesTheBestThirdOfEachRung) {
  Promoted asha;
  EXPECT_EQ(asha.promoted(), -1);
  const std::vector<double> losses = {5, 1, 4, 2, 3, 6, 7, 8, 9};
  // Who is owed a promotion once so many have come to the first rung, and its loss at the second.
  const std::map<size_t, std::pair<int64_t, double>> owed = {
      {3, {1, 1.0}}, {6, {3, 0.5}}, {9, {4, 0.1}}};
  for (size_t i = 0; i < losses.size(); ++i) {
    asha.run(asha.begin(), losses[i]);
    EXPECT_EQ(asha.test.trial(static_cast<int64_t>(i)).last_step, 2);
    const auto found = owed.find(i + 1);
    EXPECT_EQ(asha.promoted(), found == owed.end() ? -1 : found->second.first);
    if (found == owed.end()) continue;
    EXPECT_EQ(asha.test.trial(found->second.first).last_step, 6);
    asha.run(found->second.first, found->second.second);
  }
  // The best of three at the second rung.
  EXPECT_EQ(asha.promoted(), 4);
  EXPECT_EQ(asha.test.trial(4).last_step, 18);
  EXPECT_EQ(asha.promoted(), -1);
}

// The second rung, at step 6, is at the end or beyond it.
TEST(Asha, CompletesTrialsThatArePromotedToTheirEnd) {
  for (const int64_t last : {6, 5}) {
    Promoted asha(", max_resource: " + std::to_string(last));
    for (const double loss : {3.0, 1.0, 2.0}) asha.run(asha.begin(), loss);
    EXPECT_EQ(asha.promoted(), 1);
    EXPECT_EQ(asha.test.trial(1).last_step, 0);
    asha.test.run(1);
    for (int64_t step = 3; step <= last; ++step) {
      asha.test.report(1, step, 1);
      EXPECT_FALSE(asha.pruner->should_stop(asha.test.study, asha.test.trial(1)));
    }
    asha.test.complete(1, 1);
    EXPECT_EQ(asha.promoted(), -1);
  }
  Promoted longer(", max_resource: 7"), shortest(", max_resource: 2");
  for (const double loss : {3.0, 1.0, 2.0}) longer.run(longer.begin(), loss);
  EXPECT_EQ(longer.promoted(), 1);
  EXPECT_EQ(longer.test.trial(1).last_step, 6);
  EXPECT_EQ(shortest.test.trial(shortest.begin()).last_step, 0);
}

TEST(Asha, DoesNotStopCompleteTrials) {
  TestStudy test(plain_settings());
  const auto pruner =
      build_pruner("{name: asha, max_resource: 4, reduction_factor: 2}", test.study.settings());
  for (const double loss : {1.0, 2.0}) {
    const int64_t number = test.queue();
    test.run(number);
    for (const int64_t step : {2, 4}) {
      test.report(number, step, loss);
      EXPECT_EQ(pruner->should_stop(test.study, test.trial(number)), loss > 1 && step == 2);
    }
  }
}

TEST(Asha, DoesNotPromoteTrialsWithNan) {
  Promoted asha;
  for (const double loss : {1.0, 2.0, 3.0}) asha.run(asha.begin(), loss);
  EXPECT_EQ(asha.promoted(), 0);
  asha.run(0, NAN);
  EXPECT_EQ(asha.promoted(), -1);
}

}  // namespace
}  // namespace gallop::tune
