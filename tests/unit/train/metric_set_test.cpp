#include "gallop/train/metrics/metric_set.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/model/mlp.h"
#include "gallop/train/evaluate.h"
#include "gallop/train/metrics/loss_metrics.h"
#include "gallop/train/reports/figure.h"
#include "gallop/train/tasks/task_defaults.h"
#include "gallop/train/trainer.h"
#include "unit/parallel/ranks.h"
#include "unit/train/metric_cases.h"
#include "unit/train/trainer_cases.h"

namespace gallop::train {
namespace {

MetricChoice choice_of(const MetricRegistry& registry, const std::string& deciding,
                       const std::vector<std::string>& further) {
  MetricChoice choice(registry);
  choice.deciding = config::component_of(registry, deciding);
  for (const std::string& one : further) {
    choice.further.items.push_back(config::component_of(registry, one));
  }
  return choice;
}

MetricSet set_of(const std::string& deciding, const std::vector<std::string>& further,
                 const MetricTask& task) {
  const MetricRegistry registry = built_in_metrics();
  return {registry, choice_of(registry, deciding, further), task};
}

std::vector<std::string> names_of(const MetricSet& set) {
  std::vector<std::string> names;
  for (const auto& metric : set.reported()) names.push_back(metric->name());
  return names;
}

TEST(MetricSet, ReportsEachMetricOnceAndNoneThatEveryEvaluationHas) {
  const MetricTask task{.classes = 3};
  EXPECT_EQ(names_of(set_of("auto", {}, task)), std::vector<std::string>());
  EXPECT_EQ(names_of(set_of("top5", {"loss", "accuracy", "top-k k=5"}, task)),
            std::vector<std::string>());
  const MetricSet set =
      set_of("f1", {"mcc", "f1", "f1 average=micro", "f1 average=per-class", "top-k k=2"}, task);
  EXPECT_EQ(names_of(set),
            (std::vector<std::string>{"f1", "mcc", "f1-micro", "f1-per-class", "top2"}));
  EXPECT_EQ(set.single_names(), (std::vector<std::string>{"loss", "accuracy", "top5", "f1", "mcc",
                                                          "f1-micro", "top2"}));
  EXPECT_EQ(set.deciding().name(), "f1");
}

TEST(MetricSet, IsDecidedByASingleNumber) {
  EXPECT_THROW(set_of("f1 average=per-class", {}, {.classes = 3}), UsageError);
  EXPECT_THROW(set_of("r2", {}, {.classes = 3}), UsageError);
  EXPECT_THROW(set_of("auto", {"r2"}, {.classes = 3}), UsageError);
}

TEST(MetricSet, IsKnownWithoutDataButForTheNamesOfClasses) {
  const MetricRegistry registry = built_in_metrics();
  const auto reported = reported_metrics(
      registry, choice_of(registry, "mse",
                          {"f1 average=per-class", "top-k k=2", "bits-per-character", "auto"}));
  std::vector<std::string> names;
  for (const auto& one : reported) names.push_back(one.name);
  EXPECT_EQ(names, (std::vector<std::string>{"loss", "accuracy", "top5", "mse", "f1/", "top2",
                                             "bits-per-character"}));
  EXPECT_FALSE(reported[3].higher_is_better);
  EXPECT_FALSE(reported[4].is_single);
  EXPECT_TRUE(reported[5].higher_is_better);
}

TEST(MetricSet, IsKnownForTargetsOfAKind) {
  using Target = MetricTask::Target;
  const MetricRegistry registry = built_in_metrics();
  const auto names_for = [&](Target target, const MetricChoice& choice) {
    std::vector<std::string> names;
    for (const auto& one : reported_metrics(registry, choice, target)) names.push_back(one.name);
    return names;
  };
  const auto numbers = choice_of(registry, "auto", {"mae", "r2"});
  EXPECT_EQ(names_for(Target::kNumbers, numbers), (std::vector<std::string>{"loss", "mae", "r2"}));
  EXPECT_EQ(deciding_metric(registry, numbers, Target::kNumbers), "loss");
  const auto labels = choice_of(registry, "f1", {});
  EXPECT_EQ(names_for(Target::kLabels, labels), (std::vector<std::string>{"loss", "f1"}));
  EXPECT_EQ(deciding_metric(registry, labels, Target::kLabels), "f1");
  const auto left_open = choice_of(registry, "auto", {});
  EXPECT_EQ(names_for(Target::kTokens, left_open),
            (std::vector<std::string>{"loss", "accuracy", "top5"}));
  EXPECT_EQ(deciding_metric(registry, left_open, Target::kTokens), "loss");
  EXPECT_EQ(deciding_metric(registry, left_open, Target::kClasses), "accuracy");
  EXPECT_THROW(names_for(Target::kNumbers, labels), UsageError);
}

// Every metric of a task is bitwise equal for any number of processes.
TEST(MetricSums, AreTheSameInAnyNumberOfProcesses) {
  for (const char* name : {"classes", "ties and rare classes", "labels", "columns of numbers"}) {
    const auto cases = metric_cases();
    const MetricCase& tested = *std::find_if(
        cases.begin(), cases.end(), [&](const MetricCase& one) { return one.name == name; });
    std::vector<std::string> all;
    for (const auto& [text, wanted] : tested.values.items()) all.push_back(text);
    const MetricSet set = set_of(all.front(), all, tested.task);
    MetricSums alone(set.reported(), {});
    alone.add(tested.all);
    const auto values = alone.values({});
    const int64_t rows = tested.all.target.size(0);
    for (int size = 1; size <= 4; ++size) {
      std::mutex mutex;
      parallel::run_ranks(size, [&](parallel::Collectives& collectives) {
        MetricSums sums(set.reported(), {});
        // With four processes, the first has no samples.
        const int64_t begin =
            size == 4 && collectives.rank() == 1 ? 0 : rows * collectives.rank() / size;
        const int64_t end =
            size == 4 && collectives.rank() == 0 ? 0 : rows * (collectives.rank() + 1) / size;
        for (int64_t at = begin; at < end; at += 7) {
          sums.add(part_of(tested.all, at, std::min(at + 7, end)));
        }
        sums.merge_all(collectives);
        const auto found = sums.values({});
        const std::lock_guard lock(mutex);
        ASSERT_EQ(found.size(), values.size());
        for (size_t i = 0; i < found.size(); ++i) {
          EXPECT_EQ(found[i].value, values[i].value) << name << " " << found[i].name;
        }
      });
    }
  }
}

TEST(Evaluate, HasTheMetricsOfASetForAnyBatchAndNumberOfProcesses) {
  const RandomImages images;
  const model::Task task{.channels = 1, .height = 4, .width = 4, .classes = 3};
  const auto set = std::make_shared<MetricSet>(
      set_of("f1", {"roc-auc", "mcc", "perplexity", "expected-calibration-error"}, {.classes = 3}));
  const StopRequest go_on;
  const auto model = model::make_mlp({}, task, 1);
  const auto plain = evaluate(*model, images, {.loader = {.batch = 8, .threads = 0}}, go_on);
  EXPECT_TRUE(plain->metrics.empty());
  const auto with =
      evaluate(*model, images, {.loader = {.batch = 8, .threads = 0}, .metrics = set}, go_on);
  EXPECT_EQ(with->tally.loss_sum, plain->tally.loss_sum);
  EXPECT_EQ(with->tally.top1, plain->tally.top1);
  ASSERT_EQ(with->metrics.size(), 5U);
  EXPECT_EQ(with->value_of("perplexity"), std::exp(with->tally.loss()));
  EXPECT_EQ(with->value_of("loss"), with->tally.loss());
  EXPECT_EQ(with->value_of("accuracy"), with->tally.accuracy());
  EXPECT_EQ(with->value_of("top5"), 1.0);
  EXPECT_FALSE(with->value_of("r2"));
  // The outputs of the model in one batch.
  at::Tensor outputs, targets;
  evaluate(*model, images,
           {.loader = {.batch = 64, .threads = 0},
            .see =
                [&](const data::Batch& batch, const at::Tensor& logits) {
                  outputs = logits.detach().clone();
                  targets = batch.target().clone();
                }},
           go_on);
  for (const char* name : {"f1", "roc-auc", "mcc"}) {
    const auto metric = metric_of(name, {.classes = 3});
    const auto state = metric->make_state();
    state->add({.outputs = outputs, .target = targets});
    EXPECT_NEAR(*with->value_of(name), *metric->values(*state).front().value, 1e-2) << name;
  }
  for (int size = 2; size <= 3; ++size) {
    parallel::run_ranks(size, [&](parallel::Collectives& collectives) {
      const auto own_model = model::make_mlp({}, task, 1);
      const auto found = evaluate(
          *own_model, images,
          {.loader = {.batch = 8, .threads = 0}, .collectives = &collectives, .metrics = set},
          go_on);
      for (size_t i = 0; i < with->metrics.size(); ++i) {
        EXPECT_EQ(found->metrics[i].value, with->metrics[i].value) << found->metrics[i].name;
      }
    });
  }
}

TEST(Evaluate, HasTheMetricsOfEachMemberAndOfAllTogether) {
  const RandomImages images;
  const model::Task task{.channels = 1, .height = 4, .width = 4, .classes = 3};
  const auto first = model::make_mlp({}, task, 1), second = model::make_mlp({}, task, 2);
  EvaluateConfig config;
  config.loader.batch = 8;
  config.loader.threads = 0;
  config.metrics = std::make_shared<MetricSet>(set_of("mcc", {"roc-auc"}, {.classes = 3}));
  const StopRequest go_on;
  const auto found = evaluate_ensemble({{*first}, {*second}}, images, config, go_on);
  const auto alone = evaluate(*second, images, config, go_on);
  EXPECT_EQ(found->each[1].value_of("roc-auc"), alone->value_of("roc-auc"));
  EXPECT_TRUE(found->ensemble.value_of("mcc"));
  EXPECT_NE(found->ensemble.value_of("roc-auc"), alone->value_of("roc-auc"));
}

TEST(Evaluate, HasFiguresOfAllModelsTogetherInAnyNumberOfProcesses) {
  const RandomImages images;
  const model::Task task{.channels = 1, .height = 4, .width = 4, .classes = 3};
  const auto first = model::make_mlp({}, task, 1), second = model::make_mlp({}, task, 2);
  EvaluateConfig config;
  config.loader.batch = 8;
  config.loader.threads = 0;
  config.drawn =
      report_metrics(default_report(MetricTask::Target::kClasses, false), {.classes = 3});
  const StopRequest go_on;
  const auto text_of = [](const Evaluation& evaluation) {
    std::string text;
    for (const FigureData& one : evaluation.figures) text += figure_json(one).dump() + "\n";
    return text;
  };
  const auto alone = evaluate(*first, images, config, go_on);
  ASSERT_EQ(alone->figures.size(), 4U);
  EXPECT_TRUE(alone->metrics.empty());
  const auto& matrix = std::get<ConfusionMatrix>(alone->figures[0].data);
  int64_t correct = 0;
  for (size_t i = 0; i < 3; ++i) correct += matrix.counts[i][i];
  EXPECT_EQ(correct, alone->tally.top1);
  parallel::run_ranks(2, [&](parallel::Collectives& collectives) {
    EvaluateConfig shared = config;
    shared.collectives = &collectives;
    const auto own_model = model::make_mlp({}, task, 1);
    EXPECT_EQ(text_of(*evaluate(*own_model, images, shared, go_on)), text_of(*alone));
  });
  const auto both = evaluate_ensemble({{*first}, {*second}}, images, config, go_on);
  EXPECT_TRUE(both->each[0].figures.empty());
  EXPECT_EQ(both->ensemble.figures.size(), 4U);
  EXPECT_NE(text_of(both->ensemble), text_of(*alone));
}

TEST_F(Trainers, SchedulesFollowAnyMetricThatEvaluationsHave) {
  const TrainConfig config{.epochs = 6};
  const auto message = [&](const std::string& metric) -> std::string {
    fs::remove_all(folder_);
    try {
      run_schedule(fmt::format("{{name: reduce-on-plateau, patience: 0, metric: {}}}", metric),
                   false, config);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message("top5"), "");
  EXPECT_NE(message("f1").find("the schedule follows the metric 'f1', which evaluations do not "
                               "have"),
            std::string::npos);
  metrics_ = metrics_of("f1");
  EXPECT_EQ(message("f1"), "");
  EXPECT_NE(message("f2").find("did you mean 'f1'?"), std::string::npos);
  EXPECT_NE(message("acuracy").find("did you mean 'accuracy'?"), std::string::npos);
}

}  // namespace
}  // namespace gallop::train
