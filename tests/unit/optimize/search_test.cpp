#include "gallop/optimize/search.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "unit/optimize/fake_experiments.h"

namespace gallop::optimize {
namespace {

Report run(FakeExperiments& experiments, SearchConfig config) {
  config.recipe = "mlp.yaml";
  if (config.budget_seconds == 0) config.budget_seconds = 1e6;
  return search(experiments, config, [](const Report&) {});
}

const Trial& trial(const Report& report, const std::string& name) {
  const auto found =
      std::find_if(report.trials.begin(), report.trials.end(),
                   [&](const Trial& one) { return one.change.name.starts_with(name); });
  if (found == report.trials.end()) throw std::runtime_error("no trial of " + name);
  return *found;
}

bool has(const Report& report, const std::string& option) {
  return std::find(report.options.begin(), report.options.end(), option) != report.options.end();
}

TEST(Search, KeepsWhatIsFasterAndRejectsTheRest) {
  FakeExperiments experiments;
  const Report report = run(experiments, {.goal = Goal::kThroughput, .given = {"train.seed=7"}});
  EXPECT_EQ(report.options, (std::vector<std::string>{"train.seed=7", "train.compile=true",
                                                      "train.precision=bf16", "data.threads=2"}));
  EXPECT_EQ(trial(report, "data.threads=0").verdict, Verdict::kRejected);
  EXPECT_EQ(trial(report, "data.threads=0").reason, "worse");
  EXPECT_EQ(trial(report, "train.channels_last=true").reason, "no gain");
  EXPECT_NEAR(report.total_gain(), 1.3 * 1.6 * 1.5, 1e-9);
  EXPECT_FALSE(has(report, "data.batch_size=64"));  // That is another training.
}

TEST(Search, TriesTheHighestPredictionFirst) {
  FakeExperiments experiments;
  experiments.predictions = {{.rule = "data-wait",
                              .finding = "",
                              .options = {"data.threads=2"},
                              .low = 1.4,
                              .high = 1.6,
                              .basis = ""},
                             {.rule = "small-batch",
                              .finding = "",
                              .options = {"data.batch_size=128"},
                              .low = 2,
                              .high = 2,
                              .basis = ""}};
  const Report report = run(experiments, {.goal = Goal::kThroughput});
  EXPECT_EQ(report.trials.front().change.name, "data.threads=2");
  EXPECT_EQ(report.trials.front().change.predicted->rule, "data-wait");
  EXPECT_FALSE(trial(report, "train.compile=true").change.predicted);
}

TEST(Search, TriesARejectedChangeAgainIfItIsPredictedToHelp) {
  FakeExperiments experiments;
  experiments.factors = {{"train.precision=bf16", 1.5}};
  experiments.joint = {{{"train.precision=bf16", "train.compile=true"}, 1.4}};
  experiments.predictions = {{.rule = "eager-steps",
                              .finding = "",
                              .options = {"train.compile=true"},
                              .low = 1.3,
                              .high = 1.5,
                              .basis = ""}};
  const Report report = run(experiments, {.goal = Goal::kThroughput});
  EXPECT_EQ(report.trials.front().change.name, "train.compile=true");
  EXPECT_EQ(report.trials.front().verdict, Verdict::kRejected);
  EXPECT_TRUE(has(report, "train.compile=true"));
  EXPECT_NEAR(report.total_gain(), 1.5 * 1.4, 1e-9);
}

TEST(Search, RejectsWhatRaisesTheLoss) {
  FakeExperiments experiments;
  experiments.losses = {{"train.precision=bf16", 0.03}, {"train.compile=true", 0.009}};
  const Report report = run(experiments, {.goal = Goal::kThroughput});
  EXPECT_FALSE(has(report, "train.precision=bf16"));
  EXPECT_EQ(trial(report, "train.precision=bf16").reason,
            "the loss rises by 3.0 % over the same steps");
  EXPECT_TRUE(has(report, "train.compile=true"));
}

TEST(Search, ReportsWhatFails) {
  FakeExperiments experiments;
  experiments.failures = {{"train.precision=bf16", "out of memory"}};
  const Report report = run(experiments, {.goal = Goal::kThroughput});
  EXPECT_EQ(trial(report, "train.precision=bf16").verdict, Verdict::kFailed);
  EXPECT_EQ(trial(report, "train.precision=bf16").reason, "out of memory");
  EXPECT_TRUE(has(report, "data.threads=2"));
}

TEST(Search, RevertsWhatALaterChangeMakesUseless) {
  FakeExperiments experiments;
  experiments.joint = {{{"train.compile=true", "data.threads=2"}, 1 / 1.3}};
  const Report report = run(experiments, {.goal = Goal::kThroughput});
  EXPECT_FALSE(has(report, "train.compile=true"));
  EXPECT_EQ(trial(report, "train.compile=true").verdict, Verdict::kReverted);
  EXPECT_EQ(report.ablations.size(), 2);
}

TEST(Search, AblatesEachChange) {
  FakeExperiments experiments;
  const Report report = run(experiments, {.goal = Goal::kThroughput});
  double product = 1;
  for (const Ablation& one : report.ablations) product *= one.worth.value;
  EXPECT_EQ(report.ablations.size(), 3);
  EXPECT_NEAR(product, report.total_gain(), 1e-9);
}

TEST(Search, SavesMemoryUnlessItCostsMoreTime) {
  FakeExperiments experiments;
  experiments.memory = {{"train.activation_checkpointing={every: 1}", 0.5},
                        {"train.precision=bf16", 0.9},
                        {"train.gradient_accumulation=2", 0.9}};
  experiments.factors = {{"train.activation_checkpointing={every: 1}", 0.75},
                         {"train.gradient_accumulation=2", 0.5}};
  const Report report = run(experiments, {.goal = Goal::kMemory});
  EXPECT_TRUE(has(report, "train.activation_checkpointing={every: 1}"));
  EXPECT_TRUE(has(report, "train.precision=bf16"));
  EXPECT_EQ(trial(report, "train.gradient_accumulation=2").reason,
            "costs more time (2.00x) than it saves memory");
  EXPECT_NEAR(report.total_gain(), 1 / 0.45, 1e-6);
}

TEST(Search, EnergyMustBeMeasurable) {
  FakeExperiments experiments;
  EXPECT_THROW(run(experiments, {.goal = Goal::kEnergy}), UsageError);
}

TEST(Search, TrainsInSeveralProcesses) {
  FakeExperiments experiments;
  experiments.plain.cores = experiments.plain.threads = 4;
  experiments.factors["launch.processes=2"] = 1.4;
  const Report report = run(experiments, {.goal = Goal::kThroughput});
  EXPECT_EQ(trial(report, "2 processes").verdict, Verdict::kKept);
  EXPECT_EQ(trial(report, "4 processes").reason, "worse");  // Without the gain of two.
  EXPECT_EQ(processes_of(report.options), 2);
  const std::string markdown = report_markdown(report), json = report_json(report);
  EXPECT_NE(markdown.find("    gallop launch -n 2 train mlp.yaml train.compile=true"),
            std::string::npos)
      << markdown;
  // The number is no option of a recipe.
  EXPECT_EQ(json.find("launch.processes"), std::string::npos) << json;
  EXPECT_NE(json.find(R"("processes":2)"), std::string::npos) << json;
}

TEST(Search, GivesProcessesTheirPartOfTheThreads) {
  FakeExperiments experiments;
  experiments.plain.sets_threads = true;
  experiments.plain.splits_batch_norm = true;
  const Report report = run(experiments, {.goal = Goal::kThroughput});
  EXPECT_EQ(trial(report, "2 processes").change.options,
            (std::vector<std::string>{"launch.processes=2", "train.threads=0",
                                      "parallel.batch_norm=synchronized"}));
}

TEST(Search, TriesSeveralProcessesOnlyWhereTheyMayHelp) {
  const auto tries = [](Goal goal, const auto& change) {
    FakeExperiments experiments;
    change(experiments.plain);
    const Report report = run(experiments, {.goal = goal});
    return std::any_of(report.trials.begin(), report.trials.end(),
                       [](const Trial& one) { return one.change.subject == "processes"; });
  };
  EXPECT_TRUE(tries(Goal::kThroughput, [](Settings& /*plain*/) {}));
  EXPECT_FALSE(tries(Goal::kMemory, [](Settings& /*plain*/) {}));
  EXPECT_FALSE(tries(Goal::kThroughput, [](Settings& plain) { plain.cores = 1; }));
  EXPECT_FALSE(tries(Goal::kThroughput, [](Settings& plain) { plain.is_on_cpu = false; }));
  EXPECT_FALSE(tries(Goal::kThroughput, [](Settings& plain) { plain.micro_batches = 32; }));
}

TEST(Search, TakesABetterOptimizer) {
  FakeExperiments experiments;
  experiments.found_adamw_lr = 0.003;
  experiments.metrics["optimizer={name: adamw, lr: 0.003}"] = 0.01;
  experiments.metrics["optimizer={name: muon}"] = 0.03;
  experiments.factors["optimizer={name: muon}"] = 0.8;
  const Report report = run(experiments, {.goal = Goal::kTimeToAccuracy});
  EXPECT_EQ(trial(report, "AdamW with a learning rate of 0.003").reason, "then replaced by Muon");
  EXPECT_TRUE(has(report, "optimizer={name: muon}"));
  EXPECT_FALSE(has(report, "optimizer.lr=0.4"));  // Would belong to larger batches with SGD.
  EXPECT_EQ(trial(report, "Muon").change.predicted->high, 1.35);
  // It is slower, and had as much time as what it was compared with.
  EXPECT_NEAR(trial(report, "Muon").comparison->speedup.value, 0.8, 1e-9);
  const auto muon =
      std::find_if(experiments.log.begin(), experiments.log.end(), [](const std::string& one) {
        return one.starts_with("train ") && one.find("name: muon") != std::string::npos;
      });
  ASSERT_NE(muon, experiments.log.end());
  EXPECT_NE(muon->find("train.epochs=4 "), std::string::npos) << *muon;
}

TEST(Search, AddsMomentumToSgdWithoutAny) {
  FakeExperiments experiments;
  experiments.plain.momentum = 0;
  experiments.metrics["optimizer.momentum=0.9"] = 0.02;
  const Report report = run(experiments, {.goal = Goal::kTimeToAccuracy});
  EXPECT_TRUE(has(report, "optimizer.momentum=0.9"));
  EXPECT_TRUE(has(report, "optimizer.nesterov=true"));
}

TEST(Search, LeavesAnOptimizerWithPartsOfItsOwn) {
  FakeExperiments experiments;
  experiments.plain.has_parameter_groups = true;
  const Report report = run(experiments, {.goal = Goal::kTimeToAccuracy});
  for (const Trial& one : report.trials) EXPECT_NE(one.change.subject, "optimizer");
}

TEST(Search, DecaysWeightsOnlyIfTheRecipeDoesNotSayHow) {
  for (const bool sets_decay : {false, true}) {
    FakeExperiments experiments;
    experiments.plain.sets_weight_decay = sets_decay;
    experiments.metrics["optimizer.weight_decay=5e-4"] = 0.02;
    const Report report = run(experiments, {.goal = Goal::kTimeToAccuracy});
    EXPECT_EQ(has(report, "optimizer.weight_decay=5e-4"), !sets_decay);
  }
}

TEST(Search, ResizesImagesProgressively) {
  FakeExperiments experiments;
  experiments.plain.can_resize = true;
  experiments.factors[ProgressiveResizing::at_half_size().front()] = 3;
  const Report report = run(experiments, {.goal = Goal::kTimeToAccuracy});
  const std::string option = ProgressiveResizing::change().options.front();
  EXPECT_EQ(option,
            "train.progressive_resizing={initial_scale: 0.5, delay_fraction: 0.5, "
            "finetune_fraction: 0.2}");
  EXPECT_TRUE(has(report, option));
  // A third of the time for half of the steps, two thirds in mean while images grow, and all of it
  // for the last fifth.
  const double speedup = 1 / (0.5 / 3 + 0.3 * 2 / 3 + 0.2);
  EXPECT_NEAR(trial(report, "progressive resizing").comparison->speedup.value, speedup, 1e-9);
  EXPECT_EQ(predicted_text(trial(report, "progressive resizing")), "1.76x to 1.77x");
  EXPECT_NEAR(report.total->speedup.value, 1.3 * 1.6 * 1.5 * 1.8 * speedup, 1e-6);
  const auto ablation =
      std::find_if(report.ablations.begin(), report.ablations.end(),
                   [](const Ablation& one) { return one.change == "progressive resizing"; });
  ASSERT_NE(ablation, report.ablations.end());
  EXPECT_NEAR(ablation->worth.value, speedup, 1e-6);
}

TEST(Search, LeavesImagesAsTheyAreIfTheMetricBecomesWorse) {
  FakeExperiments experiments;
  experiments.plain.can_resize = true;
  experiments.factors[ProgressiveResizing::at_half_size().front()] = 3;
  experiments.metrics[ProgressiveResizing::change().options.front()] = -0.05;
  const Report report = run(experiments, {.goal = Goal::kTimeToAccuracy});
  EXPECT_EQ(trial(report, "progressive resizing").verdict, Verdict::kRejected);
  EXPECT_FALSE(has(report, ProgressiveResizing::change().options.front()));
  EXPECT_NEAR(report.total->speedup.value, 1.3 * 1.6 * 1.5 * 1.8, 1e-6);
}

TEST(Search, DoesNotResizeWhatIsNoFasterOrHasOneSize) {
  for (const bool can_resize : {false, true}) {
    FakeExperiments experiments;
    experiments.plain.can_resize = can_resize;
    const Report report = run(experiments, {.goal = Goal::kTimeToAccuracy});
    EXPECT_EQ(std::any_of(report.trials.begin(), report.trials.end(),
                          [](const Trial& one) { return one.change.subject == "image size"; }),
              can_resize);
    if (can_resize) {
      EXPECT_EQ(trial(report, "progressive resizing").reason, "not fast enough");
    }
  }
}

TEST(Search, PredictsChangesOfTheTraining) {
  FakeExperiments experiments;
  const Report report = run(experiments, {.goal = Goal::kTimeToAccuracy});
  EXPECT_EQ(predicted_text(trial(report, "one-cycle schedule")), "1.00x to 10.00x");
  // 1.4 times faster within 1 %, for as many epochs or twice as many.
  EXPECT_EQ(predicted_text(trial(report, "batch size 64")), "0.69x to 1.41x");
  const Trial& length = report.trials.back();
  ASSERT_EQ(length.change.subject, "length");
  EXPECT_NEAR(length.change.predicted->high, 5 / report.best_runs->epochs, 0.01);
  EXPECT_NE(report_markdown(report).find("## Predictions"), std::string::npos);
  EXPECT_NE(report_json(report).find(R"("basis":"publications: )"), std::string::npos);
}

TEST(Options, ReplaceByPath) {
  using Options = std::vector<std::string>;
  EXPECT_EQ(with({"a=1", "b=2"}, {"a=3", "c=4"}), (Options{"a=3", "b=2", "c=4"}));
  // A section replaces its parts, and parts that come later belong to the new one.
  EXPECT_EQ(with({"o.lr=1", "ox=2"}, {"o={name: adamw}"}), (Options{"ox=2", "o={name: adamw}"}));
  EXPECT_EQ(with({"o={name: adamw}"}, {"o.lr=1"}), (Options{"o={name: adamw}", "o.lr=1"}));
  EXPECT_EQ(with({"o.lr=1", "o={name: sgd}", "x=1"}, {"o.lr=2"}),
            (Options{"o={name: sgd}", "x=1", "o.lr=2"}));
}

TEST(Search, FindsAShorterTrainingThatReachesTheTarget) {
  FakeExperiments experiments;
  const Report report = run(experiments, {.goal = Goal::kTimeToAccuracy});
  EXPECT_NEAR(*report.target, 0.902, 1e-4);  // The mean of three seeds.
  EXPECT_TRUE(has(report, "schedule={name: one-cycle}"));
  EXPECT_TRUE(has(report, "data.batch_size=128"));
  EXPECT_TRUE(has(report, "optimizer.lr=0.4"));
  EXPECT_FALSE(has(report, "optimizer.wrappers=[ema]"));
  // After 0.412 epochs the metric is 0.93 - 0.05 exp(-0.412) > 0.9, after 0.288 it is not.
  EXPECT_GE(report.best_runs->mean_metric(), *report.target);
  EXPECT_LT(report.best_runs->epochs, 1);
  EXPECT_GT(report.total_gain(), 1.3 * 1.6 * 1.5 * 1.8);
  ASSERT_TRUE(report.equal_runs);
  EXPECT_GT(report.equal_runs->mean_metric(), report.plain_runs->mean_metric());
  EXPECT_EQ(report.equal_runs->epochs, 10);
}

TEST(Search, ReplacesALengthInSteps) {
  FakeExperiments experiments;
  experiments.plain.counts_steps = true;
  const Report report =
      run(experiments, {.goal = Goal::kTimeToAccuracy, .given = {"train.steps=3000"}});
  EXPECT_TRUE(has(report, "train.steps=none"));
  EXPECT_FALSE(has(report, "train.steps=3000"));
}

TEST(Search, KeepsTheTrainingIfNoneReachesTheTargetEarlier) {
  FakeExperiments experiments;
  experiments.metrics = {{"schedule={name: one-cycle}", -0.1},
                         {"optimizer.wrappers=[ema]", -0.1},
                         {"train.label_smoothing=0.1", -0.1},
                         {"data.batch_size=64", -0.1}};
  // Only all of its epochs give the metric.
  experiments.plain.epochs = 10;
  const Report report = run(experiments, {.goal = Goal::kTimeToAccuracy});
  EXPECT_FALSE(has(report, "schedule={name: one-cycle}"));
  EXPECT_TRUE(has(report, "train.precision=bf16"));
  EXPECT_GE(report.total_gain(), 1.3 * 1.6 * 1.5 - 1e-9);
}

// The best recipe is trained with several seeds at the end.
TEST(Search, RevertsAllChangesOfATrainingThatCannotBeConfirmed) {
  FakeExperiments experiments;
  experiments.later_failures = {{"data.batch_size=128", "out of memory"}};
  const Report report = run(experiments, {.goal = Goal::kTimeToAccuracy});
  EXPECT_EQ(report.why_no_training_changes,
            "no change of the training reached the target in less time");
  EXPECT_FALSE(report.equal_runs);
  // The one that was replaced, too.
  EXPECT_EQ(trial(report, "batch size 64").verdict, Verdict::kReverted);
  EXPECT_EQ(trial(report, "batch size 128").verdict, Verdict::kReverted);
  for (const Trial& one : report.trials) {
    EXPECT_FALSE(one.verdict == Verdict::kKept && one.change.effect == Effect::kTraining)
        << one.change.name;
  }
  EXPECT_EQ(report_markdown(report).find("budget was too small"), std::string::npos);
}

TEST(Search, TakesALearningRateThatWasFound) {
  FakeExperiments experiments;
  experiments.found_lr = 0.5;
  experiments.metrics["optimizer.lr=0.5"] = 0.02;
  experiments.factors.erase("data.batch_size=64");  // Batches would change the rate again.
  const Report report = run(experiments, {.goal = Goal::kTimeToAccuracy});
  EXPECT_TRUE(has(report, "optimizer.lr=0.5"));
  EXPECT_EQ(trial(report, "one-cycle schedule").reason,
            "then replaced by one-cycle schedule with optimizer.lr=0.5");
}

TEST(Search, StaysWithinItsBudget) {
  for (const double budget : {1.0, 20.0, 60.0, 200.0, 500.0}) {
    FakeExperiments experiments;
    run(experiments, {.goal = Goal::kTimeToAccuracy, .budget_seconds = budget});
    // One comparison, or one training, may have begun just before its end, and the total is needed.
    EXPECT_LT(experiments.spent, budget + 30) << budget;
  }
}

TEST(Search, TellsThatTrainingsDoNotFitIntoTheBudget) {
  FakeExperiments experiments;
  const Report report = run(experiments, {.goal = Goal::kTimeToAccuracy, .budget_seconds = 60});
  EXPECT_FALSE(report.target);
  EXPECT_NE(report.why_no_training_changes.find("a training takes about"), std::string::npos);
}

TEST(Search, ReportsInEveryForm) {
  FakeExperiments experiments;
  const Report report = run(experiments, {.goal = Goal::kTimeToAccuracy, .price_per_hour = 2});
  const std::string text = report_text(report), markdown = report_markdown(report);
  EXPECT_NE(text.find("times less time to accuracy 0.902"), std::string::npos) << text;
  EXPECT_NE(markdown.find("| train.compile=true | - | 1.30x (1.29 to 1.31) |"), std::string::npos)
      << markdown;
  EXPECT_NE(markdown.find("    gallop train mlp.yaml train.compile=true"), std::string::npos);
  EXPECT_NE(report_json(report).find(R"("goal":"time-to-accuracy")"), std::string::npos);
  EXPECT_NE(report_svg(report).find("train.precision=bf16"), std::string::npos);
}

}  // namespace
}  // namespace gallop::optimize
