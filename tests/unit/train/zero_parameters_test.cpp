// The memory of parameters with zero-3: while they are created, in steps and in evaluations.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "gallop/data/samples.h"
#include "gallop/model/gpt.h"
#include "gallop/parallel/block_gathers.h"
#include "gallop/parallel/initial_parameters.h"
#include "gallop/parallel/zero.h"
#include "gallop/train/averaged_weights.h"
#include "gallop/train/evaluate.h"
#include "gallop/train/inference_passes.h"
#include "unit/tensor/resident.h"
#include "unit/train/compared_ranks.h"
#include "unit/train/deep_gpt.h"
#include "unit/train/labeled.h"
#include "unit/train/trainee.h"

namespace gallop::train {
namespace {

// Counts, after each block of a forward pass, the pages of parameters that are in memory.
class PageCounter final : public BlockHooks {
 public:
  PageCounter(BlockHooks& hooks, parallel::Strategy& strategy) : hooks_(hooks) {
    for (const auto& [name, tensor] : strategy.state()) {
      if (name.starts_with("parameters.")) buckets_.push_back(tensor);
    }
  }
  int64_t count() const {
    int64_t pages = 0;
    for (const at::Tensor& bucket : buckets_) pages += resident_pages(bucket);
    return pages;
  }
  int64_t most() const { return most_; }

  void before_forward(size_t block, const at::Tensor& input) override {
    hooks_.before_forward(block, input);
  }
  void after_forward(size_t block, const std::vector<at::Tensor>& outputs) override {
    most_ = std::max(most_, count());
    hooks_.after_forward(block, outputs);
  }

 private:
  BlockHooks& hooks_;
  std::vector<at::Tensor> buckets_;
  int64_t most_ = 0;
};

// Counts the pages of buckets whenever a parameter is created.
class CountedMemory final : public TensorMemory {
 public:
  CountedMemory(std::shared_ptr<const parallel::ParameterBuckets> places,
                std::vector<std::optional<size_t>> order)
      : places_(places), memory_(std::move(places), std::move(order)) {}

  at::Tensor empty(at::IntArrayRef sizes) override {
    at::Tensor tensor = memory_.empty(sizes);
    most_ = std::max(most_, pages_of(*places_));
    return tensor;
  }
  int64_t most() const { return most_; }

  static int64_t pages_of(const parallel::ParameterBuckets& places) {
    int64_t pages = 0;
    for (const auto& [name, bucket] : places.named()) pages += resident_pages(bucket);
    return pages;
  }

 private:
  std::shared_ptr<const parallel::ParameterBuckets> places_;
  parallel::InitialParameters memory_;
  int64_t most_ = 0;
};

// A model of which this process has never had more than its parts and a parameter.
TEST(ZeroParameters, AreCreatedInParts) {
  const NamedTensors whole = deep_gpt()->parameters();
  run_on_one_core_each(2, [&](parallel::Collectives& collectives) {
    parallel::CreationOrder created;
    const auto planned = [&] {
      const TensorMemoryScope scope(created);
      model::InitialWeights sizes = 1;
      sizes.sizes_only = true;
      return deep_gpt_of(sizes);
    }();
    const NamedTensors parameters = planned->parameters();
    Case tested{"Gpt", {}, "adamw", {}, true};
    tested.strategy = "zero-3";
    const auto units =
        optim::make_wrapped(tested.optimizer, tested.wrappers, parameters, {}, optim::kHundredSteps)
            ->update_units();
    const auto places = parallel::make_parameter_buckets(
        {}, collectives,
        {.parameters = parameters, .update_units = units, .blocks = planned->block_parameters()});
    CountedMemory memory(places, created.parameters(parameters));
    tested.make_model = [&] {
      const TensorMemoryScope scope(memory);
      return deep_gpt();
    };
    Trainee trainee(tested, std::nullopt, &collectives);
    EXPECT_FALSE(parallel::block_gathers_of(*trainee.strategy)->are_whole());
    places->release_all();
    const int64_t own = CountedMemory::pages_of(*places);
    trainee.strategy->gather_parameters();
    expect_equal(copies_of(trainee.model->parameters()), whole);
    const auto all = static_cast<double>(CountedMemory::pages_of(*places));
    EXPECT_LT(static_cast<double>(own), 0.55 * all);
    EXPECT_LT(static_cast<double>(memory.most()), 0.62 * all);
  });
}

TEST(ZeroParameters, AreNotCreatedInPartsByOtherModels) {
  parallel::CreationOrder created;
  const TensorMemoryScope scope(created);
  model::InitialWeights sizes = 1;
  sizes.sizes_only = true;
  const auto model = make_gpt({.layers = 1, .width = 16, .heads = 2}, kText, sizes);
  EXPECT_FALSE(created.parameters(model->parameters()).empty());
  EXPECT_TRUE(created.parameters({{"other", at::zeros({2}).requires_grad_()}}).empty());
}

// Samples of texts, the number of which processes do not divide.
class Texts final : public data::Samples {
 public:
  Texts()
      : Samples({{.name = "tokens", .shape = {.sizes = {8}, .dtype = c10::ScalarType::Long}},
                 {.name = "labels", .shape = {.sizes = {8}, .dtype = c10::ScalarType::Long}}}) {}
  int64_t size() const override { return 13; }
  bool fill(int64_t index, int64_t, const data::SampleRow& row, data::Scratch&) const override {
    for (size_t field = 0; field < 2; ++field) {
      for (int64_t i = 0; i < 8; ++i) row.as<int64_t>(field)[i] = (index * 7 + i) % 11;
    }
    return true;
  }
};

// By blocks, and with other numbers of batches in each process, with the results of all parameters.
TEST(ZeroParameters, AreEvaluatedByBlock) {
  const Texts texts;
  const StopRequest go_on;
  for (const char* wrappers : {"[]", "[{ema: {decay: 0.5}}]"}) {
    run_on_one_core_each(3, [&](parallel::Collectives& collectives) {
      Case tested{"Gpt", deep_gpt, "adamw", {}, true};
      tested.wrappers = wrappers;
      tested.strategy = "zero-3";
      Trainee trainee(tested, std::nullopt, &collectives);
      const auto [input, target] = batch_of(tested, 4);
      trainee.step->run(labeled(input, target), 0, 0.01, false, {}, {.rows = 12});
      const AveragedWeights averaged(*trainee.optimizer);
      const EvaluateConfig config{.loader = {.batch = 3, .threads = 0},
                                  .collectives = &collectives};
      const auto evaluated = [&] {
        const InferenceScope scope(trainee.strategy.get());
        return evaluate(*trainee.model, texts, config, go_on)->tally;
      };
      PageCounter pages(*trainee.strategy->block_hooks(), *trainee.strategy);
      trainee.model->set_block_hooks(&pages);
      const Tally by_block = evaluated();
      const int64_t most = pages.most();
      trainee.strategy->gather_parameters();
      const Tally whole = evaluated();
      EXPECT_EQ(by_block.loss_sum, whole.loss_sum);
      EXPECT_EQ(by_block.top5, whole.top5);
      EXPECT_EQ(by_block.count, 13 * 8);
      EXPECT_LT(static_cast<double>(most), 0.6 * static_cast<double>(pages.count()));
    });
  }
}

// Eager and compiled: the parts of this process between steps, and two of eight blocks within an
// eager one.
TEST(ZeroParameters, AreReleased) {
  for (const bool compiled : {false, true}) {
    run_on_one_core_each(2, [&](parallel::Collectives& collectives) {
      Case tested{"Gpt", deep_gpt, "adamw", {}, true};
      tested.strategy = "zero-3";
      Trainee trainee(tested, compiled ? std::optional(compile::CompileConfig()) : std::nullopt,
                      &collectives);
      PageCounter pages(*trainee.strategy->block_hooks(), *trainee.strategy);
      trainee.model->set_block_hooks(&pages);
      const int64_t all = pages.count();
      const auto [input, target] = batch_of(tested, 4);
      for (int64_t step = 0; step < 4; ++step) {
        trainee.step->run(labeled(input, target), step, 0.01, false, {}, {.rows = 8});
        EXPECT_LT(static_cast<double>(pages.count()), 0.55 * static_cast<double>(all));
      }
      // A dry run of the step compiler reads pages of zeros, which take no memory.
      if (!compiled) {
        EXPECT_LT(static_cast<double>(pages.most()), 0.65 * static_cast<double>(all));
      }
      trainee.strategy->gather_parameters();
      EXPECT_EQ(pages.count(), all);
    });
  }
}

}  // namespace
}  // namespace gallop::train
