// Against PyTorch's lr_scheduler: tests/parity/make_schedules.py made the fixture.
#include <cmath>
#include <fstream>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "unit/fixtures.h"
#include "unit/schedule/build.h"

namespace gallop::schedule {
namespace {

using nlohmann::json;

const std::set<std::string> kNotInPyTorch = {"inverse-sqrt", "wsd"};

json stored() {
  std::ifstream file(fixtures() / "schedules.json");
  return json::parse(file);
}

// Largest difference from PyTorch along one run.
double largest_difference(const json& wanted, const RunLength& length) {
  const auto schedule = build(wanted["recipe"].dump(), length);
  double largest = 0;
  const auto compare = [&](double got, const json& number) {
    EXPECT_TRUE(std::isfinite(got)) << wanted["recipe"];
    largest = std::fmax(largest, std::abs(got - number.get<double>()));
  };
  for (size_t step = 0; step < wanted["factor"].size(); ++step) {
    const double progress = static_cast<double>(step) / wanted["last"].get<double>();
    if (wanted.contains("metric")) {
      const double metric = wanted["metric"][step];
      schedule->evaluated(progress, {.loss = metric, .accuracy = metric});
    }
    compare(schedule->factor(progress), wanted["factor"][step]);
    const auto momentum = schedule->momentum(progress);
    EXPECT_EQ(momentum.has_value(), wanted.contains("momentum")) << wanted["recipe"];
    if (momentum) compare(*momentum, wanted["momentum"][step]);
  }
  return largest;
}

// With --gtest_output=xml, the largest difference of each schedule is among the properties.
TEST(Parity, EveryStepFollowsPyTorch) {
  const json all = stored();
  const double steps = all["steps"], per_epoch = all["steps_per_epoch"];
  const RunLength length{.samples = 3 * steps,
                         .samples_per_epoch = 3 * per_epoch,
                         .batch = 3,
                         .batches_per_epoch = per_epoch};
  std::map<std::string, double> largest;
  for (const json& wanted : all["cases"]) {
    const double difference = largest_difference(wanted, length);
    EXPECT_LT(difference, 1e-12) << wanted["recipe"];
    double& of_schedule = largest[wanted["recipe"]["name"]];
    of_schedule = std::fmax(of_schedule, difference);
  }
  for (const auto& [name, difference] : largest) {
    RecordProperty(name, fmt::format("{:.1e}", difference));
  }
}

TEST(Parity, EveryScheduleThatPyTorchHasIsCompared) {
  std::set<std::string> compared = kNotInPyTorch;
  const json all = stored();
  for (const json& wanted : all["cases"]) compared.insert(wanted["recipe"]["name"]);
  for (const std::string& name : kSchedules.names()) EXPECT_EQ(compared.count(name), 1u) << name;
}

}  // namespace
}  // namespace gallop::schedule
