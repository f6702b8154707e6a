#include "gallop/tune/nni.h"

#include <string>

#include <gtest/gtest.h>

#include "gallop/tune/sweep.h"
#include "unit/base/error_of.h"

namespace gallop::tune {
namespace {

Space space_of(const std::string& json) {
  return parse_sweep(TuneRegistries(), "metric: loss\n" + sweep_of_nni(json, "space.json"),
                     "sweep.yaml", "s")
      .settings.space;
}

Interval interval_of(const std::string& type, const std::string& values) {
  const Space space = space_of(R"({"x": {"_type": ")" + type + R"(", "_value": )" + values + "}}");
  return *space[0].interval();
}

std::string mistake_in(const std::string& json) {
  return error_of([&] { sweep_of_nni(json, "space.json"); });
}

// NNI's documentation, "Search Space Types": randint is from lower (inclusive) to upper
// (exclusive), q types are clip(round(draw / q) * q, lower, upper).
TEST(Nni, HasIntervals) {
  const Interval whole = interval_of("randint", "[3, 8]");
  EXPECT_TRUE(whole.integer);
  EXPECT_EQ(whole.low, 3);
  EXPECT_EQ(whole.high, 7);
  EXPECT_EQ(count(interval_of("randint", "[3, 4]")), 1);

  const Interval uniform = interval_of("uniform", "[0, 1]");
  EXPECT_FALSE(uniform.integer);
  EXPECT_EQ(uniform.step, 0);
  EXPECT_EQ(uniform.scale, Scale::kLinear);
  EXPECT_EQ(uniform.high, 1);

  const Interval stepped = interval_of("quniform", "[0.5, 2, 0.25]");
  EXPECT_FALSE(stepped.integer);
  EXPECT_EQ(count(stepped), 7);
  EXPECT_EQ(stepped.low, 0.5);
  EXPECT_TRUE(interval_of("quniform", "[16, 128, 16]").integer);

  const Interval log = interval_of("loguniform", "[1e-4, 0.1]");
  EXPECT_EQ(log.scale, Scale::kLog);
  EXPECT_EQ(log.low, 1e-4);
  EXPECT_EQ(log.high, 0.1);
  EXPECT_EQ(count(interval_of("qloguniform", "[2, 8, 2]")), 4);
}

TEST(Nni, HasNormalDistributions) {
  for (const auto& [type, scale] : {std::pair{"normal", Scale::kNormal},
                                    {"lognormal", Scale::kLogNormal},
                                    {"qnormal", Scale::kNormal},
                                    {"qlognormal", Scale::kLogNormal}}) {
    const bool has_step = type[0] == 'q';
    const Interval interval = interval_of(type, has_step ? "[1, 0.5, 0.1]" : "[1, 0.5]");
    EXPECT_EQ(interval.scale, scale) << type;
    EXPECT_EQ(interval.mean, 1) << type;
    EXPECT_EQ(interval.deviation, 0.5) << type;
    EXPECT_EQ(interval.step, has_step ? 0.1 : 0) << type;
  }
}

TEST(Nni, HasChoices) {
  const Space space =
      space_of(R"({"act": {"_type": "choice", "_value": ["relu", 0.5, true, [1, 2]]}})");
  EXPECT_EQ(space[0].choices()->values,
            (std::vector<std::string>{"\"relu\"", "0.5", "true", "[1,2]"}));
}

// The example of NNI's documentation on nested choices, shortened.
TEST(Nni, HasNestedChoices) {
  const Space space = space_of(R"({
    "layer0": {"_type": "choice", "_value": [
      {"_name": "Empty"},
      {"_name": "Conv", "kernel_size": {"_type": "choice", "_value": [1, 2, 3, 5]}},
      {"_name": "Max_pool", "pooling_size": {"_type": "choice", "_value": [2, 3, 5]}},
      {"_name": "Avg_pool", "pooling_size": {"_type": "choice", "_value": [2, 3, 5]}}]},
    "lr": {"_type": "uniform", "_value": [0, 1]}})");
  ASSERT_EQ(space.size(), 5);
  EXPECT_EQ(space[0].choices()->values,
            (std::vector<std::string>{"\"Empty\"", "\"Conv\"", "\"Max_pool\"", "\"Avg_pool\""}));
  EXPECT_EQ(space[1].name, "layer0.Conv.kernel_size");
  EXPECT_EQ(space[1].condition->choices, std::vector<size_t>{1});
  EXPECT_EQ(space[3].name, "layer0.Avg_pool.pooling_size");
  EXPECT_EQ(space[3].condition->choices, std::vector<size_t>{3});
  EXPECT_FALSE(space[4].condition);
}

TEST(Nni, RejectsUnsupportedTypesByName) {
  EXPECT_EQ(mistake_in("[1]"), "space.json: not a search space of NNI, a map in JSON");
  EXPECT_EQ(mistake_in(R"({"x": {"y": 1}, "y": 2, "x": {"_type": "choice", "_value": [1]}})"),
            "space.json: x: duplicate key");
  EXPECT_EQ(mistake_in(R"({"x": {"_type": "choice", "_value": [1], "_value": [2]}})"),
            "space.json: _value: duplicate key");
  EXPECT_EQ(mistake_in("{"), "space.json: not a search space of NNI, a map in JSON");
  const auto of = [](const std::string& definition) {
    return mistake_in("{\"x\": " + definition + "}");
  };
  EXPECT_EQ(of("3"), "space.json: x: expected {\"_type\": ..., \"_value\": [...]}");
  EXPECT_EQ(of(R"({"_type": "layer_choice", "_value": [1]})"),
            "space.json: x: unsupported _type 'layer_choice'; supported are "
            "choice, randint, uniform, quniform, loguniform, qloguniform, normal, qnormal, "
            "lognormal and qlognormal");
  EXPECT_EQ(of(R"({"_type": "uniform", "_value": [1]})"),
            "space.json: x: _value of uniform is [low, high], in numbers");
  EXPECT_EQ(of(R"({"_type": "quniform", "_value": [1, 10, "2"]})"),
            "space.json: x: _value of quniform is [low, high, q], in numbers");
  EXPECT_NE(of(R"({"_type": "randint", "_value": [1, 1]})").find("high exclusive"),
            std::string::npos);
  EXPECT_NE(of(R"({"_type": "quniform", "_value": [1, 10, 2]})").find("use bounds that are"),
            std::string::npos);
  EXPECT_NE(of(R"({"_type": "qnormal", "_value": [1, 1, 0]})").find("q: must be above 0"),
            std::string::npos);
  EXPECT_NE(of(R"({"_type": "choice", "_value": [{"a": 1}]})").find("needs a '_name'"),
            std::string::npos);
  EXPECT_NE(of(R"({"_type": "choice", "_value": [{"_name": "a"}, [1, 2]]})").find("[1,2]"),
            std::string::npos);
  EXPECT_NE(of(R"({"_type": "choice", "_value": []})").find("no values to choose"),
            std::string::npos);
  EXPECT_NE(
      of(R"({"_type": "uniform", "_value": [1, 0]})").find("the lower bound is above the upper"),
      std::string::npos);
}

}  // namespace
}  // namespace gallop::tune
