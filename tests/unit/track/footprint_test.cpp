#include "gallop/track/footprint.h"

#include <gtest/gtest.h>

#include "unit/base/error_of.h"

namespace gallop::track {
namespace {

// Luccioni, Viguier, Ligozat 2022, "Estimating the Carbon Footprint of BLOOM": 433,196 kWh at 57 g.
TEST(Footprint, MatchesThePublishedFootprintOfBloom) {
  const Energy energy{.joules = 433196 * 3.6e6, .method = "nvml", .seconds = 0};
  const Footprint found = footprint_of(energy, {.grams_per_kwh = 57});
  EXPECT_NEAR(found.kwh, 433196, 1e-6);
  EXPECT_NEAR(found.grams / 1e6, 24.69, 0.005);
}

TEST(Footprint, IncludesPueAndPrice) {
  const Footprint found = footprint_of({.joules = 7.2e6, .method = "rapl", .seconds = 5400},
                                       {.grams_per_kwh = 100, .pue = 1.5, .price_per_hour = 2});
  EXPECT_DOUBLE_EQ(found.kwh, 3);
  EXPECT_DOUBLE_EQ(found.grams, 300);
  EXPECT_DOUBLE_EQ(found.price, 3);
}

TEST(Footprint, SupportsBothCountryCodes) {
  EXPECT_EQ(carbon_intensity("FR").grams, 56);
  EXPECT_EQ(carbon_intensity("fra").grams, 56);
  EXPECT_EQ(carbon_intensity("US").year, 2023);
  EXPECT_NE(error_of([] { carbon_intensity("XX"); }).find("country 'XX'"), std::string::npos);
  EXPECT_NE(error_of([] { carbon_intensity(""); }), "");
}

TEST(Energy, SumsAllSessions) {
  Log log;
  const auto add = [&](int64_t session, double time, std::map<std::string, double> values) {
    Record record{.session = session, .time = time, .kind = values.empty() ? "step" : "system"};
    record.values = std::move(values);
    if (!record.values.empty()) record.texts["energy"] = "rapl";
    log.records.push_back(record);
  };
  EXPECT_EQ(energy_of(log).method, "");
  add(1, 100, {});
  add(1, 110, {{"joules", 50}});
  log.records.back().superseded = true;  // Superseded steps also consumed energy.
  add(2, 1000, {});
  add(2, 1020, {{"joules", 30}});
  const Energy energy = energy_of(log);
  EXPECT_EQ(energy.joules, 80);
  EXPECT_EQ(energy.seconds, 30);
  EXPECT_EQ(energy.method, "rapl");
}

}  // namespace
}  // namespace gallop::track
