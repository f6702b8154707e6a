// Steps with every loss: with micro-batches, compiled, and data-parallel.
#include <cmath>
#include <functional>
#include <set>

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/data/text_samples.h"
#include "gallop/model/mlp.h"
#include "gallop/train/step/seed.h"
#include "gallop/train/step/step.h"
#include "unit/base/error_of.h"
#include "unit/parallel/ranks.h"
#include "unit/train/labeled.h"
#include "unit/train/loss_cases.h"
#include "unit/train/trainer_cases.h"

namespace gallop::train {
namespace {

/// A linear layer whose outputs have any sizes.
class AnyOutputs final : public model::Model {
 public:
  explicit AnyOutputs(std::vector<int64_t> sizes) : sizes_(std::move(sizes)) {
    int64_t outputs = 1;
    for (const int64_t size : sizes_) outputs *= size;
    // Threads that simulate processes share one generator.
    const auto numbers = [](int64_t count) { return at::arange(count).mul(12.9898).sin(); };
    parameters_.push_back(
        {"weight", numbers(outputs * 6).reshape({outputs, 6}).set_requires_grad(true)});
    parameters_.push_back({"bias", numbers(outputs).set_requires_grad(true)});
  }
  at::Tensor forward(const at::Tensor& input) override {
    std::vector<int64_t> sizes = {input.size(0)};
    sizes.insert(sizes.end(), sizes_.begin(), sizes_.end());
    return at::linear(input, parameters_[0].tensor, parameters_[1].tensor).reshape(sizes);
  }
  NamedTensors parameters() const override { return parameters_; }
  NamedTensors buffers() const override { return {}; }
  void set_training(bool) override {}
  bool training() const override { return true; }
  void to(at::Device, bool) override {}

 private:
  std::vector<int64_t> sizes_;
  NamedTensors parameters_;
};

constexpr int64_t kClasses = 5;

at::Tensor labels(std::vector<int64_t> sizes) { return at::randint(kClasses, sizes, at::kLong); }

at::Tensor ignored_labels(std::vector<int64_t> sizes) {
  at::Tensor target = labels(sizes);
  target.view(-1).slice(0, 0, target.numel(), 3).fill_(data::kIgnoredTarget);
  return target;
}

struct LossCase {
  std::string name, loss;
  std::vector<int64_t> outputs;
  std::function<at::Tensor(int64_t rows)> target;
  StepConfig config{};
  bool with_teacher = false;
};
void PrintTo(const LossCase& tested, std::ostream* out) { *out << tested.name; }

struct Steps {
  std::vector<StepResult> steps;
  NamedTensors parameters;
};

using Batches = std::vector<std::pair<at::Tensor, at::Tensor>>;

Batches batches_of(const LossCase& tested) {
  seed_step(5, 0, at::kCPU);
  Batches batches;
  for (const int64_t rows : {12, 7, 12, 12}) {
    batches.emplace_back(at::randn({rows, 6}), tested.target(rows));
  }
  return batches;
}

Steps train(const LossCase& tested, const Batches& batches, bool compiled,
            const std::string& strategy_name = {}, parallel::Collectives* collectives = nullptr) {
  AnyOutputs model(tested.outputs), teacher({kClasses});
  for (const auto& parameter : teacher.parameters()) parameter.tensor.set_requires_grad(false);
  const auto optimizer = optim::make_wrapped("sgd momentum=0.9", "[]", model.parameters(),
                                             model.buffers(), optim::kHundredSteps);
  StepConfig config = tested.config;
  LossContext context{.output_sizes = tested.outputs,
                      .target_sizes = batches.front().second.sizes().slice(1).vec(),
                      .target_type = batches.front().second.scalar_type()};
  if (!batches.front().second.is_floating_point()) context.classes = kClasses;
  config.loss = loss_of(tested.loss, context);
  if (compiled) config.compile = compile::CompileConfig();
  if (tested.with_teacher) config.distill = Distillation{&teacher, 2, 0.3};
  std::unique_ptr<parallel::Strategy> strategy;
  if (collectives != nullptr) {
    static const auto kStrategies = parallel::built_in_strategies();
    strategy = kStrategies.build(config::component_of(kStrategies, strategy_name), *collectives,
                                 {model.parameters(), model.buffers()});
    config.strategy = strategy.get();
  }
  TrainStep step(model, *optimizer, config);
  Steps result;
  for (size_t i = 0; i < batches.size(); ++i) {
    const auto& [input, target] = batches[i];
    const int64_t rows = input.size(0);
    int64_t begin = 0, end = rows;
    if (collectives != nullptr) {
      begin = rows * collectives->rank() / collectives->size();
      end = rows * (collectives->rank() + 1) / collectives->size();
    }
    result.steps.push_back(
        step.run(labeled(input.slice(0, begin, end), target.slice(0, begin, end)),
                 static_cast<int64_t>(i), 0.01, /*count_correct=*/true, {}, {.rows = rows}));
  }
  if (compiled) {
    EXPECT_TRUE(step.compile_report()->reasons.empty()) << step.compile_report()->reasons.front();
  }
  for (const auto& [name, tensor] : model.parameters()) {
    result.parameters.push_back({name, tensor.detach().clone()});
  }
  return result;
}

void expect_close(const Steps& found, const Steps& wanted) {
  for (size_t i = 0; i < wanted.steps.size(); ++i) {
    const StepResult &one = found.steps[i], &other = wanted.steps[i];
    EXPECT_EQ(one.tally.count, other.tally.count) << "step " << i;
    EXPECT_EQ(one.tally.top1, other.tally.top1) << "step " << i;
    EXPECT_EQ(one.has_class_labels, other.has_class_labels);
    EXPECT_NEAR(one.tally.loss(), other.tally.loss(), 1e-5 * std::max(1.0, other.tally.loss()));
    EXPECT_NEAR(one.gradient_norm, other.gradient_norm, 1e-4 * std::max(1.0, other.gradient_norm));
    EXPECT_TRUE(one.finite);
  }
  for (size_t i = 0; i < wanted.parameters.size(); ++i) {
    EXPECT_TRUE(at::allclose(found.parameters[i].tensor, wanted.parameters[i].tensor, 1e-4, 1e-5))
        << wanted.parameters[i].name;
  }
}

// Results of some operators depend on the number of threads.
class OneThread {
 public:
  OneThread() { at::set_num_threads(1); }
  ~OneThread() { at::set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_ = at::get_num_threads();
};

Steps train_ranks(int size, const LossCase& tested, const Batches& batches, bool compiled,
                  const std::string& strategy) {
  std::vector<Steps> all(static_cast<size_t>(size));
  const OneThread one_thread;
  parallel::run_ranks(size, [&](parallel::Collectives& collectives) {
    at::set_num_threads(1);
    all[static_cast<size_t>(collectives.rank())] =
        train(tested, batches, compiled, strategy, &collectives);
  });
  for (const Steps& one : all) {
    for (size_t i = 0; i < one.parameters.size(); ++i) {
      EXPECT_TRUE(at::equal(one.parameters[i].tensor, all.front().parameters[i].tensor));
    }
  }
  return all.front();
}

class LossStep : public testing::TestWithParam<LossCase> {};

// The mean loss over the whole batch, computed without a step.
TEST_P(LossStep, TakesTheMeanOverTheWholeBatch) {
  const LossCase& tested = GetParam();
  if (tested.with_teacher || tested.config.sam) return;
  const Batches batches = batches_of(tested);
  const auto& [input, target] = batches.front();
  AnyOutputs model(tested.outputs);
  LossContext context{.output_sizes = tested.outputs,
                      .target_sizes = target.sizes().slice(1).vec(),
                      .target_type = target.scalar_type()};
  if (!target.is_floating_point()) context.classes = kClasses;
  const auto loss = loss_of(tested.loss, context);
  const auto [sum, count] = (*loss)({model.forward(input)}, {{"input", input}, {"target", target}});
  const at::Tensor mean = sum.div(count.to(at::kFloat));
  mean.backward();
  double squares = 0;
  for (const auto& parameter : model.parameters()) {
    squares += parameter.tensor.grad().to(at::kDouble).square().sum().item<double>();
  }
  const StepResult first = train(tested, batches, /*compiled=*/false).steps.front();
  EXPECT_NEAR(first.tally.loss(), mean.item<double>(), 1e-5 * std::max(1.0, mean.item<double>()));
  EXPECT_NEAR(first.gradient_norm, std::sqrt(squares), 1e-5 * std::max(1.0, std::sqrt(squares)));
}

// A few of each kind, because compilation takes long.
const std::set<std::string> kCompiledTogether = {"Ignored", "ClassWeightsSmoothed",
                                                 "TaughtWeighted", "WeightedSum"};

TEST_P(LossStep, IsTheSameInPartsCompiledAndShared) {
  const LossCase& tested = GetParam();
  const Batches batches = batches_of(tested);
  const Steps alone = train(tested, batches, /*compiled=*/false);
  expect_close(train(tested, batches, /*compiled=*/true), alone);
  for (const int64_t accumulate : {2, 5}) {
    LossCase cut = tested;
    cut.config.gradient_accumulation = accumulate;
    SCOPED_TRACE(accumulate);
    expect_close(train(cut, batches, /*compiled=*/false), alone);
  }
  for (const std::string strategy : {"ddp", "deterministic"}) {
    std::optional<Steps> of_one;
    for (const int size : {1, 2, 3, 4}) {
      const bool compiled = size == 2 && kCompiledTogether.count(tested.name) > 0;
      SCOPED_TRACE(testing::Message() << size << " " << strategy << (compiled ? " compiled" : ""));
      const Steps shared = train_ranks(size, tested, batches, compiled, strategy);
      expect_close(shared, alone);
      if (strategy == "ddp" || compiled) continue;
      if (!of_one) of_one = shared;
      for (size_t i = 0; i < shared.parameters.size(); ++i) {
        EXPECT_TRUE(at::equal(shared.parameters[i].tensor, of_one->parameters[i].tensor));
      }
      for (size_t i = 0; i < shared.steps.size(); ++i) {
        EXPECT_EQ(shared.steps[i].tally.loss_sum, of_one->steps[i].tally.loss_sum);
      }
    }
  }
}

at::Tensor class_labels(int64_t rows) { return labels({rows}); }
at::Tensor ignored_class_labels(int64_t rows) { return ignored_labels({rows}); }
at::Tensor image_labels(int64_t rows) { return ignored_labels({rows, 3, 2}); }
at::Tensor soft_labels(int64_t rows) { return at::softmax(at::randn({rows, kClasses}), 1); }
at::Tensor some_numbers(int64_t rows) { return at::randn({rows, 3}); }
at::Tensor binary(int64_t rows) { return at::randint(2, {rows, kClasses}).to(at::kFloat); }
at::Tensor signs(int64_t rows) { return at::randint(2, {rows}).mul(2).sub(1).to(at::kFloat); }
at::Tensor some_counts(int64_t rows) { return at::randint(6, {rows, 3}).to(at::kFloat); }
at::Tensor sequences(int64_t rows) {
  at::Tensor target = at::randint(1, kClasses, {rows, 3}, at::kLong);
  for (int64_t row = 0; row < rows; ++row) {
    target.select(0, row).slice(0, 1 + row % 3).fill_(data::kIgnoredTarget);
  }
  return target;
}

const char* const kWeighted = "cross-entropy class_weights=[0.5,1,2,0.1,3]";

INSTANTIATE_TEST_SUITE_P(
    All, LossStep,
    testing::Values(
        LossCase{"CrossEntropy",
                 "cross-entropy label_smoothing=0.1",
                 {5},
                 class_labels,
                 {.every_target_counts = true}},
        LossCase{"Ignored", "cross-entropy", {5}, ignored_class_labels},
        LossCase{"IgnoreIndex",
                 "cross-entropy ignore_index=2",
                 {5},
                 class_labels,
                 {.every_target_counts = true}},
        LossCase{"ClassWeights", kWeighted, {5}, class_labels, {.every_target_counts = true}},
        LossCase{"ClassWeightsSmoothed",
                 "cross-entropy class_weights=[0.5,1,2,0.1,3] label_smoothing=0.2",
                 {5},
                 ignored_class_labels,
                 {.clip_grad_norm = 0.1, .sam = 0.05}},
        LossCase{"Images", kWeighted, {5, 3, 2}, image_labels},
        LossCase{"Soft", "cross-entropy", {5}, soft_labels},
        LossCase{"Taught", "cross-entropy", {5}, class_labels, {.every_target_counts = true}, true},
        LossCase{"TaughtWeighted", kWeighted, {5}, ignored_class_labels, {}, true},
        LossCase{"TaughtSoft", "cross-entropy", {5}, soft_labels, {}, true},
        LossCase{"Focal", "focal class_weights=[0.5,1,2,0.1,3]", {5}, ignored_class_labels},
        LossCase{"FocalStatic", "focal", {5}, class_labels, {.every_target_counts = true}},
        LossCase{"FocalBinary", "focal", {5}, binary},
        LossCase{"Bce", "bce-with-logits pos_weight=[1,2,3,4,5]", {5}, binary},
        LossCase{"Mse", "mse", {3}, some_numbers, {.clip_grad_norm = 1}},
        LossCase{"L1", "l1", {3}, some_numbers}, LossCase{"Huber", "huber", {3}, some_numbers},
        LossCase{"SmoothL1", "smooth-l1 beta=0.5", {3}, some_numbers},
        LossCase{"Quantile", "quantile quantiles=[0.1,0.5,0.9]", {3, 3}, some_numbers},
        LossCase{"PoissonNll", "poisson-nll full=true", {3}, some_counts},
        LossCase{"KlDivergence", "kl-divergence", {5}, soft_labels},
        LossCase{"CosineEmbedding", "cosine-embedding margin=0.1", {2, 4}, signs},
        LossCase{"TripletMargin", "triplet-margin swap=true", {3, 4}, class_labels},
        LossCase{"InfoNceGiven", "info-nce negatives=given", {5, 4}, class_labels},
        LossCase{"Dice", "dice", {5, 3, 2}, image_labels},
        LossCase{"Ctc", "ctc", {9, 5}, sequences},
        LossCase{"WeightedSum",
                 "weighted-sum losses=[{cross-entropy:{class_weights:[0.5,1,2,0.1,3]}},dice,focal] "
                 "weights=[1,0.5,2]",
                 {5, 3, 2},
                 image_labels,
                 {.clip_grad_norm = 0.5}},
        LossCase{"WeightedSumTaught",
                 "weighted-sum losses=[focal,cross-entropy]",
                 {5},
                 ignored_class_labels,
                 {.spikes = SpikeConfig{.action = "skip"}},
                 true},
        LossCase{"WeightedSumSkips",
                 "weighted-sum losses=[focal,cross-entropy]",
                 {5},
                 ignored_class_labels,
                 {.skip_nonfinite = true}}),
    [](const auto& tested) { return tested.param.name; });

// Results that arrive late, including the counts.
TEST(LossStep, IsTheSameWhereItsNumbersArriveLate) {
  LossCase tested{"Late", kWeighted, {5}, ignored_class_labels};
  const Batches batches = batches_of(tested);
  const Steps wanted = train(tested, batches, /*compiled=*/false);
  int64_t pushes = 0, waits = 0;
  tested.config.make_results = [&](c10::Device, int64_t most_numbers) {
    return std::make_unique<LateResults>(pushes, waits, most_numbers);
  };
  expect_close(train(tested, batches, /*compiled=*/false), wanted);
  expect_close(train_ranks(1, tested, batches, /*compiled=*/false, "deterministic"), wanted);
  EXPECT_EQ(waits, static_cast<int64_t>(2 * batches.size()));
}

TEST(LossStep, ALossThatComparesSamplesIsNotComputedInParts) {
  LossCase tested{"InfoNce", "info-nce", {2, 4}, class_labels};
  const Batches batches = batches_of(tested);
  expect_close(train(tested, batches, /*compiled=*/true), train(tested, batches, false));
  tested.config.gradient_accumulation = 2;
  EXPECT_NE(
      error_of([&] { train(tested, batches, false); }).find("set train.gradient_accumulation to 1"),
      std::string::npos);
  tested.config.gradient_accumulation = 1;
  EXPECT_NE(error_of([&] {
              train_ranks(2, tested, batches, false, "deterministic");
            }).find("use parallel.name=ddp"),
            std::string::npos);
}

// The last batch has no rows for some of four processes.
TEST(LossStep, ALossThatComparesSamplesTakesThoseOfAllProcesses) {
  for (const char* loss : {"info-nce", "weighted-sum losses=[info-nce,cosine-embedding]"}) {
    const LossCase tested{"InfoNce", loss, {2, 4}, signs};
    Batches batches = batches_of(tested);
    batches.emplace_back(at::randn({3, 6}), signs(3));
    const Steps alone = train(tested, batches, /*compiled=*/false);
    for (const int size : {1, 2, 3, 4}) {
      for (const bool compiled : {false, true}) {
        SCOPED_TRACE(testing::Message() << loss << ", " << size << (compiled ? ", compiled" : ""));
        expect_close(train_ranks(size, tested, batches, compiled, "ddp"), alone);
      }
    }
  }
}

TEST(LossStep, ASmoothingChangesOnlyALossThatHasIt) {
  LossCase tested{"Mse", "mse", {3}, some_numbers};
  tested.config.scheduled = {ScheduledParameter::kLabelSmoothing};
  EXPECT_NE(error_of([&] {
              train(tested, batches_of(tested), false);
            }).find("schedules.label_smoothing is an option of the loss cross-entropy"),
            std::string::npos);
}

}  // namespace
}  // namespace gallop::train
