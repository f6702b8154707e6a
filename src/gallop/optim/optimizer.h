#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/config/component.h"
#include "gallop/tensor/logical_tensor.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop::optim {

/// The kind of averaged weights that use_averaged_weights() provides.
struct Averaging {
  enum class Kind : uint8_t {
    kNone,    ///< None: the trained weights themselves, or weights that training is reset to.
    kBeside,  ///< An average that does not affect training.
    kWithin,  ///< An average that training depends on and nothing else may modify.
  };
  Kind kind = Kind::kNone;
  /// Whether batch norm statistics must be recomputed for the average at the end of the run.
  bool recompute_statistics = false;
};

/// Options that can change at each step besides the learning rate: fp64 scalar tensors on the
/// parameters' device. Undefined: the recipe's value.
struct ScheduledOptions {
  at::Tensor momentum{};  ///< Or beta1.
  at::Tensor beta2{};
  at::Tensor weight_decay{};  ///< For parameters whose group does not set it.
  /// Not an option, but changes at each step as well: the run's seed and the step number, int64
  /// [2], for stochastic rounding of bf16 weights.
  at::Tensor draws{};
};
enum class ScheduledOption { kMomentum, kBeta2, kWeightDecay };

/// How the update of a parameter can be divided among processes.
struct UpdateUnit {
  bool is_whole = false;  ///< Only as a whole; otherwise any range of elements is updated alone.
  double cost = 0;        ///< Of updating all of it, relative to that of other parameters.
};

/// Updates parameters from their gradients.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Updates every parameter from its `grad()`; parameters without a gradient are unchanged. `lr`
  /// is the learning rate of this step: fp32 scalar on the parameters' device. `grad_scale`, if
  /// defined, divides the gradients on the fly (and may leave them divided); if `found_inf` is
  /// defined and not 0, nothing changes, not even the step count. Returns the gradient_norm()
  /// before the update, fp64, if the update's own pass over the gradients computes it at no cost,
  /// as for fp32 on the CPU; otherwise undefined. `scheduled` must not contain options for which
  /// can_schedule() is false.
  virtual at::Tensor step(const at::Tensor& lr, const at::Tensor& grad_scale = {},
                          const at::Tensor& found_inf = {},
                          const ScheduledOptions& scheduled = {}) = 0;

  /// Whether step() supports scheduling this option.
  virtual bool can_schedule(ScheduledOption option) const = 0;

  /// The optimizer's state besides the parameters, named "momentum.layer1.0.conv1.weight". The
  /// tensors are live: copying into them restores the state.
  virtual NamedTensors state() const = 0;
  /// The state in terms of the whole model: names, shapes and types are those of state() where one
  /// process has all of it.
  virtual std::vector<LogicalTensor> logical_state() const { return replicas_of(state()); }

  /// Swaps the averaged weights into the model, if the optimizer has them, and back. Call it with
  /// true before evaluating, exporting or saving, and with false before the next step(). state() is
  /// complete for a resume in between: save and load checkpoints between both calls.
  virtual void use_averaged_weights(bool /*averaged*/) {}
  virtual Averaging averaging() const { return {}; }

  /// The unit of each parameter, in order. Empty if updates of parameters depend on each other, so
  /// that they cannot be divided.
  virtual std::vector<UpdateUnit> update_units() const { return {}; }

  /// The base learning rate of the recipe, which a schedule multiplies.
  virtual double base_lr() const = 0;
};

/// Creates optimizers by name for the given parameters.
using OptimizerRegistry = config::Registry<Optimizer, const NamedTensors&>;

/// The built-in optimizers.
OptimizerRegistry built_in_optimizers();

}  // namespace gallop::optim
