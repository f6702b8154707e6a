// Against PyTorch's lr_scheduler: tests/parity/make_schedules.py made the fixture.
#include <cmath>
#include <fstream>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "unit/schedule/build.h"

namespace gallop::schedule {
namespace {

using nlohmann::json;

const std::set<std::string> kNotInPyTorch = {"inverse-sqrt", "wsd"};

json stored() {
  std::ifstream file(GALLOP_FIXTURES "/schedules.json");
  return json::parse(file);
}

TEST(Parity, EveryStepFollowsPyTorch) {
  const json all = stored();
  const double steps = all["steps"], per_epoch = all["steps_per_epoch"];
  const RunLength length{.samples = 3 * steps,
                         .samples_per_epoch = 3 * per_epoch,
                         .batch = 3,
                         .batches_per_epoch = per_epoch};
  for (const json& wanted : all["cases"]) {
    const auto schedule = build(wanted["recipe"].dump(), length);
    for (size_t step = 0; step < wanted["factor"].size(); ++step) {
      const double progress = static_cast<double>(step) / wanted["last"].get<double>();
      if (wanted.contains("metric")) {
        const double metric = wanted["metric"][step];
        schedule->evaluated(progress, {.loss = metric, .accuracy = metric});
      }
      EXPECT_NEAR(schedule->factor(progress), wanted["factor"][step].get<double>(), 1e-12)
          << wanted["recipe"] << " step " << step;
      ASSERT_EQ(schedule->momentum(progress).has_value(), wanted.contains("momentum"));
      if (!wanted.contains("momentum")) continue;
      EXPECT_NEAR(*schedule->momentum(progress), wanted["momentum"][step].get<double>(), 1e-12)
          << wanted["recipe"] << " step " << step;
    }
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
