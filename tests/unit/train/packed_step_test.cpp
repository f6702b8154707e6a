// Packed, padded and grouped batches of the same texts give the same steps.
#include <ATen/ops/allclose.h>
#include <gtest/gtest.h>

#include "gallop/data/loader.h"
#include "gallop/model/gpt.h"
#include "gallop/train/losses/loss.h"
#include "gallop/train/step/step.h"
#include "unit/data/random_texts.h"
#include "unit/train/trainee.h"

namespace gallop::train {
namespace {

constexpr int64_t kContext = 32, kVocabulary = 13;

Case tested(const std::string& positions, int64_t accumulation) {
  const model::Task task{.kind = model::Task::Kind::kText,
                         .classes = kVocabulary,
                         .context = kContext,
                         .padded = true};
  return {.name = "gpt",
          .make_model =
              [=] {
                return make_gpt({.layers = 2, .width = 32, .heads = 2, .positions = positions},
                                task, 1);
              },
          .optimizer = "sgd momentum=0.9",
          .config = {.gradient_accumulation = accumulation,
                     .loss = cross_entropy_loss(),
                     .every_target_counts = false},
          .text = true};
}

// The losses of some steps, and the weights after them.
struct Trained {
  std::vector<double> losses;
  std::vector<int64_t> targets;
  NamedTensors weights;
};

Trained train(const Case& tested, bool compiles, bool packs) {
  const data::RandomTexts samples(60, kContext, kVocabulary);
  std::optional<compile::CompileConfig> compile;
  if (compiles) compile = compile::CompileConfig{.graphs = 16};
  Trainee trainee(tested, compile);
  data::Loader loader(samples, {.batch = 20, .packs = packs}, {.seed = 3});
  Trained trained;
  for (int64_t i = 0; i < 9; ++i) {
    const auto batch = loader.next();
    const StepResult result = trainee.step->run(batch->by_role(), i, 0.1, true);
    trained.losses.push_back(result.tally.loss());
    trained.targets.push_back(result.tally.count);
  }
  for (const auto& [name, tensor] : trainee.model->parameters()) {
    trained.weights.push_back({name, tensor.detach().clone()});
  }
  return trained;
}

using Given = std::tuple<std::string, int64_t, bool>;
class PackedStep : public testing::TestWithParam<Given> {};

TEST_P(PackedStep, HasTheLossOfThePaddedOne) {
  const auto& [positions, accumulation, compiles] = GetParam();
  const Case one = tested(positions, accumulation);
  const Trained padded = train(one, compiles, false), packed = train(one, compiles, true);
  EXPECT_EQ(packed.targets, padded.targets);
  for (size_t i = 0; i < padded.losses.size(); ++i) {
    EXPECT_NEAR(packed.losses[i], padded.losses[i], 1e-6 * padded.losses[i]) << i;
  }
  EXPECT_LT(packed.losses.back(), packed.losses.front());
  for (size_t i = 0; i < padded.weights.size(); ++i) {
    EXPECT_TRUE(at::allclose(packed.weights[i].tensor, padded.weights[i].tensor, 1e-3, 1e-4))
        << padded.weights[i].name;
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, PackedStep,
                         testing::Combine(testing::Values("learned", "rotary"),
                                          testing::Values(1, 3), testing::Bool()),
                         [](const auto& given) {
                           return std::get<0>(given.param) + "By" +
                                  std::to_string(std::get<1>(given.param)) +
                                  (std::get<2>(given.param) ? "Compiled" : "Eager");
                         });

}  // namespace
}  // namespace gallop::train
