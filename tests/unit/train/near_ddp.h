#pragma once

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/norm.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/train/checkpoint_slices.h"
#include "gallop/train/shared_state.h"
#include "unit/train/compared_ranks.h"
#include "unit/train/labeled.h"
#include "unit/train/trainee.h"

// Steps of processes that compute each batch together next to those of ddp: losses, norms, weights
// and states within rounding, and what all processes have with the same bits.
namespace gallop::train {

// Also weights that are frozen, which are buffers.
inline std::unique_ptr<model::Model> in_fp64(std::unique_ptr<model::Model> model) {
  for (const NamedTensors& list : {model->parameters(), model->buffers()}) {
    for (const auto& [name, tensor] : list) {
      if (tensor.is_floating_point() && name.ends_with("weight")) {
        tensor.set_data(tensor.to(at::kDouble));
      }
    }
  }
  for (const auto& [name, tensor] : model->parameters()) tensor.set_data(tensor.to(at::kDouble));
  return model;
}

struct Results {
  std::vector<StepResult> steps;
  NamedTensors weights, state;  // On rank 0, of the whole model.
  NamedTensors replicated;      // The weights of which each process has all.
  NamedTensors here;            // What this process has of the weights.
};

using Batches = std::vector<std::pair<at::Tensor, at::Tensor>>;

inline Batches batches_of(const Case& tested, int64_t steps, bool is_fp64) {
  Batches batches;
  for (int64_t i = 0; i < steps; ++i) {
    // One has fewer samples than micro-batches.
    batches.push_back(batch_of(tested, i == 2 ? 1 : 5));
    auto& [input, target] = batches.back();
    if (is_fp64 && input.is_floating_point()) input = input.to(at::kDouble);
    // Micro-batches with different numbers of targets that count.
    if (tested.text) target.slice(0, 0, 2).slice(1, 2).fill_(-100);
  }
  return batches;
}

inline std::vector<LogicalTensor> logical_weights(const Trainee& trainee) {
  // Without those that are not trained.
  auto all = trainee.strategy != nullptr ? trainee.strategy->parameters_in_parts()
                                         : std::vector<LogicalTensor>();
  if (all.empty()) return replicas_of(trainee.model->parameters());
  all.resize(trainee.model->parameters().size());
  return all;
}

// With a higher learning rate, gradients explode for some batches, and rounding errors with them.
inline constexpr double kLr = 0.001;

inline Results train(const Case& tested, const Batches& batches,
                     parallel::Collectives* collectives) {
  Trainee trainee(tested, std::nullopt, collectives);
  Results results;
  for (size_t i = 0; i < batches.size(); ++i) {
    const auto& [input, target] = batches[i];
    const NamedTensors own = part_of(labeled(input, target), trainee.strategy.get());
    results.steps.push_back(trainee.step->run(own, static_cast<int64_t>(i), kLr, i % 2 == 0, {},
                                              {.rows = input.size(0)}));
  }
  if (tested.config.compile) {
    const compile::CompileReport& report = *trainee.step->compile_report();
    EXPECT_TRUE(report.reasons.empty()) << report.reasons.front();
    EXPECT_EQ(report.replayed, static_cast<int64_t>(batches.size()));
  }
  trainee.optimizer->use_averaged_weights(true);
  const auto weights = logical_weights(trainee), state = trainee.optimizer->logical_state();
  results.replicated = copies_of(replicated(weights));
  results.here = copies_of(trainee.model->parameters());
  if (collectives == nullptr) {
    results.weights = results.replicated;
    results.state = copies_of(trainee.optimizer->state());
  } else {
    results.weights = gathered(*collectives, weights);
    results.state = gathered(*collectives, state);
  }
  trainee.optimizer->use_averaged_weights(false);
  // The groups of an axis are left when none is in use.
  if (collectives != nullptr) parallel::any_of(*collectives, false);
  return results;
}

inline double norm_of(const NamedTensors& tensors) {
  double squares = 0;
  for (const auto& [name, tensor] : tensors) {
    const double norm = tensor.to(at::kDouble).norm().item<double>();
    squares += norm * norm;
  }
  return std::sqrt(squares);
}

// The norm of the difference next to that of what is wanted.
inline void expect_near(const NamedTensors& got, const NamedTensors& wanted, double tolerance) {
  ASSERT_EQ(got.size(), wanted.size());
  NamedTensors differences;
  for (size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_EQ(got[i].name, wanted[i].name);
    ASSERT_EQ(got[i].tensor.sizes(), wanted[i].tensor.sizes()) << wanted[i].name;
    ASSERT_EQ(got[i].tensor.scalar_type(), wanted[i].tensor.scalar_type()) << wanted[i].name;
    differences.push_back(
        {wanted[i].name, got[i].tensor.to(at::kDouble).sub(wanted[i].tensor.to(at::kDouble))});
    EXPECT_LE(differences.back().tensor.norm().item<double>(),
              100 * tolerance * std::max(1.0, wanted[i].tensor.norm().item<double>()))
        << wanted[i].name;
  }
  EXPECT_LE(norm_of(differences), tolerance * norm_of(wanted));
}

/// These cases in compiled steps, without those that recompute blocks: recording one checks the
/// state of LibTorch's generator, which ranks that are threads share.
inline std::vector<Case> compiled(std::vector<Case> cases) {
  std::erase_if(cases, [](const Case& one) { return one.name.starts_with("Recomputed"); });
  for (Case& one : cases) one.config.compile = compile::CompileConfig();
  return cases;
}

struct Bounds {
  double loss, weights;
};

inline std::vector<Results> train_in(int size, const Case& tested, const Batches& batches) {
  std::vector<Results> all(static_cast<size_t>(size));
  run_on_one_core_each(size, [&](parallel::Collectives& collectives) {
    all[static_cast<size_t>(collectives.rank())] = train(tested, batches, &collectives);
  });
  return all;
}

/// `degree`: processes that divide the layers, tokens or experts; 0: all. `reference`: processes
/// with ddp, of which each computes whole samples.
struct Layout {
  int size, degree = 0, reference = 1;
};

/// Steps in each layout next to those of ddp. `strategies`: with {} for the degree.
inline void expect_near_ddp(Case tested, const std::vector<std::string>& strategies,
                            const std::vector<Layout>& layouts, int64_t steps,
                            const Bounds& bounds) {
  const bool is_fp64 = bounds.weights < 1e-9;
  if (is_fp64) tested.make_model = [make = tested.make_model] { return in_fp64(make()); };
  const Batches batches = batches_of(tested, steps, is_fp64);
  std::map<int, Results> references;
  for (const auto& [size, degree, reference] : layouts) {
    if (!references.contains(reference)) {
      tested.strategy = "ddp";
      references[reference] = std::move(train_in(reference, tested, batches).front());
    }
    const Results& one = references.at(reference);
    for (const std::string& strategy : strategies) {
      tested.strategy = fmt::format(fmt::runtime(strategy), degree);
      SCOPED_TRACE(fmt::format("{} processes, {}", size, tested.strategy));
      const std::vector<Results> all = train_in(size, tested, batches);
      for (const Results& rank : all) {
        for (size_t i = 0; i < rank.steps.size(); ++i) {
          const StepResult &got = rank.steps[i], &wanted = one.steps[i];
          EXPECT_NEAR(got.tally.loss_sum, wanted.tally.loss_sum,
                      bounds.loss * wanted.tally.loss_sum)
              << i;
          EXPECT_NEAR(got.gradient_norm, wanted.gradient_norm, bounds.loss * wanted.gradient_norm)
              << i;
          EXPECT_EQ(got.tally.count, wanted.tally.count) << i;
          EXPECT_EQ(got.tally.loss_sum, all.front().steps[i].tally.loss_sum) << i;
          EXPECT_EQ(got.gradient_norm, all.front().steps[i].gradient_norm) << i;
          EXPECT_EQ(got.tally.top1, wanted.tally.top1) << i;
        }
        EXPECT_FALSE(rank.replicated.empty());
        expect_equal(rank.replicated, all.front().replicated);
        const auto number = static_cast<size_t>(&rank - all.data());
        expect_equal(rank.here, all[number % static_cast<size_t>(degree > 0 ? degree : size)].here);
      }
      expect_near(all.front().weights, one.weights, bounds.weights);
      expect_near(all.front().state, one.state, 20 * bounds.weights);
    }
  }
}

inline constexpr Bounds kFp64{1e-12, 1e-12}, kFp32{1e-5, 1e-5};

}  // namespace gallop::train
