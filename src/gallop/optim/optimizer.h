#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <ATen/core/Tensor.h>

#include "gallop/config/component.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop::optim {

/// What use_averaged_weights() gives.
struct Averaging {
  enum class Kind : uint8_t {
    kNone,    ///< The weights that are trained, or some that training starts from again and again.
    kBeside,  ///< An average that training takes no notice of.
    kWithin,  ///< An average that training moves along with, and that nothing else may disturb.
  };
  Kind kind = Kind::kNone;
  /// Batch norm's statistics are to be taken again for the average at the end of the run.
  bool recompute_statistics = false;
};

/// Options that may take another value at each step, besides the learning rate: fp64, no
/// dimensions, on the parameters' device. Undefined for that of the recipe.
struct ScheduledOptions {
  at::Tensor momentum{};  ///< Or beta1.
  at::Tensor beta2{};
  at::Tensor weight_decay{};  ///< Of parameters whose group has none of its own.
  /// No option, but changes likewise: the run's seed and the number of the step, int64 [2], from
  /// which weights in bf16 are rounded stochastically.
  at::Tensor draws{};
};
enum class ScheduledOption { kMomentum, kBeta2, kWeightDecay };

/// Updates parameters from their gradients.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// One update of every parameter, from its `grad()`; a parameter without one stays as it is.
  /// `lr` is the learning rate of this step: fp32, no dimensions, on the parameters' device.
  /// `grad_scale`, if defined, divides the gradients on the fly (and may leave them divided); where
  /// `found_inf`, if defined, is not 0 nothing changes, not even the step count. Returns what
  /// gradient_norm() would have before, fp64, where the update's own pass over the gradients gives
  /// it for nothing, as it does for fp32 on the CPU; else undefined. `scheduled` has nothing that
  /// can_schedule() denies.
  virtual at::Tensor step(const at::Tensor& lr, const at::Tensor& grad_scale = {},
                          const at::Tensor& found_inf = {},
                          const ScheduledOptions& scheduled = {}) = 0;

  /// Whether step() takes this option's value.
  virtual bool can_schedule(ScheduledOption option) const = 0;

  /// Everything besides the parameters that the next step depends on, named
  /// "momentum.layer1.0.conv1.weight". The tensors are the live ones: copying into them restores.
  virtual NamedTensors state() const = 0;

  /// Puts the weights that the training is for in place of those that it trains at, where an
  /// optimizer tells them apart, and back. What is evaluated, exported or saved is asked for with
  /// true; before the next step() with false. state() is then complete for a resume: give it to a
  /// checkpoint, and load one, between both calls.
  virtual void use_averaged_weights(bool /*averaged*/) {}
  virtual Averaging averaging() const { return {}; }

  /// Base learning rate of the recipe, which a schedule multiplies.
  virtual double base_lr() const = 0;
};

/// Builds optimizers by name over the given parameters.
using OptimizerRegistry = config::Registry<Optimizer, const NamedTensors&>;

/// The optimizers that come with Gallop.
OptimizerRegistry built_in_optimizers();

}  // namespace gallop::optim
