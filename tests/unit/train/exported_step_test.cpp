// Training steps of the model "exported" on every archive of tests/parity/make_exported.py.
#include <unistd.h>

#include <functional>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/compile/passes.h"
#include "gallop/tensor/safetensors.h"
#include "gallop/train/step/seed.h"
#include "gallop/train/step/step.h"
#include "unit/train/exported_net.h"

namespace gallop::train {
namespace {

using precision::Precision;

constexpr double kLr = 0.01;

// The losses of steps [begin, end).
std::vector<double> run_steps(Trainee& trainee, const NamedTensors& batch, int64_t begin,
                              int64_t end) {
  std::vector<double> losses;
  for (int64_t step = begin; step < end; ++step) {
    seed_step(9, step, at::kCPU);
    const StepResult result = trainee.step->run(batch, step, kLr, false);
    EXPECT_TRUE(result.finite) << result.non_finite_tensor;
    losses.push_back(result.tally.loss());
  }
  return losses;
}

// Recomputed blocks add up three or more gradients of one activation in another order.
const std::set<std::string> kOtherOrders = {"diffusion-unet"};
// Programs that draw from LibTorch's generator, and with what: parallel.name=deterministic rejects
// them.
const std::map<std::string, std::string> kDraws = {{"dit", "aten::rand"}, {"lstm", "aten::lstm"}};

// Archives of the short tests: one of each kind, and those with peculiarities.
const std::set<std::string> kUsual = {"autocast",
                                      "bert",
                                      "buffer-mutation",
                                      "cnn",
                                      "diffusion-unet",
                                      "dit",
                                      "embedding-bag",
                                      "gpt2",
                                      "lstm",
                                      "mlp",
                                      "resnet",
                                      "tied-head",
                                      "vae",
                                      "vit"};

// The `names` in kUsual, or the others.
std::vector<std::string> select(std::vector<std::string> names, bool usual) {
  std::erase_if(names, [&](const std::string& name) { return kUsual.contains(name) != usual; });
  return names;
}

std::vector<std::string> all_names() {
  return model::exported::names_in(model::exported::folder());
}

class ExportedStep : public testing::TestWithParam<std::string> {};

TEST_P(ExportedStep, ResumesExactly) {
  const Net net(GetParam());
  const Case tested = net.tested();
  const NamedTensors batch = net.batch();
  Trainee whole(tested, compile::CompileConfig{});
  run_steps(whole, batch, 0, 4);
  Trainee first(tested, compile::CompileConfig{});
  run_steps(first, batch, 0, 2);
  const fs::path file =
      fs::temp_directory_path() / fmt::format("gallop-exported-step-{}.safetensors", getpid());
  write_safetensors(file, first.everything());
  Trainee second(tested, compile::CompileConfig{});
  {
    const at::NoGradGuard no_grad;
    copy_by_name(read_safetensors(file).tensors, "the checkpoint", second.everything());
  }
  fs::remove(file);
  run_steps(second, batch, 2, 4);
  expect_equal(second.everything(), whole.everything());
}

TEST_P(ExportedStep, IsCloseInBf16) {
  const Net net(GetParam());
  const bool has_other_noise = net.name == "vae";  // randn_like() of bf16.
  const NamedTensors batch = net.batch();
  Trainee exact(net.tested(), std::nullopt);
  Trainee rounded(net.tested({.precision = Precision::kBf16}), std::nullopt);
  const auto wanted = run_steps(exact, batch, 0, 3), losses = run_steps(rounded, batch, 0, 3);
  EXPECT_NEAR(losses[0] / wanted[0], 1, has_other_noise ? 0.5 : 0.02);
  // Large steps on a few samples amplify the rounding.
  for (size_t i = 1; i < losses.size(); ++i) {
    EXPECT_NEAR(losses[i] / wanted[i], 1, has_other_noise ? 0.5 : 0.2) << "step " << i;
  }
}

TEST_P(ExportedStep, HasTheSameBitsCompiledWithEveryOption) {
  const Net net(GetParam());
  const NamedTensors batch = net.batch();
  const compile::CompileConfig exact{.passes_off = compile::names_of_rounding_passes()};
  std::vector<Case> cases = {net.tested({.sam = 0.05}),
                             net.tested({.clip_grad_norm = 0.1}, "[{ema: {decay: 0.9}}]")};
  if (net.can_be_cut()) cases.push_back(net.tested({.gradient_accumulation = 2}));
  for (const Case& tested : cases) {
    Trainee eager(tested, std::nullopt), compiled(tested, exact);
    EXPECT_EQ(run_steps(eager, batch, 0, 3), run_steps(compiled, batch, 0, 3));
    expect_equal(eager.everything(), compiled.everything());
  }
}

TEST_P(ExportedStep, HasTheSameBitsWithActivationCheckpointing) {
  const Net net(GetParam());
  const NamedTensors batch = net.batch();
  const Case plain = net.tested();
  Case tested = plain;
  tested.make_model = [&net] {
    auto model = net.make();
    model->recompute(std::vector<bool>(static_cast<size_t>(model->blocks()), true));
    return model;
  };
  const compile::CompileConfig exact{.passes_off = compile::names_of_rounding_passes()};
  Trainee wanted(plain, std::nullopt), eager(tested, std::nullopt), compiled(tested, exact);
  const auto losses = run_steps(wanted, batch, 0, 3), again = run_steps(eager, batch, 0, 3);
  EXPECT_EQ(run_steps(compiled, batch, 0, 3), again);
  expect_equal(compiled.everything(), eager.everything());
  if (kOtherOrders.contains(net.name)) {
    for (size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(again[i] / losses[i], 1, 1e-5);
  } else {
    EXPECT_EQ(again, losses);
    expect_equal(eager.everything(), wanted.everything());
  }
}

INSTANTIATE_TEST_SUITE_P(Usual, ExportedStep, testing::ValuesIn(select(all_names(), true)),
                         model::exported::name_of_case);
INSTANTIATE_TEST_SUITE_P(Long, ExportedStep, testing::ValuesIn(select(all_names(), false)),
                         model::exported::name_of_case);

std::vector<std::string> names_that_can_be_cut() {
  std::vector<std::string> names = all_names();
  std::erase_if(names, [](const std::string& name) { return !Net(name).can_be_cut(); });
  return names;
}

constexpr int64_t kSharedRows = 24;

// What `read` finds in each process after three steps.
std::vector<NamedTensors> train_ranks(int size, const Case& tested, const NamedTensors& batch,
                                      const std::function<NamedTensors(const Trainee&)>& read) {
  std::vector<NamedTensors> all(static_cast<size_t>(size));
  run_on_one_core_each(size, [&](parallel::Collectives& collectives) {
    const int64_t rank = collectives.rank();
    Trainee trainee(tested, std::nullopt, &collectives);
    const NamedTensors part =
        slice_rows(batch, kSharedRows * rank / size, kSharedRows * (rank + 1) / size);
    for (int64_t step = 0; step < 3; ++step) {
      trainee.step->run(part, step, kLr, false, {}, {.rows = kSharedRows});
    }
    trainee.strategy->gather_parameters();
    all[static_cast<size_t>(rank)] = read(trainee);
  });
  return all;
}

class SharedExportedStep : public testing::TestWithParam<std::string> {};

TEST_P(SharedExportedStep, HasTheBitsOfOneProcess) {
  const Net net(GetParam());
  Case tested = net.tested();
  tested.strategy = "deterministic";
  const std::string draw = net.make()->draws_from_generator();
  if (const auto known = kDraws.find(net.name); known != kDraws.end()) {
    EXPECT_NE(draw.find(known->second), std::string::npos) << draw;
    return;
  }
  EXPECT_EQ(draw, "");
  const NamedTensors batch = net.batch(kSharedRows);
  const auto everything = [](const Trainee& trainee) { return trainee.everything(); };
  const NamedTensors one = train_ranks(1, tested, batch, everything).front();
  for (const NamedTensors& of_two : train_ranks(2, tested, batch, everything)) {
    expect_equal(of_two, one);
  }
}

// Parameters that are gathered for each block.
TEST_P(SharedExportedStep, HasTheBitsOfDdpInParts) {
  const Net net(GetParam());
  // Threads of a process share LibTorch's generator.
  if (net.make()->block_parameters().empty() || kDraws.contains(net.name)) return;
  Case tested = net.tested({.clip_grad_norm = 0.1});
  const NamedTensors batch = net.batch(kSharedRows);
  const auto weights = [](const Trainee& trainee) { return trainee.model->parameters(); };
  const NamedTensors ddp = train_ranks(2, tested, batch, weights).front();
  tested.strategy = "zero-3";
  for (const NamedTensors& of_two : train_ranks(2, tested, batch, weights)) {
    expect_equal(of_two, ddp);
  }
}

// The number of blocks between which a pipeline can cut each program. Others write their inputs or
// a buffer that all blocks read, or are a single module.
const std::map<std::string, size_t> kBlocks = {{"any-size", 5},      {"autocast", 2},
                                               {"bert", 5},          {"bf16", 6},
                                               {"cnn", 9},           {"constants", 3},
                                               {"convnext", 7},      {"custom-function", 3},
                                               {"dict-in-out", 6},   {"diffusion-unet", 11},
                                               {"dit", 8},           {"efficientnet", 13},
                                               {"embedding-bag", 7}, {"encoder", 5},
                                               {"fno", 7},           {"gpt2", 5},
                                               {"gru", 4},           {"heads", 42},
                                               {"llama", 5},         {"lstm", 4},
                                               {"mixtral", 5},       {"mlp", 3},
                                               {"modes", 6},         {"no-grad", 4},
                                               {"norms", 10},        {"qwen3", 5},
                                               {"resnet", 7},        {"slices", 2},
                                               {"spectral-norm", 5}, {"swin", 10},
                                               {"unet", 22},         {"vit", 9},
                                               {"whisper", 3}};

// Masks, positions and other values that follow from the inputs are computed by each stage.
TEST_P(SharedExportedStep, HasTheBitsOfOneProcessInAPipeline) {
  const Net net(GetParam());
  const size_t blocks = net.make()->block_sequence().tensors.size();
  const auto known = kBlocks.find(net.name);
  EXPECT_EQ(blocks, known == kBlocks.end() ? 0 : known->second);
  if (blocks == 0 || kDraws.contains(net.name)) return;
  Case tested = net.tested({.gradient_accumulation = 4, .clip_grad_norm = 0.1});
  const NamedTensors batch = net.batch(kSharedRows);
  const auto train = [&](Trainee& trainee) {
    for (int64_t step = 0; step < 3; ++step) {
      trainee.step->run(batch, step, kLr, false, {}, {.rows = kSharedRows});
    }
    trainee.optimizer->use_averaged_weights(true);  // As for a checkpoint.
    NamedTensors all = copies_of(trainee.model->parameters());
    for (const auto& buffer : copies_of(trainee.model->statistics())) all.push_back(buffer);
    trainee.optimizer->use_averaged_weights(false);
    return all;
  };
  NamedTensors one;
  run_on_one_core_each(1, [&](parallel::Collectives&) {
    Trainee trainee(tested, std::nullopt);
    one = train(trainee);
  });
  tested.strategy = "pipeline";
  const compile::CompileConfig exact{.passes_off = compile::names_of_rounding_passes()};
  // Skip connections pass through several stages.
  std::vector<std::pair<int, bool>> runs = {{2, false}, {2, true}};
  if (net.name == "diffusion-unet") runs.emplace_back(4, false);
  for (const auto& [size, compiled] : runs) {
    SCOPED_TRACE(fmt::format("{} processes, compiled {}", size, compiled));
    run_on_one_core_each(size, [&](parallel::Collectives& collectives) {
      Trainee trainee(tested, compiled ? std::optional(exact) : std::nullopt, &collectives);
      expect_equal(train(trainee), one);
      parallel::any_of(collectives, false);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Usual, SharedExportedStep,
                         testing::ValuesIn(select(names_that_can_be_cut(), true)),
                         model::exported::name_of_case);
INSTANTIATE_TEST_SUITE_P(Long, SharedExportedStep,
                         testing::ValuesIn(select(names_that_can_be_cut(), false)),
                         model::exported::name_of_case);

}  // namespace
}  // namespace gallop::train
