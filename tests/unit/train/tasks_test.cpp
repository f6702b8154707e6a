#include <cmath>

#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/train/losses/loss.h"
#include "gallop/train/metrics/calibration.h"
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

std::vector<std::string> names_of(const Metrics& metrics) {
  std::vector<std::string> names;
  for (const auto& metric : metrics) names.push_back(metric->name());
  return names;
}

// Classes are few enough for each metric of a report.
std::vector<std::string> report_of(const Task& task) {
  return names_of(report_metrics(
      task.report, {.target = task.target, .classes = 2, .per_element = task.per_element}));
}

TEST(Tasks, ReportFiguresOfTheirTargets) {
  const TaskTable tasks = built_in_tasks();
  const std::vector<std::string> curves = {"confusion-matrix", "roc-auc", "average-precision",
                                           "expected-calibration-error"};
  EXPECT_EQ(report_of(tasks.find("classification")), curves);
  EXPECT_EQ(report_of(tasks.find("multi-label")), curves);
  EXPECT_EQ(report_of(tasks.find("segmentation")),
            (std::vector<std::string>{"confusion-matrix", "expected-calibration-error"}));
  EXPECT_EQ(report_of(tasks.find("causal-lm")),
            (std::vector<std::string>{"expected-calibration-error"}));
  EXPECT_EQ(report_of(tasks.find("regression")), (std::vector<std::string>{"residuals"}));
  EXPECT_EQ(report_of(tasks.find("pair-embedding")), (std::vector<std::string>{"pairs"}));
  EXPECT_EQ(tasks.find("classification").report.images, Report::Images::kMistakes);
  EXPECT_EQ(tasks.find("segmentation").report.images, Report::Images::kMasks);
}

TEST(Tasks, LeaveOutReportMetricsForFewerClasses) {
  const Report report = built_in_tasks().find("classification").report;
  const auto of = [&](int64_t classes) {
    return names_of(report_metrics(report, {.classes = classes}));
  };
  EXPECT_EQ(of(20).size(), 4);
  EXPECT_EQ(of(21), (std::vector<std::string>{"confusion-matrix", "expected-calibration-error"}));
  EXPECT_EQ(of(1000).size(), 2);
  EXPECT_EQ(of(1001), (std::vector<std::string>{"expected-calibration-error"}));
}

TEST(Tasks, HaveTheDefaultsOfTheirTargets) {
  const TaskTable tasks = built_in_tasks();
  for (const Task& task : tasks.all()) {
    SCOPED_TRACE(task.name);
    const Task bare{.name = "bare",
                    .summary = "",
                    .target = task.target,
                    .per_element = task.per_element,
                    .causal = task.causal};
    EXPECT_EQ(bare.prediction.form, task.prediction.form);
    EXPECT_EQ(report_of(bare), report_of(task));
  }
  const LossRegistry losses = built_in_losses();
  const MetricRegistry metrics = built_in_metrics();
  for (const Target target : {Target::kClasses, Target::kTokens, Target::kBinary, Target::kLabels,
                              Target::kNumbers, Target::kPairs}) {
    const Task bare{.name = "bare", .summary = "", .target = target};
    EXPECT_NE(losses.find(bare.loss), nullptr) << bare.loss;
    EXPECT_TRUE(
        metrics.build(config::component_of(metrics, bare.metric), {.target = target, .classes = 2})
            ->is_single());
    EXPECT_FALSE(report_of(bare).empty());
  }
  const Task labels{.name = "labels", .summary = "", .target = Target::kLabels};
  EXPECT_EQ(labels.loss, "bce-with-logits");
}

TEST(Tasks, ShowBinaryOutputsAsTwoClasses) {
  const Task task{.name = "binary", .summary = "", .target = Target::kBinary};
  EXPECT_EQ(task.prediction.form, Prediction::Form::kClass);
  const at::Tensor p = at::softmax(task.prediction.shown(at::tensor({1.5F})), 0);
  EXPECT_EQ(p.size(0), 2);
  EXPECT_NEAR(p[1].item<double>(), 1 / (1 + std::exp(-1.5)), 1e-6);
}

at::Tensor doubled(const at::Tensor& outputs) { return outputs.mul(2); }

std::unique_ptr<Metric> make_own_figure(const MetricTask& task) {
  return make_calibration_error({.bins = 3}, task);
}

TEST(Tasks, HaveTheirOwnPredictionAndReport) {
  TaskTable tasks;
  tasks.add({.name = "own",
             .summary = "a task of a plug-in",
             .target = Target::kClasses,
             .prediction = {.form = Prediction::Form::kNumbers, .postprocess = doubled},
             .report = {.metrics = {{make_own_figure, /*max_classes=*/5}, kConfusionMatrix}}});
  const Task& task = tasks.find("own");
  EXPECT_EQ(task.loss, "cross-entropy");
  EXPECT_EQ(task.prediction.shown(at::tensor({2.0F})).item<float>(), 4);
  const at::Tensor half = at::tensor({2.0F}).to(at::kBFloat16);
  EXPECT_EQ(task.prediction.shown(half).scalar_type(), at::kFloat);
  EXPECT_EQ(built_in_tasks().find("regression").prediction.shown(half).scalar_type(),
            at::kBFloat16);
  EXPECT_EQ(names_of(report_metrics(task.report, {.classes = 5})),
            (std::vector<std::string>{"expected-calibration-error-3", "confusion-matrix"}));
  EXPECT_EQ(names_of(report_metrics(task.report, {.classes = 6})),
            (std::vector<std::string>{"confusion-matrix"}));
  EXPECT_EQ(task.report.images, Report::Images::kNone);
}

TEST(Tasks, KnowTheKindOfTheirTargets) {
  const TaskTable tasks = built_in_tasks();
  EXPECT_TRUE(tasks.find("classification").has_class_per_sample());
  EXPECT_FALSE(tasks.find("segmentation").has_class_per_sample());
  EXPECT_TRUE(tasks.find("segmentation").has_class_labels());
  EXPECT_FALSE(tasks.find("causal-lm").has_class_labels());
  EXPECT_TRUE(tasks.find("causal-lm").has_classes());
  EXPECT_TRUE(tasks.find("multi-label").is_binary());
  EXPECT_FALSE(tasks.find("multi-label").has_classes());
  EXPECT_TRUE(tasks.find("count-regression").has_number_targets());
  EXPECT_FALSE(tasks.find("pair-embedding").has_number_targets());
}

TEST(Tasks, HaveNamesOfTheirOwn) {
  TaskTable tasks = built_in_tasks();
  tasks.add({.name = "sorting", .summary = "orders", .target = Target::kNumbers, .loss = "mse"});
  EXPECT_EQ(tasks.find("sorting").loss, "mse");
  EXPECT_THROW(tasks.add({.name = "regression"}), UsageError);
}

}  // namespace
}  // namespace gallop::train
