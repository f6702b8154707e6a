#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/train/losses/loss.h"
#include "gallop/train/tasks/task.h"
#include "unit/config/component_of.h"

namespace gallop::train {
namespace {

using Target = MetricTask::Target;

TEST(Tasks, NameLossesAndMetricsThatFitTheirTargets) {
  const TaskTable tasks = built_in_tasks();
  const LossRegistry losses = built_in_losses();
  const MetricRegistry metrics = built_in_metrics();
  ASSERT_FALSE(tasks.all().empty());
  for (const Task& task : tasks.all()) {
    EXPECT_NE(losses.find(task.loss), nullptr) << task.name;
    const MetricTask of_task{.target = task.target, .classes = 3};
    EXPECT_TRUE(metrics.build(config::component_of(metrics, task.metric), of_task)->is_single())
        << task.name;
    for (const std::string& name : task.metrics) {
      EXPECT_NO_THROW(metrics.build(config::component_of(metrics, name), of_task)) << task.name;
    }
    EXPECT_FALSE(task.summary.empty());
  }
}

TEST(Tasks, BuildTheLossOfTheirTargets) {
  const TaskTable tasks = built_in_tasks();
  const LossRegistry losses = built_in_losses();
  const auto build = [&](const std::string& task, const LossContext& context) {
    return build_loss(losses, config::component_of(losses, tasks.find(task).loss), context);
  };
  EXPECT_NO_THROW(build("classification", {.output_sizes = {3}, .target_sizes = {}, .classes = 3}));
  EXPECT_NO_THROW(
      build("segmentation", {.output_sizes = {3, 4, 4}, .target_sizes = {4, 4}, .classes = 3}));
  EXPECT_NO_THROW(
      build("masked-lm", {.output_sizes = {8, 11}, .target_sizes = {8}, .classes = 11}));
  const LossContext numbers{
      .output_sizes = {2}, .target_sizes = {2}, .target_type = c10::ScalarType::Float};
  EXPECT_NO_THROW(build("regression", numbers));
  EXPECT_NO_THROW(build("multi-label", numbers));
}

TEST(Tasks, NamesTheNearestOfAnUnknownOne) {
  const TaskTable tasks = built_in_tasks();
  try {
    tasks.find("regresion");
    ADD_FAILURE() << "no error";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'regression'"), std::string::npos);
  }
}

TEST(Tasks, HaveNamesOfTheirOwn) {
  TaskTable tasks = built_in_tasks();
  tasks.add({.name = "sorting", .summary = "orders", .target = Target::kNumbers, .loss = "mse"});
  EXPECT_EQ(tasks.find("sorting").loss, "mse");
  EXPECT_THROW(tasks.add({.name = "regression"}), UsageError);
}

}  // namespace
}  // namespace gallop::train
