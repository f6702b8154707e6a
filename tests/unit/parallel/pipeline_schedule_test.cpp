#include "gallop/parallel/pipeline_schedule.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <regex>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gallop/parallel/pipeline_simulation.h"
#include "unit/base/error_of.h"
#include "unit/fixtures.h"
#include "unit/parallel/every_pipeline_schedule.h"

namespace gallop::parallel {
namespace {

std::string text_of_rank(const PipelineSchedule& schedule, size_t rank) {
  std::vector<std::string> texts;
  for (const PipelineAction& action : schedule.actions[rank]) texts.push_back(text_of(action));
  return fmt::format("{}", fmt::join(texts, " "));
}

// tests/parity/make_pipeline_schedules.py made the fixture.
TEST(PipelineSchedule, HasTheOrderOfPyTorch) {
  std::ifstream file(fixtures() / "pipeline_schedules.json");
  const auto cases = nlohmann::json::parse(file);
  ASSERT_GT(cases.size(), 40U);
  for (const auto& one : cases) {
    const auto schedule = make_pipeline_schedule(one["name"].get<std::string>(), one["ranks"],
                                                 one["micro_batches"], one["stages_per_rank"]);
    for (size_t rank = 0; rank < schedule.actions.size(); ++rank) {
      EXPECT_EQ(text_of_rank(schedule, rank), one["actions"][rank])
          << one["name"] << ", rank " << rank << " of " << one["ranks"] << ", "
          << one["micro_batches"] << " micro-batches, " << one["stages_per_rank"] << " stages";
    }
  }
}

struct Times {
  double forward, input, weight;
  int ranks, micro_batches;
  double hop;
  // Makespans of gpipe and 1f1b, interleaved, zero-bubble, zbv and dualpipev.
  std::array<double, 5> makespans;
};

// Exact rationals, from event simulations of PyTorch's own lists.
TEST(PipelineSimulation, HasTheExactMakespan) {
  for (const Times& times : {Times{1, 1, 1, 2, 4, 0, {15, 13.5, 13, 12.5, 13}},
                             Times{1, 1, 1, 4, 8, 0, {33, 28.5, 27, 25.5, 27}},
                             Times{1, 1, 1, 8, 24, 0, {93, 82.5, 79, 75.5, 79}},
                             Times{3, 4, 2, 4, 8, 0, {99, 85.5, 87, 78, 84}},
                             Times{3, 4, 2, 8, 24, 0, {279, 247.5, 251, 230, 246}},
                             Times{1, 1, 1, 4, 8, 0.25, {37, 32, 30, 28.75, 32}}}) {
    const auto makespan = [&](const char* name) {
      const auto schedule = make_pipeline_schedule(name, times.ranks, times.micro_batches);
      return simulate(schedule, PipelineCosts::of_equal_stages(schedule, times.forward, times.input,
                                                               times.weight, times.hop))
          .makespan;
    };
    const std::string text =
        fmt::format("F {} I {} W {}, {} ranks, {} micro-batches, hop {}", times.forward,
                    times.input, times.weight, times.ranks, times.micro_batches, times.hop);
    if (times.hop == 0) {
      EXPECT_EQ(makespan("gpipe"), times.makespans[0]) << text;
    }
    EXPECT_EQ(makespan("1f1b"), times.makespans[0]) << text;
    EXPECT_EQ(makespan("interleaved-1f1b"), times.makespans[1]) << text;
    EXPECT_EQ(makespan("zero-bubble"), times.makespans[2]) << text;
    EXPECT_EQ(makespan("zbv"), times.makespans[3]) << text;
    EXPECT_EQ(makespan("dualpipev"), times.makespans[4]) << text;
  }
  const auto schedule = make_pipeline_schedule("interleaved-1f1b", 4, 8, 4);
  EXPECT_EQ(simulate(schedule, PipelineCosts::of_equal_stages(schedule, 1, 1, 1)).makespan, 26.25);
}

// (p - 1) / (m + p - 1) of the time.
TEST(PipelineSimulation, ReportsTheBubble) {
  const auto schedule = make_pipeline_schedule("1f1b", 4, 12);
  const auto timeline = simulate(schedule, PipelineCosts::of_equal_stages(schedule, 1, 1, 1));
  EXPECT_DOUBLE_EQ(timeline.bubble(), 3.0 / 15);
  EXPECT_DOUBLE_EQ(timeline.busy(2), 36);
  const auto pairs = make_pipeline_schedule("dualpipev", 4, 12);
  EXPECT_DOUBLE_EQ(simulate(pairs, PipelineCosts::of_equal_stages(pairs, 1, 1, 1)).busy(2), 36);
}

TEST(PipelineSchedule, HoldsTheActivationsOfFewMicroBatches) {
  const auto held = [](const char* name, int stages_per_rank = 0) {
    const auto all = held_micro_batches(make_pipeline_schedule(name, 4, 12, stages_per_rank));
    return *std::ranges::max_element(all);
  };
  EXPECT_EQ(held("gpipe"), 12);
  EXPECT_EQ(held("1f1b"), 4);
  EXPECT_EQ(held("interleaved-1f1b"), 4 + 3.0 / 2);
  EXPECT_EQ(held("zero-bubble"), 4);
  EXPECT_EQ(held("zbv"), 4);
  EXPECT_EQ(held("dualpipev"), 4.5);
  EXPECT_EQ(held_micro_batches(make_pipeline_schedule("1f1b", 4, 12)),
            (std::vector<double>{4, 3, 2, 1}));
}

// Any numbers: each pass once, of each stage in the order of micro-batches, so that sums have the
// bits of one process; and no rank waits for ever.
TEST(PipelineSchedule, ComputesEachPassOnceInTheOrderOfMicroBatches) {
  int schedules = 0;
  for_each_schedule(8, 20, 4, [&](const PipelineSchedule& schedule) {
    ++schedules;
    std::map<std::pair<int, PipelinePass>, int> next;
    for (size_t rank = 0; rank < schedule.actions.size(); ++rank) {
      for (const auto& [pass, stage, micro_batch, is_paired] : schedule.actions[rank]) {
        ASSERT_EQ(schedule.rank_of(stage), static_cast<int>(rank)) << text_of(schedule);
        const auto take = [&, stage = stage, micro_batch = micro_batch](PipelinePass one) {
          ASSERT_EQ(micro_batch, (next[{stage, one}]++)) << text_of(schedule);
        };
        if (pass == PipelinePass::kBackward) {
          take(PipelinePass::kInputGradient);
          take(PipelinePass::kWeightGradient);
        } else {
          take(pass);
        }
      }
    }
    ASSERT_EQ(next.size(), static_cast<size_t>(3 * schedule.stages())) << text_of(schedule);
    for (const auto& [key, count] : next) {
      ASSERT_EQ(count, schedule.micro_batches) << text_of(schedule);
    }
    const auto costs = PipelineCosts::of_equal_stages(schedule, 3, 4, 2, 0.5);
    ASSERT_GT(simulate(schedule, costs).makespan, 0) << text_of(schedule);
  });
  EXPECT_GT(schedules, 900);
}

TEST(PipelineSchedule, PlacesStages) {
  const auto loop = make_pipeline_schedule("interleaved-1f1b", 3, 6);
  EXPECT_EQ(loop.stages_of(1), (std::vector<int>{1, 4}));
  const auto v = make_pipeline_schedule("zbv", 3, 6);
  EXPECT_EQ(v.stages_of(0), (std::vector<int>{0, 5}));
  EXPECT_EQ(v.stages_of(2), (std::vector<int>{2, 3}));
  EXPECT_TRUE(v.splits_backward());
  EXPECT_FALSE(loop.splits_backward());
}

TEST(PipelineSchedule, RejectsNumbersWithTheNearestThatItAllows) {
  const auto error = [](const char* name, int ranks, int micro_batches, int stages_per_rank = 0) {
    return error_of([&] { make_pipeline_schedule(name, ranks, micro_batches, stages_per_rank); });
  };
  EXPECT_EQ(
      error("2f2b", 2, 4),
      "unknown pipeline schedule '2f2b'; known are gpipe, 1f1b, interleaved-1f1b, zero-bubble, "
      "zbv, dualpipev");
  EXPECT_EQ(error("interleaved-1f1b", 4, 9),
            "9 micro-batches cannot be divided into 2 equal rounds of about 4 (the number of "
            "ranks); the nearest numbers are 8 and 10");
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (int count = ranks; count <= 40; ++count) {
      const std::string text = error("interleaved-1f1b", ranks, count);
      std::smatch nearest;
      if (text.empty()) continue;
      ASSERT_TRUE(std::regex_search(text, nearest, std::regex("numbers are (\\d+) and (\\d+)$")));
      const int before = std::stoi(nearest[1]), after = std::stoi(nearest[2]);
      EXPECT_TRUE(before < count && count < after) << text;
      EXPECT_EQ(error("interleaved-1f1b", ranks, before), "");
      EXPECT_EQ(error("interleaved-1f1b", ranks, after), "");
    }
  }
  EXPECT_EQ(error("dualpipev", 4, 6),
            "dualpipev needs at least twice as many micro-batches as ranks: 8 instead of 6");
  EXPECT_EQ(error("1f1b", 4, 8, 2), "1f1b has 1 stage on each rank, not 2");
  EXPECT_EQ(error("interleaved-1f1b", 4, 8, 1),
            "interleaved-1f1b has at least 2 stages on each rank, not 1");
  EXPECT_EQ(error("gpipe", 0, 4), "0 ranks: a pipeline has at least 1");
  EXPECT_EQ(error("gpipe", 2, 0), "0 micro-batches: a pipeline needs at least 1");
}

}  // namespace
}  // namespace gallop::parallel
