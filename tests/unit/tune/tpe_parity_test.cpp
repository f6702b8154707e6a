// Against Optuna's TPE sampler: tests/parity/make_tpe.py made the fixture.
#include <cmath>
#include <fstream>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gallop/tune/samplers/parzen.h"
#include "gallop/tune/samplers/tpe_history.h"
#include "unit/fixtures.h"
#include "unit/tune/test_study.h"

namespace gallop::tune {
namespace {

using nlohmann::json;

json stored(const char* part) {
  std::ifstream file(fixtures() / "tpe.json");
  return json::parse(file).at(part);
}

ParzenEstimator estimator_of(const json& wanted, const Space& space) {
  std::vector<size_t> parameters;
  for (size_t i = 0; i < space.size(); ++i) parameters.push_back(i);
  using enum ParzenEstimator::Weights;
  return {space, parameters, wanted["equal_weights"].get<bool>() ? kEqual : kFading};
}

void expect_kernels(const json& wanted, ParzenEstimator& estimator) {
  for (size_t position = 0; position <= estimator.size(); ++position) {
    EXPECT_NEAR(estimator.weights()[position], wanted["weights"][position], 1e-11);
    const auto kernel = estimator.kernel(position);
    for (size_t axis = 0; axis < kernel.size(); ++axis) {
      for (size_t i = 0; i < kernel[axis].size(); ++i) {
        const double number = wanted["kernels"][axis][position][i];
        EXPECT_NEAR(kernel[axis][i], number, 1e-11 * std::max(1.0, std::abs(number)));
      }
    }
  }
}

void expect_densities(const json& wanted, ParzenEstimator& estimator) {
  const std::vector<double> densities =
      estimator.log_densities(wanted["queries"].get<std::vector<Point>>());
  for (size_t i = 0; i < densities.size(); ++i) {
    EXPECT_NEAR(densities[i], wanted["log_densities"][i], 1e-9);
  }
}

TEST(TpeParity, DensitiesMatchOptuna) {
  const json all = stored("estimators");
  ASSERT_GT(all.size(), 50);
  for (const json& wanted : all) {
    SCOPED_TRACE(wanted["space"].dump() + " with " + std::to_string(wanted["points"].size()));
    const Space space = Space::from_json(wanted["space"].dump());
    ParzenEstimator estimator = estimator_of(wanted, space);
    int64_t trial = 0;
    for (const json& point : wanted["points"]) estimator.insert(trial++, point.get<Point>());
    if (wanted.contains("kernels")) expect_kernels(wanted, estimator);
    expect_densities(wanted, estimator);
  }
}

TEST(TpeParity, AddedAndRemovedKernelsHaveNoEffect) {
  for (const json& wanted : stored("estimators")) {
    SCOPED_TRACE(wanted["space"].dump() + " with " + std::to_string(wanted["points"].size()));
    const Space space = Space::from_json(wanted["space"].dump());
    ParzenEstimator estimator = estimator_of(wanted, space);
    const auto points = wanted["points"].get<std::vector<Point>>();
    const auto queries = wanted["queries"].get<std::vector<Point>>();
    const auto count = static_cast<int64_t>(points.size());
    // In reverse order, with each query temporarily added.
    for (int64_t trial = count - 1; trial >= 0; --trial) {
      const int64_t guest = 10'000 + trial % 5;
      const Point& query = queries[static_cast<size_t>(trial % 5)];
      estimator.insert(guest, query);
      if (trial % 3 == 0) estimator.log_densities(queries);
      estimator.insert(trial, points[static_cast<size_t>(trial)]);
      if (trial % 2 == 0) estimator.log_densities(queries);
      estimator.erase(guest);
    }
    expect_densities(wanted, estimator);
  }
}

TEST(TpeParity, GoodTrialsMatchOptuna) {
  const json all = stored("divisions");
  ASSERT_GT(all.size(), 30);
  for (size_t index = 0; index < all.size(); ++index) {
    SCOPED_TRACE(index);
    const json& wanted = all[index];
    const size_t objectives = wanted["objectives"];
    TestStudy study(Space({{"x", Interval{}}}, {}), objectives, wanted["limits"]);
    TpeHistory history(objectives, /*counts_running=*/true);
    for (const json& trial : wanted["trials"]) {
      const int64_t number = study.start({0.5});
      history.change(number);
      for (const json& report : trial["reports"]) study.report(number, report[0], report[1]);
      const std::string state = trial["state"];
      if (state == "running") continue;
      const auto violations = trial["violations"].get<std::vector<double>>();
      if (state == "pruned") {
        study.end(number, TrialState::kPruned, {}, violations);
      } else {
        study.end(number, TrialState::kComplete, trial["losses"].get<std::vector<double>>(),
                  violations);
      }
    }
    std::set<int64_t> good, rest;
    for (const auto& move : history.update(study.study)) {
      (move.to == TpeHistory::Side::kGood ? good : rest).insert(move.trial);
    }
    EXPECT_EQ(good, wanted["good"].get<std::set<int64_t>>());
    EXPECT_EQ(rest, wanted["rest"].get<std::set<int64_t>>());
  }
}

}  // namespace
}  // namespace gallop::tune
