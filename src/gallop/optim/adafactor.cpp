#include "gallop/optim/adafactor.h"

#include <cmath>
#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/zeros.h>

#include "gallop/kernel/adafactor.h"
#include "gallop/kernel/isa.h"
#include "gallop/optim/fields.h"
#include "gallop/optim/optimizer_parameters.h"
#include "gallop/optim/tensor_step.h"

namespace gallop::optim {

namespace {

// By norms, which allocate no tensor of squares.
at::Tensor rms(const at::Tensor& tensor) {
  return at::linalg_vector_norm(tensor) / std::sqrt(static_cast<double>(tensor.numel()));
}
at::Tensor mean_square(const at::Tensor& tensor, int64_t dim) {
  return at::linalg_vector_norm(tensor, 2, dim, true).square() /
         static_cast<double>(tensor.size(dim));
}

class Adafactor final : public Optimizer {
 public:
  Adafactor(const AdafactorConfig& config, const NamedTensors& parameters) : config_(config) {
    check_parameters(parameters);
    all_.parameters = parameters;
    all_.options = options_of(parameters, config.weight_decay, config.decay_1d, config.groups);
    const at::TensorOptions options = parameters.front().tensor.options().requires_grad(false);
    const bool is_fp32 = options.dtype() == at::kFloat;
    eps1_ = config.eps1 != 0 ? config.eps1
            : is_fp32        ? static_cast<double>(std::numeric_limits<float>::epsilon())
                             : std::numeric_limits<double>::epsilon();
    for (const auto& [name, tensor] : parameters) {
      std::vector<int64_t> rows = tensor.sizes().vec(), columns = rows;
      std::vector<size_t> own = {state_.size()};
      if (tensor.dim() > 1) {
        rows.back() = 1;
        columns[columns.size() - 2] = 1;
        state_.push_back({"row_var." + name, at::zeros(rows, options)});
        own.push_back(state_.size());
        state_.push_back({"col_var." + name, at::zeros(columns, options)});
      } else {
        state_.push_back({"variance." + name, at::zeros(rows, options)});
      }
      of_parameter_.push_back(own);
    }
    steps_ = at::zeros({static_cast<int64_t>(parameters.size())}, options.dtype(at::kFloat));
    state_.push_back({"step", steps_});
  }

  at::Tensor step(const at::Tensor& lr, const at::Tensor& grad_scale, const at::Tensor& found_inf,
                  const ScheduledOptions& scheduled) override {
    const at::NoGradGuard no_grad;
    const TensorStep step(all_, lr, grad_scale, found_inf, scheduled.weight_decay);
    kernel::AdafactorStep own{.steps = steps_,
                              .lr = lr,
                              .grad_scale = grad_scale,
                              .found_inf = found_inf,
                              .beta2_decay = config_.beta2_decay,
                              .eps1 = eps1_,
                              .eps2 = config_.eps2,
                              .d = config_.d,
                              .relative_step = config_.relative_step,
                              .scale_parameter = config_.scale_parameter};
    for (size_t i = 0; i < step.size(); ++i) {
      if (step.parameter(i).numel() == 0) {  // Another process updates it.
        const at::Tensor count = steps_.select(0, static_cast<int64_t>(step.index(i)));
        step.write(count, count + 1);
        continue;
      }
      if (!scheduled.weight_decay.defined() && is_for_our_kernel(step.parameter(i)) &&
          is_for_our_kernel(step.raw_gradient(i))) {
        add(step, i, own);
      } else {
        update(step, i);
      }
    }
    kernel::adafactor(own);
    return {};
  }

  bool can_schedule(ScheduledOption option) const override {
    return option == ScheduledOption::kWeightDecay;
  }
  NamedTensors state() const override { return state_; }
  double base_lr() const override { return config_.lr; }
  std::vector<UpdateUnit> update_units() const override {
    std::vector<UpdateUnit> units;
    for (const auto& [name, tensor] : all_.parameters) {
      units.push_back({.is_whole = true, .cost = static_cast<double>(tensor.numel())});
    }
    return units;
  }

 private:
  static bool is_for_our_kernel(const at::Tensor& tensor) {
    return kernel::kernels_enabled() && tensor.device().is_cpu() &&
           tensor.scalar_type() == at::kFloat && tensor.is_contiguous();
  }

  void add(const TensorStep& step, size_t i, kernel::AdafactorStep& own) const {
    const std::vector<size_t>& states = of_parameter_[step.index(i)];
    own.parameters.push_back(step.parameter(i));
    own.gradients.push_back(step.raw_gradient(i));
    own.rows.push_back(state_[states[0]].tensor);
    own.columns.push_back(states.size() > 1 ? state_[states[1]].tensor : at::Tensor());
    own.indices.push_back(static_cast<int64_t>(step.index(i)));
    own.weight_decays.push_back(step.weight_decay(i));
    own.lr_factors.push_back(step.lr_factor(i));
  }

  void update(const TensorStep& step, size_t i) const {
    const at::Tensor &p = step.parameter(i), &g = step.raw_gradient(i), lr = step.lr(i);
    const at::Tensor count = steps_.select(0, static_cast<int64_t>(step.index(i)));
    const at::Tensor t = count + 1;
    const at::Tensor& scale = step.gradient_scale();
    const at::Tensor variance = variance_of(step, i, g, t.pow(config_.beta2_decay));
    // Scalar factors are folded into the learning rate, which saves passes over the tensor.
    const at::Tensor change = variance.clamp_min_(eps1_ * eps1_).rsqrt_().mul_(g);
    at::Tensor rate = config_.relative_step ? at::minimum(lr, t.rsqrt()) : lr;
    if (config_.scale_parameter) rate = rate * rms(p).clamp_min(config_.eps2);
    const at::Tensor size = scale.defined() ? rms(change) * scale : rms(change);
    rate = rate / (size / config_.d).clamp_min(1);
    if (scale.defined()) rate = rate * scale;
    const at::Tensor kept = step.decayed(i);
    step.write(p, at::addcmul(kept, change, rate.to(p.scalar_type()), -1));
    step.write(count, t);
  }

  // Updates the second moment with weight `take` and returns it as a new tensor.
  at::Tensor variance_of(const TensorStep& step, size_t i, const at::Tensor& g,
                         const at::Tensor& take) const {
    const std::vector<size_t>& own = of_parameter_[step.index(i)];
    const at::Tensor share = take.to(g.scalar_type());
    const at::Tensor& scale = step.gradient_scale();
    const auto next = [&](size_t which, const at::Tensor& square) {
      const at::Tensor& state = state_[own[which]].tensor;
      at::Tensor result =
          at::lerp(state, scale.defined() ? square * scale.square() : square, share);
      step.write(state, result);
      return result;
    };
    if (own.size() == 1) return next(0, g.square());
    const at::Tensor rows = next(0, mean_square(g, -1)), columns = next(1, mean_square(g, -2));
    return at::matmul(rows / rows.mean(-2, true).clamp_min(eps1_), columns);
  }

  AdafactorConfig config_;
  OptimizerParameters all_;
  double eps1_;
  NamedTensors state_;
  std::vector<std::vector<size_t>> of_parameter_;  // Indices in state_.
  at::Tensor steps_;
};

}  // namespace

void visit(config::Visitor& visitor, AdafactorConfig& config) {
  visitor.field(kLearningRate, config.lr);
  visitor.field({.name = "beta2_decay",
                 .help = "exponent of the step in the decay rate of the second moment",
                 .max = 0},
                config.beta2_decay);
  visitor.field(
      {.name = "eps1", .help = "epsilon of the second moment; 0: that of the data type", .min = 0},
      config.eps1);
  visitor.field(
      {.name = "eps2", .help = "lower bound of the parameter's RMS in its learning rate", .min = 0},
      config.eps2);
  visitor.field({.name = "d",
                 .help = "clipping threshold: largest RMS of an update",
                 .min = 0,
                 .above_min = true},
                config.d);
  visitor.field({.name = "relative_step", .help = "learning rate of at most 1 / sqrt(step)"},
                config.relative_step);
  visitor.field(
      {.name = "scale_parameter", .help = "scale the learning rate by the parameter's RMS"},
      config.scale_parameter);
  visit_decay(visitor, config);
}

std::unique_ptr<Optimizer> make_adafactor(const AdafactorConfig& config,
                                          const NamedTensors& parameters) {
  return std::make_unique<Adafactor>(config, parameters);
}

}  // namespace gallop::optim
