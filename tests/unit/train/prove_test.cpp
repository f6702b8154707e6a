// The comparison of a training's steps with a reference: it proves trainings, and detects planted
// faults. Each fault is in the training's own model, optimizer, data or config, not in what steps
// are compared with.
#include <functional>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "gallop/data/device_loader.h"
#include "gallop/kernel/batch_norm.h"
#include "gallop/model/functional/batch_norm.h"
#include "gallop/model/functional/dropout.h"
#include "gallop/optim/gradients.h"
#include "gallop/parallel/ddp.h"
#include "gallop/train/prove/comparison.h"
#include "gallop/train/prove/proof_text.h"
#include "unit/parallel/ranks.h"
#include "unit/train/trainer_cases.h"

namespace gallop::train {
namespace {

/// How a network differs from what it should be.
struct NetworkFault {
  bool has_bias = true;          ///< Whether the convolution adds its bias.
  double eps = 1e-5;             ///< Of batch norm.
  int64_t batch_norms = 1;       ///< Passes through batch norm, all but the last in vain.
  bool restores_draws = true;    ///< Whether the backward pass has the dropout of the forward pass.
  bool reads_rows_first = true;  ///< Whether the classifier reads [N, C, H, W].
};

at::Tensor random_parameter(at::IntArrayRef sizes, double scale) {
  const at::NoGradGuard no_grad;
  return (at::randn(sizes) * scale).set_requires_grad(true);
}

/// Convolution, batch norm, dropout, and a classifier of images 1 x 4 x 4.
class SmallNetwork final : public model::Model {
 public:
  explicit SmallNetwork(double dropout, NetworkFault fault = {})
      : dropout_(dropout), fault_(fault) {
    at::manual_seed(1);
    parameters_ = {{"conv.weight", random_parameter({6, 1, 3, 3}, 0.5)},
                   {"conv.bias", random_parameter({6}, 0.5)},
                   {"norm.weight", random_parameter({6}, 1)},
                   {"norm.bias", random_parameter({6}, 0.5)},
                   {"classifier.weight", random_parameter({3, 96}, 0.2)},
                   {"classifier.bias", random_parameter({3}, 0.2)}};
    buffers_ = {{"norm.running_mean", at::zeros({6})}, {"norm.running_var", at::zeros({6}) + 1}};
  }

  at::Tensor forward(const at::Tensor& x) override {
    // The bias is added after a nonlinear function, as batch norm would remove it.
    at::Tensor y = at::conv2d(x, own(0), {}, 1, 1);
    y = fault_.has_bias ? (y.tanh() + own(1).view({1, 6, 1, 1})).sin() : y.tanh().sin();
    const kernel::BatchNormParameters norm{.weight = own(2),
                                           .bias = own(3),
                                           .running_mean = buffers_[0].tensor,
                                           .running_var = buffers_[1].tensor,
                                           .eps = fault_.eps};
    if (hooks_ != nullptr) hooks_->after_forward(0, {y});
    at::Tensor normed;
    for (int64_t i = 0; i < fault_.batch_norms; ++i) {
      normed = model::functional::batch_norm(y, {}, norm, {.training = training_});
    }
    if (hooks_ != nullptr) hooks_->after_forward(1, {normed});
    const at::Tensor kept = model::functional::dropout(normed, dropout_, training_);
    y = kept;
    if (!fault_.restores_draws) {
      // The values of the first draw with the gradient of another.
      const at::Tensor again = model::functional::dropout(normed, dropout_, training_);
      y = kept.detach() + (again - again.detach());
    }
    if (!fault_.reads_rows_first) y = y.permute({0, 2, 3, 1});
    return at::linear(y.flatten(1), own(4), own(5));
  }

  NamedTensors parameters() const override { return parameters_; }
  NamedTensors buffers() const override { return buffers_; }
  void set_training(bool training) override { training_ = training; }
  bool training() const override { return training_; }
  void to(at::Device, bool) override {}
  std::vector<std::vector<std::string>> block_parameters() const override {
    return {{"conv.weight", "conv.bias"}, {"norm.weight", "norm.bias"}};
  }
  void set_block_hooks(BlockHooks* hooks) override { hooks_ = hooks; }

 private:
  const at::Tensor& own(size_t i) const { return parameters_[i].tensor; }

  NamedTensors parameters_, buffers_;
  double dropout_;
  NetworkFault fault_;
  bool training_ = true;
  BlockHooks* hooks_ = nullptr;
};

/// Changes gradients, or the factor that divides them, before an optimizer applies them.
class FaultyOptimizer final : public optim::Optimizer {
 public:
  using Fault = std::function<void(at::Tensor& grad_scale)>;
  FaultyOptimizer(optim::Optimizer& optimizer, Fault fault)
      : optimizer_(optimizer), fault_(std::move(fault)) {}

  at::Tensor step(const at::Tensor& lr, const at::Tensor& grad_scale, const at::Tensor& found_inf,
                  const optim::ScheduledOptions& scheduled) override {
    const at::NoGradGuard no_grad;
    at::Tensor scale = grad_scale;
    if (fault_) fault_(scale);
    optimizer_.step(lr, scale, found_inf, scheduled);
    return {};
  }
  bool can_schedule(optim::ScheduledOption option) const override {
    return optimizer_.can_schedule(option);
  }
  NamedTensors state() const override { return optimizer_.state(); }
  double base_lr() const override { return optimizer_.base_lr(); }

 private:
  optim::Optimizer& optimizer_;
  Fault fault_;
};

/// Reads one sample twice.
class RepeatedSample final : public data::Samples {
 public:
  explicit RepeatedSample(const data::Samples& samples)
      : Samples(samples.fields()), samples_(samples) {}
  int64_t size() const override { return samples_.size(); }
  bool every_target_counts() const override { return samples_.every_target_counts(); }
  bool fill(int64_t index, int64_t epoch, const data::SampleRow& row,
            data::Scratch& scratch) const override {
    return samples_.fill(index == 17 ? 18 : index, epoch, row, scratch);
  }

 private:
  const data::Samples& samples_;
};

/// A training, and what it should be.
struct ProofCase {
  StepConfig config{};  ///< That steps are compared with.
  std::string optimizer = "adamw lr=0.01";
  double dropout = 0;
  int ranks = 1;
  bool probes = true;
  bool probes_blocks = false;
  // Faults of the training.
  NetworkFault network{};
  std::function<FaultyOptimizer::Fault(const NamedTensors& parameters)> fault{};
  bool repeats_sample = false;
  std::string faulty_optimizer{};  ///< If set, instead of `optimizer`.
  precision::Precision precision = precision::Precision::kFp32;
};

class Proofs : public testing::TestWithParam<bool> {
 protected:
  static constexpr int64_t kRows = 16, kSteps = 4;

  // The proof of rank 0; gathers nothing but rows, so that ranks differ in these alone.
  Proof prove(const ProofCase& tested) {
    if (tested.ranks == 1) return prove(tested, nullptr);
    Proof proof;
    parallel::run_ranks(tested.ranks, [&](parallel::Collectives& collectives) {
      const Proof own = prove(tested, &collectives);
      if (collectives.rank() == 0) proof = own;
    });
    return proof;
  }

  static std::unique_ptr<optim::Optimizer> optimizer_of(const std::string& text,
                                                        const model::Model& model) {
    return optim::make_wrapped(text, "[]", model.parameters(), model.buffers(),
                               optim::kHundredSteps);
  }

  Proof prove(const ProofCase& tested, parallel::Collectives* collectives) {
    const int64_t rank = collectives == nullptr ? 0 : collectives->rank();
    const RandomImages images;
    const RepeatedSample repeated(images);
    const data::Samples& samples =
        tested.repeats_sample ? static_cast<const data::Samples&>(repeated) : images;
    StepConfig config = tested.config;
    config.every_target_counts = true;
    const auto recorded = train(tested, config, rank, collectives, samples);
    // What it should be.
    SmallNetwork wide(tested.dropout), narrow(tested.dropout);
    convert_to_fp64(wide);
    const auto of_wide = optimizer_of(tested.optimizer, wide);
    const auto of_narrow = optimizer_of(tested.optimizer, narrow);
    PlainStep reference(wide, *of_wide, config), plain(narrow, *of_narrow, config);
    Comparison comparison(reference, plain,
                          {.seed = config.seed,
                           .depends_on_division = true,
                           .roundoff = std::ldexp(1, -24),
                           .storage_roundoff = std::ldexp(1, -24)});
    data::DeviceLoader loader(images, {.batch = kRows}, {.seed = 1}, at::kCPU);
    for (RecordedStep step : recorded) {
      const NamedTensors batch = loader.next()->by_role();
      if (collectives != nullptr) {
        step.batch = batch;
        step.outputs = at::Tensor();
        step.activations.clear();
      }
      comparison.add(step, batch);
    }
    return comparison.proof();
  }

  std::vector<RecordedStep> train(const ProofCase& tested, StepConfig config, int64_t rank,
                                  parallel::Collectives* collectives,
                                  const data::Samples& samples) {
    SmallNetwork network(tested.dropout, tested.network);
    const auto inner = optimizer_of(
        tested.faulty_optimizer.empty() ? tested.optimizer : tested.faulty_optimizer, network);
    ProbedModel model(network);
    ProbedOptimizer probed(*inner, network.parameters(), model);
    FaultyOptimizer optimizer(
        probed, tested.fault ? tested.fault(network.parameters()) : FaultyOptimizer::Fault());
    std::unique_ptr<parallel::Strategy> strategy;
    if (collectives != nullptr) {
      strategy = parallel::make_ddp({}, *collectives, {network.parameters(), network.buffers()});
      config.strategy = strategy.get();
    }
    config.precision = tested.precision;
    if (GetParam()) config.compile.emplace();
    const TrainConfig train_config{.gradient_accumulation = config.gradient_accumulation,
                                   .evaluate_every = "never",
                                   .checkpoint_every = "never"};
    const auto schedules = schedule::built_in_schedules();
    const auto schedule = schedules.build(config::Component(schedules, "constant"),
                                          Length::of(train_config, kRows, 64).for_schedules());
    CheckpointStore checkpoints(folder_ / std::to_string(rank));
    const StopRequest stop;
    StepRecorder recorder(network, *inner, {.micro_batches = config.gradient_accumulation}, rank,
                          tested.ranks);
    if (tested.probes) recorder.probe(model, probed);
    if (tested.probes_blocks) model.probe_blocks();
    const data::LoaderConfig loader{
        .batch = kRows, .part = static_cast<int>(rank), .parts = tested.ranks};
    Trainer trainer({.model = model,
                     .optimizer = optimizer,
                     .schedule = *schedule,
                     .train_samples = samples,
                     .checkpoints = checkpoints,
                     .observers = {&recorder},
                     .stop = stop,
                     .until = {.unit = Interval::Unit::kSteps, .count = kSteps}},
                    train_config, config, loader, {.loader = loader, .collectives = collectives});
    trainer.run();
    return recorder.take();
  }

  void SetUp() override {
    folder_ = fs::temp_directory_path() / fmt::format("gallop-proofs-{}", getpid());
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // The first difference, as "gradients: conv.bias".
  static std::string found(const Proof& proof) {
    const ComparedQuantity* first = proof.first_that_differs();
    if (first == nullptr) return "none";
    const ComparedTensor& tensor = *first->first_that_differs();
    return fmt::format("{}: {}", name_of(first->quantity), tensor.name);
  }

  // Whether this quantity differs in any tensor, and in which.
  static std::vector<std::string> all_in(const Proof& proof, Quantity quantity) {
    std::vector<std::string> names;
    for (const ComparedQuantity& one : proof.quantities) {
      if (one.quantity != quantity) continue;
      for (const ComparedTensor& tensor : one.tensors) {
        if (tensor.differs()) names.push_back(tensor.name);
      }
    }
    return names;
  }

  fs::path folder_;
};

INSTANTIATE_TEST_SUITE_P(Steps, Proofs, testing::Bool(),
                         [](const auto& tested) { return tested.param ? "Compiled" : "Eager"; });

TEST_P(Proofs, HoldForTrainings) {
  const auto config = [] { return StepConfig(); };
  StepConfig accumulated = config(), clipped = config(), sam = config();
  accumulated.gradient_accumulation = 3;
  clipped.clip_grad_norm = 0.1;
  sam.sam = 0.05;
  for (const ProofCase& tested :
       {ProofCase{}, ProofCase{.dropout = 0.5}, ProofCase{.config = accumulated, .dropout = 0.5},
        ProofCase{.config = clipped, .optimizer = "sgd momentum=0.9"}, ProofCase{.config = sam},
        ProofCase{.optimizer = "lamb"}, ProofCase{.ranks = 2},
        ProofCase{.config = accumulated, .dropout = 0.5, .ranks = 2}, ProofCase{.probes = false},
        ProofCase{.config = accumulated, .dropout = 0.5, .probes_blocks = true}}) {
    const Proof proof = prove(tested);
    EXPECT_EQ(difference_text(proof), "") << proof_text(proof);
    EXPECT_EQ(proof.steps, kSteps);
    EXPECT_EQ(proof.samples, kSteps * kRows);
  }
}

// Gradients are sums over micro-batches that are not divided by their number.
TEST_P(Proofs, DetectAccumulationScaling) {
  StepConfig config;
  config.gradient_accumulation = 2;
  const auto fault = [](const NamedTensors& parameters) {
    return [parameters](at::Tensor&) {
      for (const at::Tensor& gradient : optim::gradients_of(parameters)) gradient.mul_(2);
    };
  };
  EXPECT_EQ(found(prove({.config = config, .fault = fault})), "gradients: classifier.bias");
}

TEST_P(Proofs, DetectMissingRestoreOfDraws) {
  const Proof proof = prove({.dropout = 0.5, .network = {.restores_draws = false}});
  // The classifier is behind dropout, and batch norm in front of it.
  EXPECT_EQ(found(proof), "gradients: norm.bias");
}

// Each process clips by the norm of the parameters that it owns.
TEST_P(Proofs, DetectLocalNormInClipping) {
  StepConfig config;
  config.clip_grad_norm = 0.1;
  const auto fault = [](const NamedTensors& parameters) {
    const NamedTensors own(parameters.begin(), parameters.begin() + 4);
    return [own](at::Tensor& scale) {
      scale = optim::clip_divisor(optim::gradient_norm(optim::gradients_of(own)), 0.1);
    };
  };
  const Proof proof = prove({.config = config, .fault = fault});
  EXPECT_EQ(found(proof), "gradients: classifier.bias");
  EXPECT_EQ(all_in(proof, Quantity::kGradients).size(), 6U);
}

TEST_P(Proofs, DetectDuplicatedSample) {
  const Proof proof = prove({.repeats_sample = true});
  EXPECT_EQ(found(proof), "samples: samples");
  const std::string text = difference_text(proof);
  EXPECT_TRUE(text.find("samples differ; row ") == 0) << text;
}

// A bucket with the gradients of the step before.
TEST_P(Proofs, DetectStaleBucket) {
  const auto fault = [](const NamedTensors& parameters) {
    const NamedTensors bucket(parameters.begin() + 2, parameters.begin() + 4);
    std::vector<at::Tensor> before;
    for (const auto& [name, tensor] : bucket) before.push_back(at::zeros_like(tensor.detach()));
    return [bucket, before](at::Tensor&) {
      for (size_t i = 0; i < bucket.size(); ++i) {
        const at::Tensor now = bucket[i].tensor.grad().clone();
        bucket[i].tensor.mutable_grad().copy_(before[i]);
        before[i].copy_(now);
      }
    };
  };
  const Proof proof = prove({.fault = fault});
  EXPECT_EQ(found(proof), "gradients: norm.bias");
  EXPECT_EQ(all_in(proof, Quantity::kGradients),
            (std::vector<std::string>{"norm.bias", "norm.weight"}));
}

TEST_P(Proofs, DetectWrongLayout) {
  EXPECT_EQ(found(prove({.network = {.reads_rows_first = false}})), "outputs: outputs");
}

TEST_P(Proofs, DetectMissingBias) {
  const Proof proof = prove({.network = {.has_bias = false}});
  EXPECT_EQ(found(proof), "outputs: outputs");
  EXPECT_EQ(all_in(proof, Quantity::kGradients).front(), "conv.bias");
  const std::string text = difference_text(proof);
  EXPECT_NE(text.find("; gradients: the first that differs, from the loss to the input, is "
                      "conv.bias: 1 in step "),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("no gradient"), std::string::npos) << text;
}

TEST_P(Proofs, NameTheFirstBlockWhoseOutputDiffers) {
  const Proof proof = prove({.probes_blocks = true, .network = {.has_bias = false}});
  EXPECT_EQ(found(proof), "activations: conv");
  EXPECT_EQ(all_in(proof, Quantity::kActivations), (std::vector<std::string>{"conv", "norm"}));
  EXPECT_EQ(found(prove({.probes_blocks = true, .network = {.eps = 1e-6}})), "activations: norm");
  EXPECT_EQ(found(prove({.probes_blocks = true, .network = {.reads_rows_first = false}})),
            "outputs: outputs");
}

TEST_P(Proofs, DetectWrongEpsilon) {
  EXPECT_EQ(found(prove({.network = {.eps = 1e-6}})), "outputs: outputs");
  EXPECT_EQ(found(prove({.faulty_optimizer = "adamw lr=0.01 eps=1e-5"})),
            "weights: classifier.bias");
}

TEST_P(Proofs, DetectBf16WhereFp32WasRequested) {
  EXPECT_EQ(found(prove({.precision = precision::Precision::kBf16})), "outputs: outputs");
}

TEST_P(Proofs, DetectBatchNormUpdatedTwice) {
  const Proof proof = prove({.network = {.batch_norms = 2}});
  EXPECT_EQ(found(proof), "buffers: norm.running_mean");
  EXPECT_EQ(all_in(proof, Quantity::kBuffers),
            (std::vector<std::string>{"norm.running_mean", "norm.running_var"}));
}

// Without copies of outputs and gradients, the results of a step show it.
TEST_P(Proofs, DetectFaultsWithoutProbes) {
  EXPECT_EQ(found(prove({.probes = false, .network = {.has_bias = false}})), "loss: loss");
  EXPECT_EQ(found(prove({.probes = false, .faulty_optimizer = "adamw lr=0.01 eps=1e-5"})),
            "weights: classifier.bias");
}

TEST(Comparisons, OneRoundingErrorIsNoFault) {
  ComparedTensor tensor{.name = "a", .steps = {{1, 0.5, 1}, {2, 1.5, 1}, {3, 0.5, 1}}};
  EXPECT_FALSE(tensor.differs());
  tensor.steps[0].error = 1.5;
  EXPECT_TRUE(tensor.differs());
  // By far.
  EXPECT_TRUE(
      (ComparedTensor{.name = "a", .steps = {{1, 0.001, 0.002}, {2, 0.1, 0.002}}}).differs());
  EXPECT_FALSE(
      (ComparedTensor{.name = "a", .steps = {{1, 0.001, 0.002}, {2, 0.01, 0.002}}}).differs());
  // The only step.
  EXPECT_TRUE((ComparedTensor{.name = "a", .steps = {{1, 1.5, 1}}}).differs());
  EXPECT_TRUE((ComparedTensor{.name = "a", .steps = {{1, NAN, 1}, {2, 0, 1}}}).differs());
}

TEST(Divisions, FollowRanksAndMicroBatches) {
  const auto ranges = [](const std::vector<BatchPart>& parts) {
    std::string text;
    for (const BatchPart& part : parts) {
      text += "[";
      for (const Rows& rows : part.pieces) {
        for (const auto& [begin, end] : rows) text += fmt::format(" {}-{}", begin, end);
        text += ";";
      }
      text += "]";
    }
    return text;
  };
  const Division two{.rows = {5, 6}, .micro_batches = 2};
  EXPECT_EQ(ranges(undivided(two, 1)), "[ 0-11;]");
  EXPECT_EQ(ranges(divided(two, 1)), "[ 0-2; 2-5;][ 5-8; 8-11;]");
  EXPECT_NE(divided(two, 1)[0].seed, divided(two, 1)[1].seed);
  EXPECT_EQ(rows_of_passes(two, 0), (std::vector<int64_t>{2, 3}));
  const Division together{.rows = {5, 6}, .micro_batches = 2, .shares_batch_norm = true};
  EXPECT_EQ(ranges(divided(together, 1)), "[ 0-2 5-8; 2-5 8-11;]");
  const Division sliced{.rows = {2, 3}, .slices = 4};
  EXPECT_EQ(ranges(divided(sliced, 1)), "[ 0-1;][ 1-2;][ 2-3;][ 3-5;]");
  EXPECT_EQ(rows_of_passes(sliced, 1), (std::vector<int64_t>{1, 2}));
}

}  // namespace
}  // namespace gallop::train
