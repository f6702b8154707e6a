#include "gallop/app/training_memory.h"

#include <gtest/gtest.h>

#include "unit/config/component_of.h"

namespace gallop::app {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

TrainingMemory of(const char* strategy) {
  return {.parameters = 4 * kGiB,
          .state = 8 * kGiB,
          .processes = 4,
          .processes_here = 2,
          .strategy = strategy,
          .shares = parallel::shares_of(strategy, 4),
          .has_blocks = true,
          .has_model = true};
}

TEST(TrainingMemory, IsThatOfTheStrategy) {
  EXPECT_EQ(further_bytes(of("ddp")), 12 * kGiB);
  EXPECT_EQ(further_bytes(of("zero-1")), 6 * kGiB);
  EXPECT_EQ(further_bytes(of("zero-2")), 3 * kGiB);
  EXPECT_EQ(further_bytes(of("zero-3")), 0);
  static const auto kStrategies = parallel::built_in_strategies();
  const auto on_mesh = [](const std::string& strategy) {
    TrainingMemory memory = of("ddp");
    memory.shares = parallel::shares_of(config::component_of(kStrategies, strategy), 4);
    return further_bytes(memory);
  };
  EXPECT_EQ(on_mesh("tensor"), 0);
  EXPECT_EQ(on_mesh("pipeline"), 3 * kGiB);
  EXPECT_EQ(on_mesh("tensor tensor_parallel_degree=2"), 4 * kGiB);
  EXPECT_EQ(on_mesh("tensor tensor_parallel_degree=2 data_parallel=zero-1"), 2 * kGiB);
  EXPECT_EQ(on_mesh("tensor tensor_parallel_degree=2 data_parallel=zero-2"), kGiB);
  EXPECT_EQ(on_mesh("pipeline pipeline_parallel_degree=2"), 6 * kGiB);
  EXPECT_EQ(on_mesh("pipeline pipeline_parallel_degree=2 data_parallel=zero-1"), 4 * kGiB);
  EXPECT_EQ(on_mesh("pipeline tensor_parallel_degree=2"), kGiB);
}

// Three quarters of the parameters are those of experts.
TEST(TrainingMemory, IsLessWhereExpertsAreDivided) {
  TrainingMemory memory = of("expert");
  memory.expert_share = 0.75;
  EXPECT_EQ(further_bytes(memory), 12 * kGiB);
  memory.expert_parts = 4;
  EXPECT_EQ(further_bytes(memory), 3 * kGiB);  // 7/16 of 16, of which the model is there.
}

TEST(TrainingMemory, IsRejectedIfItDoesNotFit) {
  EXPECT_EQ(why_not_enough(of("ddp"), 24 * kGiB, 0), "");
  EXPECT_EQ(why_not_enough(of("ddp"), 20 * kGiB, 4 * kGiB), "");
  EXPECT_EQ(why_not_enough(of("ddp"), 20 * kGiB, 3 * kGiB),
            "not enough memory: besides the model, with 4.0 GiB of parameters, gradients and the "
            "optimizer's state take at least 12.0 GiB in each of 2 processes on this host, and "
            "23.0 GiB are available; parallel.name=zero-1 needs 6.0 GiB");
  const auto names = [](const TrainingMemory& memory, int64_t available, const char* text) {
    return why_not_enough(memory, available, 0).find(text) != std::string::npos;
  };
  EXPECT_TRUE(names(of("ddp"), 6 * kGiB, "parallel.name=zero-2 needs 3.0 GiB"));
  EXPECT_TRUE(names(of("zero-2"), kGiB, "parallel.name=zero-3 needs no more than the model"));
  TrainingMemory memory = of("zero-2");
  memory.has_blocks = false;
  EXPECT_TRUE(names(memory, kGiB, "use processes on more hosts"));
  memory.processes = memory.processes_here = 1;
  memory.shares = {};
  EXPECT_TRUE(names(memory, kGiB, "state take at least 12.0 GiB, and 1.0 GiB are available"));
}

// Before there is a model.
TEST(TrainingMemory, IsOfTheModelAsWell) {
  TrainingMemory memory = of("ddp");
  memory.has_model = false;
  EXPECT_EQ(further_bytes(memory), 16 * kGiB);
  EXPECT_EQ(why_not_enough(memory, 9 * kGiB, 0),
            "not enough memory: parameters, gradients and the optimizer's state take at least 16.0 "
            "GiB in each of 2 processes on this host, and 9.0 GiB are available; "
            "parallel.name=zero-3 needs 4.0 GiB");
  memory.strategy = "zero-3";
  memory.shares = parallel::shares_of("zero-3", 4);
  EXPECT_EQ(further_bytes(memory), 4 * kGiB);
  memory.parameters = 6 * kGiB;
  memory.why_whole = "set train.precision";
  EXPECT_EQ(further_bytes(memory), 6 * kGiB);
  EXPECT_EQ(why_not_enough(memory, 11 * kGiB, 0),
            "not enough memory: the whole model, or the parts of parameters, gradients and the "
            "optimizer's state, take at least 6.0 GiB in each of 2 processes on this host, and "
            "11.0 GiB are available; 5.0 GiB would do, but set train.precision");
}

}  // namespace
}  // namespace gallop::app
