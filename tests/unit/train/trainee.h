#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include "gallop/base/error.h"
#include "gallop/compile/compiled_function.h"
#include "gallop/config/resolve.h"
#include "gallop/model/gpt.h"
#include "gallop/model/model.h"
#include "gallop/optim/optimizer.h"
#include "gallop/optim/updated_parameters.h"
#include "gallop/parallel/parameter_shards.h"
#include "gallop/parallel/pipeline.h"
#include "gallop/tensor/block_hooks.h"
#include "gallop/train/step/step.h"
#include "unit/config/component_of.h"
#include "unit/optim/wrapped.h"

namespace gallop::train {

inline const model::Task kImages{.channels = 3, .height = 8, .width = 8, .classes = 5};
inline const model::Task kText{.kind = model::Task::Kind::kText, .classes = 11, .context = 8};

using MakeModel = std::function<std::unique_ptr<model::Model>()>;

/// A model for kText whose feed-forward layers are mixtures of experts.
inline std::unique_ptr<model::Model> gpt_of_experts(const model::ExpertsConfig& experts,
                                                    double dropout = 0) {
  return make_gpt({.layers = 3,
                   .width = 16,
                   .heads = 2,
                   .dropout = dropout,
                   .activation = "swiglu",
                   .experts = experts},
                  kText, 1);
}

/// A model, an optimizer and the options of a step.
struct Case {
  std::string name;
  MakeModel make_model;
  std::string optimizer;  ///< With its options: "adamw state_bits=8".
  StepConfig config{};
  bool text = false;
  bool channels_last = true;  ///< For images.
  std::string wrappers = "[]";
  std::string strategy = "ddp";
};

inline void PrintTo(const Case& tested, std::ostream* out) { *out << tested.name; }

/// Every optimizer, plus variants that keep more state than the defaults.
inline std::vector<std::string> every_optimizer() {
  std::vector<std::string> all = optim::built_in_optimizers().names();
  all.insert(all.end(), {"adam state_bits=8", "adamw state_bits=8", "lion state_bits=8"});
  return all;
}

/// Whether an optimizer supports rounding of weights stored in bf16.
inline bool can_round(const std::string& optimizer) {
  for (const char* name : {"adafactor", "muon", "schedule-free"}) {
    if (optimizer.rfind(name, 0) == 0) return false;
  }
  return true;
}

/// Every optimizer that supports rounding, and some with each kind of rounding.
inline std::vector<std::string> every_rounding_optimizer() {
  std::vector<std::string> all;
  for (const std::string& optimizer : every_optimizer()) {
    if (can_round(optimizer)) all.push_back(optimizer);
  }
  for (const char* rounding : {"kahan", "nearest"}) {
    for (const char* optimizer : {"sgd momentum=0.9", "adamw", "adamw state_bits=8", "lamb"}) {
      all.push_back(std::string(optimizer) + " rounding=" + rounding);
    }
  }
  return all;
}

/// Formats a text for the name of a test.
inline std::string in_a_name(std::string text) {
  for (char& c : text) {
    if (c == '-' || c == ' ' || c == '=' || c == '.') c = '_';
  }
  return text;
}

/// A model in training mode, with its optimizer and step.
struct Trainee {
  std::unique_ptr<model::Model> model;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::unique_ptr<parallel::Strategy> strategy;
  std::optional<TrainStep> step;

  /// With collectives, it is one of several data-parallel processes.
  Trainee(const Case& tested, const std::optional<compile::CompileConfig>& compile,
          parallel::Collectives* collectives = nullptr)
      : model(tested.make_model()) {
    model->to(at::kCPU, tested.channels_last && !tested.text);
    if (tested.config.precision == precision::Precision::kBf16Weights) {
      precision::keep_in_bf16(model->parameters());
    }
    optimizer = optim::make_wrapped(tested.optimizer, tested.wrappers, model->parameters(),
                                    model->buffers(), optim::kHundredSteps);
    StepConfig config = tested.config;
    if (compile) config.compile = *compile;
    if (collectives != nullptr) {
      static const auto kStrategies = parallel::built_in_strategies();
      strategy = kStrategies.build(
          config::component_of(kStrategies, tested.strategy), *collectives,
          {.parameters = model->parameters(),
           .buffers = model->statistics(),
           .update_units = optimizer->update_units(),
           .blocks = model->block_parameters(),
           .sequence = {.tensors = model->block_sequence().tensors,
                        .tied = model->block_sequence().tied},
           .parallelize = [this](const TensorGroup& group) { return model->parallelize(group); },
           .divide_experts =
               [this](const TensorGroup& group) { return model->divide_experts(group); },
           .divide_tokens = [this](const TensorGroup& group,
                                   ContextMethod method) { model->divide_tokens(group, method); }});
      model->set_block_hooks(strategy->block_hooks());
      config.strategy = strategy.get();
      const auto make = [&](const NamedTensors& parameters, const NamedTensors& buffers) {
        return optim::make_wrapped(tested.optimizer, tested.wrappers, parameters, buffers,
                                   optim::kHundredSteps);
      };
      if (strategy->updated() != nullptr) {
        // Sessions build no optimizer of the whole model then.
        const std::string name = tested.strategy.substr(0, tested.strategy.find(' '));
        if (!parallel::divides_update(name)) throw InternalError(name + " divides no update");
        optimizer = strategy->make_optimizer(model->buffers(), make);
      }
    }
    step.emplace(*model, *optimizer, config);
  }

  NamedTensors everything() const {
    NamedTensors all = model->parameters();
    for (const auto& list : {model->buffers(), optimizer->state(), step->state()}) {
      all.insert(all.end(), list.begin(), list.end());
    }
    return all;
  }
};

/// The rows of a batch that this process of a strategy computes; all without one.
inline NamedTensors part_of(const NamedTensors& batch, parallel::Strategy* strategy) {
  if (strategy == nullptr) return batch;
  const int64_t rows = batch.front().tensor.size(0);
  const int64_t part = strategy->data_parallel_group().rank();
  const int64_t parts = strategy->data_parallel_group().size();
  return slice_rows(batch, rows * part / parts, rows * (part + 1) / parts);
}

/// Random inputs and targets that fit the case.
inline std::pair<at::Tensor, at::Tensor> batch_of(const Case& tested, int64_t rows) {
  if (tested.text) {
    return {at::randint(11, {rows, 8}, at::kLong), at::randint(11, {rows, 8}, at::kLong)};
  }
  return {at::randn({rows, 3, 8, 8}), at::randint(5, {rows}, at::kLong)};
}

}  // namespace gallop::train
