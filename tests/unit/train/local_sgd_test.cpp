// local-sgd and diloco: the weights of PyTorch, those of ddp where each step is synchronized, and
// the same bits wherever a run was interrupted.
#include <mutex>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/norm.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/model/mlp.h"
#include "gallop/model/resnet.h"
#include "gallop/parallel/model_averager.h"
#include "gallop/tensor/safetensors.h"
#include "unit/base/error_of.h"
#include "unit/fixtures.h"
#include "unit/train/compared_ranks.h"
#include "unit/train/labeled.h"
#include "unit/train/trainee.h"
#include "unit/train/trainer_cases.h"

namespace gallop::train {
namespace {

// The part of a rank.
at::Tensor part_of(const at::Tensor& rows, const parallel::Collectives& collectives) {
  const int64_t all = rows.size(0), size = collectives.size(), rank = collectives.rank();
  return rows.slice(0, all * rank / size, all * (rank + 1) / size);
}

struct PyTorchCase {
  std::string name, strategy, optimizer;
  double lr;
  bool compiled;
};
void PrintTo(const PyTorchCase& tested, std::ostream* out) { *out << tested.name; }

class LocalSgd : public testing::TestWithParam<PyTorchCase> {};

TEST_P(LocalSgd, HasTheWeightsOfPyTorch) {
  const auto fixture = read_safetensors(fixtures() / "local_sgd.safetensors").tensors;
  const at::Tensor input = *find_tensor(fixture, "input"), target = *find_tensor(fixture, "target");
  const auto make = [&] {
    auto model = make_mlp({.hidden = {6}}, kImages, 1);
    for (const auto& [name, tensor] : model->parameters()) {
      tensor.set_data(find_tensor(fixture, "initial." + name)->clone());
    }
    return model;
  };
  const PyTorchCase& of = GetParam();
  const Case tested{.name = of.name,
                    .make_model = make,
                    .optimizer = of.optimizer,
                    .channels_last = false,
                    .strategy = of.strategy};
  const auto compile = of.compiled ? std::optional(compile::CompileConfig()) : std::nullopt;
  const std::string kind = of.strategy.substr(0, of.strategy.find(' '));
  for (const int size : {2, 3}) {
    run_on_one_core_each(size, [&](parallel::Collectives& collectives) {
      Trainee trainee(tested, compile, &collectives);
      for (int64_t step = 0; step < input.size(0); ++step) {
        trainee.step->run(labeled(part_of(input[step], collectives).contiguous(),
                                  part_of(target[step], collectives).contiguous()),
                          step, of.lr, false, {}, {.rows = input.size(1)});
        for (const auto& [name, tensor] : trainee.model->parameters()) {
          const at::Tensor* const wanted = find_tensor(
              fixture,
              fmt::format("{}.{}.{}.{}.{}", kind, size, collectives.rank(), step + 1, name));
          if (wanted == nullptr) continue;
          EXPECT_TRUE(at::allclose(tensor.detach(), *wanted, 1e-6, 1e-7))
              << size << " processes, step " << step + 1 << ", " << name;
        }
      }
      if (of.compiled) {
        EXPECT_GT(trainee.step->compile_report()->replayed, 0);
      }
    });
  }
}

constexpr const char* kSgd = "sgd momentum=0.9 weight_decay=0";
constexpr const char* kAdamw = "adamw beta1=0.875 beta2=0.96875 weight_decay=0.125 decay_1d=true";

INSTANTIATE_TEST_SUITE_P(
    Each, LocalSgd,
    testing::Values(
        PyTorchCase{"PostLocalSgd", "local-sgd sync_every=3 warmup_steps=2", kSgd, 0.0625, false},
        PyTorchCase{"PostLocalSgdCompiled", "local-sgd sync_every=3 warmup_steps=2", kSgd, 0.0625,
                    true},
        PyTorchCase{"DiLoCo", "diloco sync_every=3", kAdamw, 0.0625 / 16, false},
        PyTorchCase{"DiLoCoCompiled", "diloco sync_every=3", kAdamw, 0.0625 / 16, true}),
    [](const auto& info) { return info.param.name; });

// Weights and buffers after steps whose processes have different numbers of samples, the last of
// them one without any.
NamedTensors train(const std::string& strategy, int size, bool compiled) {
  const Case tested{.name = strategy,
                    .make_model = [] { return make_resnet({.depth = 8}, kImages, 1); },
                    .optimizer = "sgd",
                    .strategy = strategy};
  at::manual_seed(5);
  std::vector<std::pair<at::Tensor, at::Tensor>> batches;
  for (const int64_t rows : {13, 12, 7, 12}) batches.push_back(batch_of(tested, rows));
  const auto compile = compiled ? std::optional(compile::CompileConfig()) : std::nullopt;
  NamedTensors found;
  run_on_one_core_each(size, [&](parallel::Collectives& collectives) {
    Trainee trainee(tested, compile, &collectives);
    for (size_t i = 0; i < batches.size(); ++i) {
      const auto& [input, target] = batches[i];
      trainee.step->run(labeled(part_of(input, collectives), part_of(target, collectives)),
                        static_cast<int64_t>(i), 0.01, i % 2 == 0, {}, {.rows = input.size(0)});
    }
    if (collectives.rank() > 0) return;
    found = copies_of(trainee.model->parameters());
    for (const auto& buffer : copies_of(trainee.model->buffers())) found.push_back(buffer);
  });
  return found;
}

// By the number of samples of the whole batch, also where processes have different parts of it.
TEST(LocalSgdWithOneStep, IsDdpButForRounding) {
  for (const int size : {2, 3}) {
    for (const bool compiled : {false, true}) {
      const NamedTensors ddp = train("ddp", size, compiled);
      for (const char* strategy :
           {"local-sgd sync_every=1", "diloco sync_every=1 outer_lr=1 outer_momentum=0"}) {
        const NamedTensors local = train(strategy, size, compiled);
        ASSERT_EQ(local.size(), ddp.size());
        for (size_t i = 0; i < ddp.size(); ++i) {
          const at::Tensor wanted = ddp[i].tensor.to(at::kDouble);
          EXPECT_LE((local[i].tensor.to(at::kDouble) - wanted).norm().item<double>(),
                    1e-5 * wanted.norm().item<double>() + 1e-7)
              << strategy << ", " << size << " processes, " << ddp[i].name;
        }
      }
    }
  }
}

class LocalTrainers : public Trainers {
 protected:
  struct Ran {
    std::vector<NamedTensors> replicas;  // By rank: what it trains, and its optimizer's state.
    std::vector<double> losses;          // Losses of evaluations.
    std::vector<std::string> notes;      // Notes of the first process.
  };

  // Trains from the newest checkpoint, if there is one, to step `until`.
  Ran run_ranks(int size, const std::string& strategy_text, int64_t until) {
    Ran ran{.replicas = std::vector<NamedTensors>(static_cast<size_t>(size)),
            .losses = {},
            .notes = {}};
    run_on_one_core_each(size, [&](parallel::Collectives& collectives) {
      const auto model =
          model::make_mlp({}, {.channels = 1, .height = 4, .width = 4, .classes = 3}, 1);
      const auto length = Length::of(config_, kBatch, images_.size()).for_schedules();
      const auto optimizer =
          optim::make_wrapped("adamw", "[]", model->parameters(), model->buffers(), length);
      static const auto kStrategies = parallel::built_in_strategies();
      const auto strategy =
          kStrategies.build(config::component_of(kStrategies, strategy_text), collectives,
                            {.parameters = model->parameters(), .buffers = model->buffers()});
      static const auto kSchedules = schedule::built_in_schedules();
      const auto schedule = kSchedules.build(config::Component(kSchedules, "cosine"), length);
      CheckpointStore checkpoints(folder_ / "checkpoints", {.keep_last = 100});
      StopRequest stop;
      Heard heard;
      data::LoaderConfig loader{.batch = kBatch, .threads = 0};
      loader.part = collectives.rank();
      loader.parts = collectives.size();
      Trainer trainer(
          {.model = *model,
           .optimizer = *optimizer,
           .schedule = *schedule,
           .train_samples = images_,
           .evaluation_samples = &images_,
           .checkpoints = checkpoints,
           .observers = {&heard},
           .stop = stop,
           .until = {.unit = Interval::Unit::kSteps, .count = static_cast<double>(until)}},
          config_, {.strategy = strategy.get()}, loader,
          {.loader = {.batch = kBatch, .threads = 0}, .collectives = &collectives});
      const auto newest = parallel::run_on_rank0(
          &collectives, [&] { return static_cast<int>(checkpoints.newest().has_value()); });
      if (newest != 0) trainer.resume(checkpoints.newest());
      trainer.run();
      NamedTensors& replica = ran.replicas[static_cast<size_t>(collectives.rank())];
      replica = copies_of(optimizer->state());
      // It is hidden behind the mean after the run.
      const NamedTensors own =
          strategy->averager() == nullptr ? model->parameters() : strategy->averager()->replica();
      for (const NamedTensor& one : copies_of(own)) replica.push_back(one);
      if (collectives.rank() > 0) return;
      ran.losses = heard.losses;
      ran.notes = heard.notes;
    });
    return ran;
  }

  struct Heard : Observer {
    void noted(const std::string& note) override { notes.push_back(note); }
    void evaluated(const EvaluationEvent& event) override {
      losses.push_back(event.evaluation.tally.loss());
    }
    std::vector<std::string> notes;
    std::vector<double> losses;
  };

  RandomImages images_;
  static constexpr int64_t kSteps = 10;
  TrainConfig config_{.steps = kSteps,
                      .evaluate_every = "2 steps",
                      .checkpoint_every = "3 steps",
                      .compare_every = "1 steps"};
};

// By the steps after which they are interrupted.
class InterruptedLocalTrainers : public LocalTrainers,
                                 public testing::WithParamInterface<std::vector<int64_t>> {};

TEST_P(InterruptedLocalTrainers, HaveTheSameBits) {
  for (const auto& [strategy, size] :
       {std::pair("local-sgd sync_every=4 warmup_steps=1", 2), {"diloco sync_every=4", 3}}) {
    fs::remove_all(folder_);
    const Ran whole = run_ranks(size, strategy, kSteps);
    EXPECT_EQ(whole.losses.size(), 5U);
    EXPECT_FALSE(at::equal(whole.replicas[0].back().tensor, whole.replicas[1].back().tensor));
    for (const int64_t step : GetParam()) {
      SCOPED_TRACE(fmt::format("{}, {} processes, step {}", strategy, size, step));
      fs::remove_all(folder_);
      const Ran before = run_ranks(size, strategy, step);
      const Ran after = run_ranks(size, strategy, kSteps);
      std::vector<double> losses = before.losses;
      losses.insert(losses.end(), after.losses.begin(), after.losses.end());
      EXPECT_EQ(losses, whole.losses);
      EXPECT_TRUE(after.notes.empty());
      for (size_t rank = 0; rank < whole.replicas.size(); ++rank) {
        expect_equal(after.replicas[rank], whole.replicas[rank]);
      }
    }
  }
}

// At and between synchronizations, which are after the steps 1, 5 and 9, or 4 and 8.
INSTANTIATE_TEST_SUITE_P(Usual, InterruptedLocalTrainers,
                         testing::Values(std::vector<int64_t>{1, 3, 5, 8}));
INSTANTIATE_TEST_SUITE_P(Long, InterruptedLocalTrainers,
                         testing::Values(std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9}));

TEST_F(LocalTrainers, GoOnInAnotherNumberFromASynchronizationAlone) {
  const char* const strategy = "diloco sync_every=4";
  run_ranks(2, strategy, 6);
  for (const char* other : {strategy, "ddp"}) {
    const std::string error = error_of([&] { run_ranks(3, other, 10); });
    EXPECT_NE(
        error.find("the checkpoint of step 6 lies between two synchronizations of 2 replicas"),
        std::string::npos)
        << error;
  }
  EXPECT_NE(error_of([&] { run_ranks(2, "ddp", 10); }).find("of 2 replicas"), std::string::npos);
  EXPECT_NE(error_of([&] { run_ranks(2, "local-sgd sync_every=4", 10); }).find("of 2 replicas"),
            std::string::npos);
  fs::remove_all(folder_);
  run_ranks(2, strategy, 4);
  EXPECT_EQ(run_ranks(3, strategy, 8).notes,
            (std::vector<std::string>{"the checkpoint has the optimizer states of 2 replicas; each "
                                      "of 3 processes takes one of them"}));
  EXPECT_EQ(run_ranks(2, "ddp", 10).notes,
            (std::vector<std::string>{
                "the checkpoint has the optimizer states of 3 replicas; the first of them "
                "continues"}));
}

TEST_F(LocalTrainers, AreRejectedWhereTheRunEndsBeforeTheFirstSynchronization) {
  EXPECT_NE(error_of([&] { run_ranks(2, "local-sgd sync_every=9 warmup_steps=2", 10); })
                .find("parallel.sync_every=9 with warmup_steps=2: a run of 10 steps ends before "
                      "processes have exchanged anything; set it to at most 8"),
            std::string::npos);
  EXPECT_EQ(error_of([&] { run_ranks(2, "local-sgd sync_every=8 warmup_steps=2", 10); }), "");
  // In warm-up steps, replicas exchange gradients.
  EXPECT_EQ(error_of([&] { run_ranks(2, "local-sgd sync_every=9 warmup_steps=10", 10); }), "");
}

TEST(LocalSgdChecks, RejectWhatReplicasCouldNotShare) {
  Case tested{.name = "checks",
              .make_model = [] { return make_mlp({}, kImages, 1); },
              .optimizer = "adamw",
              .strategy = "local-sgd"};
  const auto error_with = [&] {
    return error_of([&] {
      run_on_one_core_each(2, [&](parallel::Collectives& collectives) {
        Trainee(tested, std::nullopt, &collectives);
      });
    });
  };
  tested.wrappers = "[ema]";
  EXPECT_NE(
      error_with().find("exchange weights, but not the weight average that this optimizer keeps"),
      std::string::npos);
  tested.wrappers = "[]";
  tested.config.skip_nonfinite = true;
  EXPECT_NE(error_with().find("would skip different updates"), std::string::npos);
}

}  // namespace
}  // namespace gallop::train
