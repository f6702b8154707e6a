#include "gallop/optim/muon.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/kernel/isa.h"
#include "gallop/kernel/muon.h"
#include "gallop/optim/adam.h"
#include "gallop/optim/fields.h"
#include "gallop/optim/optimizer_parameters.h"
#include "gallop/optim/sgd.h"
#include "gallop/optim/tensor_step.h"

namespace gallop::optim {

namespace {

void check_matrices(const MuonConfig& config, const NamedTensors& parameters) {
  for (const std::string& pattern : config.matrices) {
    bool matched = false;
    for (const auto& [name, tensor] : parameters) {
      if (!matches_pattern(name, pattern)) continue;
      matched = true;
      if (tensor.dim() < 2) {
        throw UsageError(fmt::format(
            "muon: matrices selects '{}' by '{}', which is not a matrix but has {} dimension{}; "
            "leave it to {}",
            name, pattern, tensor.dim(), tensor.dim() == 1 ? "" : "s", config.other_optimizer));
      }
    }
    if (!matched) {
      throw UsageError(
          fmt::format("muon: the pattern '{}' in matrices matches no parameter", pattern));
    }
  }
}

bool is_muons(const MuonConfig& config, const NamedTensor& parameter) {
  return parameter.tensor.dim() >= 2 && (!matches_any(parameter.name, config.others) ||
                                         matches_any(parameter.name, config.matrices));
}

// The parameters for which `wanted` is true, with their group options.
OptimizerParameters part_of(const NamedTensors& parameters, const ParameterOptions& options,
                            const std::vector<bool>& wanted) {
  OptimizerParameters part;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!wanted[i]) continue;
    part.parameters.push_back(parameters[i]);
    part.options.lr_factors.push_back(options.lr_factors[i]);
    part.options.weight_decays.push_back(options.weight_decays[i]);
    part.options.has_own_decay.push_back(options.has_own_decay[i]);
  }
  return part;
}

// One group per parameter with its options.
GroupsConfig groups_of(const OptimizerParameters& part) {
  GroupsConfig groups;
  for (size_t i = 0; i < part.parameters.size(); ++i) {
    groups.groups.push_back({.match = part.parameters[i].name,
                             .lr_factor = part.options.lr_factors[i],
                             .weight_decay = part.options.weight_decays[i]});
  }
  return groups;
}

std::unique_ptr<Optimizer> make_other(const MuonConfig& config, const OptimizerParameters& part) {
  const GroupsConfig groups = groups_of(part);
  if (config.other_optimizer == "sgd") {
    return make_sgd({.lr = config.other_lr, .momentum = 0.9, .nesterov = true, .groups = groups},
                    part.parameters);
  }
  return make_adamw({.lr = config.other_lr,
                     .beta1 = config.other_beta1,
                     .beta2 = config.other_beta2,
                     .groups = groups},
                    part.parameters);
}

// Lower bound on the norm of a matrix.
constexpr double kEps = 1e-7;

class Muon final : public Optimizer {
 public:
  Muon(const MuonConfig& config, OptimizerParameters matrices, std::unique_ptr<Optimizer> other,
       std::vector<UpdateUnit> units)
      : config_(config),
        all_(std::move(matrices)),
        other_(std::move(other)),
        units_(std::move(units)) {
    all_.states.push_back(make_state("momentum", all_.parameters));
  }

  at::Tensor step(const at::Tensor& lr, const at::Tensor& grad_scale, const at::Tensor& found_inf,
                  const ScheduledOptions& scheduled) override {
    const at::NoGradGuard no_grad;
    const TensorStep step(all_, lr, grad_scale, found_inf, scheduled.weight_decay);
    const bool is_scheduled = scheduled.momentum.defined() || scheduled.weight_decay.defined();
    std::map<std::pair<int64_t, int64_t>, std::vector<size_t>> of_size;
    for (size_t i = 0; i < step.size(); ++i) {
      if (step.parameter(i).numel() == 0) continue;  // Another process updates it.
      if (!is_scheduled && is_for_our_kernel(step, i)) {
        of_size[matrix_size(step.parameter(i))].push_back(i);
      } else {
        update(step, i, scheduled.momentum);
      }
    }
    for (const auto& [size, members] : of_size) {
      const size_t most = std::max<size_t>(1, kMostNumbers / (size.first * size.second));
      for (size_t begin = 0; begin < members.size(); begin += most) {
        const size_t end = std::min(members.size(), begin + most);
        update_alike(step, {members.begin() + begin, members.begin() + end}, found_inf);
      }
    }
    // Scheduled options apply to Muon only.
    if (other_) other_->step(lr * (config_.other_lr / config_.lr), grad_scale, found_inf);
    return {};
  }

  bool can_schedule(ScheduledOption option) const override {
    return option != ScheduledOption::kBeta2;
  }

  NamedTensors state() const override {
    NamedTensors state = all_.states[0];
    if (!other_) return state;
    for (const NamedTensor& item : other_->state()) {
      state.push_back({"other." + item.name, item.tensor});
    }
    return state;
  }

  double base_lr() const override { return config_.lr; }
  std::vector<UpdateUnit> update_units() const override { return units_; }

 private:
  // Matrices of one size are batched, up to a number of elements that fits caches.
  static constexpr size_t kMostNumbers = size_t{1} << 22;

  static std::pair<int64_t, int64_t> matrix_size(const at::Tensor& tensor) {
    return {tensor.size(0), tensor.numel() / std::max<int64_t>(1, tensor.size(0))};
  }

  static bool is_for_our_kernel(const TensorStep& step, size_t i) {
    return kernel::kernels_enabled() && step.parameter(i).device().is_cpu() &&
           step.parameter(i).scalar_type() == at::kFloat && step.parameter(i).numel() > 0 &&
           step.raw_gradient(i).scalar_type() == at::kFloat;
  }

  void update_alike(const TensorStep& step, const std::vector<size_t>& members,
                    const at::Tensor& found_inf) const {
    kernel::MuonStep own{.lr = step.raw_lr(),
                         .grad_scale = step.grad_scale(),
                         .found_inf = found_inf,
                         .memory = config_.momentum,
                         .nesterov = config_.nesterov};
    for (const size_t i : members) {
      const auto [rows, columns] = matrix_size(step.parameter(i));
      own.parameters.push_back(step.parameter(i).contiguous());
      own.gradients.push_back(step.raw_gradient(i).contiguous());
      own.momentums.push_back(all_.states[0][step.index(i)].tensor.contiguous());
      own.keep_rates.push_back(step.lr_factor(i) * step.weight_decay(i));
      own.rates.push_back(step.lr_factor(i) * scale_of(rows, columns));
    }
    const auto type = config_.ns_precision == "bf16" ? at::kBFloat16 : at::kFloat;
    kernel::muon_update(own, orthogonal(kernel::muon_directions(own, type, kEps)));
    // Gradients with another memory layout were copied.
    for (size_t k = 0; k < members.size(); ++k) {
      const at::Tensor& parameter = step.parameter(members[k]);
      if (parameter.is_contiguous()) continue;
      parameter.copy_(own.parameters[k]);
      all_.states[0][step.index(members[k])].tensor.copy_(own.momentums[k]);
    }
  }

  // `scheduled`, if defined, is the momentum.
  void update(const TensorStep& step, size_t i, const at::Tensor& scheduled) const {
    const at::Tensor &p = step.parameter(i), g = step.gradient(i), lr = step.lr(i);
    const at::Tensor& momentum = all_.states[0][step.index(i)].tensor;
    at::Tensor m, u;
    if (scheduled.defined()) {
      m = at::lerp(momentum, g, (1 - scheduled).to(g.scalar_type()));
      u = config_.nesterov ? at::lerp(g, m, scheduled.to(g.scalar_type())) : m;
    } else {
      m = at::lerp(momentum, g, 1 - config_.momentum);
      u = config_.nesterov ? at::lerp(g, m, config_.momentum) : m;
    }
    at::Tensor x = u.reshape({1, u.size(0), -1});
    x = x / at::linalg_vector_norm(x).clamp_min(kEps);
    if (config_.ns_precision == "bf16") x = x.to(at::kBFloat16);
    const at::Tensor change = orthogonal(x).select(0, 0);
    const at::Tensor kept = step.decayed(i);
    const at::Tensor rate = lr * scale_of(change.size(0), change.size(1));
    step.write(p, kept - rate * change.to(p.scalar_type()).reshape(p.sizes()));
    step.write(momentum, m);
  }

  double scale_of(int64_t rows, int64_t columns) const {
    const auto r = static_cast<double>(rows), c = static_cast<double>(columns);
    if (config_.adjust_lr_fn == "original") return std::sqrt(std::max(1.0, r / c));
    return 0.2 * std::sqrt(std::max(r, c));
  }

  // Input: matrices [count, rows, columns] of norm 1.
  at::Tensor orthogonal(at::Tensor x) const {
    // Coefficients of Jordan's post: the steepest at 0 whose result stays in [0.7, 1.2].
    constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;
    const bool is_tall = x.size(1) > x.size(2);
    for (int64_t step = 0; step < config_.ns_steps; ++step) {
      const at::Tensor transposed = x.transpose(1, 2);
      const at::Tensor gram = is_tall ? at::bmm(transposed, x) : at::bmm(x, transposed);
      const at::Tensor factor = at::baddbmm(gram, gram, gram, kB, kC);
      x = is_tall ? at::baddbmm(x, x, factor, kA) : at::baddbmm(x, factor, x, kA);
    }
    return x;
  }

  MuonConfig config_;
  OptimizerParameters all_;
  std::unique_ptr<Optimizer> other_;  // Null if Muon updates all parameters.
  std::vector<UpdateUnit> units_;
};

// A matrix is made orthogonal as a whole.
UpdateUnit unit_of(const at::Tensor& tensor, bool is_muons) {
  const auto elements = static_cast<double>(tensor.numel());
  if (!is_muons || tensor.numel() == 0) return {.is_whole = is_muons, .cost = elements};
  const auto rows = static_cast<double>(tensor.size(0));
  return {.is_whole = true, .cost = elements * std::min(rows, elements / rows)};
}

}  // namespace

void visit(config::Visitor& visitor, MuonConfig& config) {
  visitor.field(kLearningRate, config.lr);
  visitor.field(kMomentum, config.momentum);
  visitor.field(kNesterov, config.nesterov);
  visitor.field({.name = "ns_steps", .help = "Newton-Schulz iterations", .min = 1, .max = 99},
                config.ns_steps);
  visitor.field({.name = "ns_precision",
                 .help = "precision of the Newton-Schulz iterations",
                 .choices = {"bf16", "fp32"}},
                config.ns_precision);
  visitor.field({.name = "adjust_lr_fn",
                 .help = "adjustment of the learning rate by the matrix's shape",
                 .choices = {"original", "match_rms_adamw"}},
                config.adjust_lr_fn);
  visitor.field(kWeightDecay, config.weight_decay);
  visitor.field(
      {.name = "others", .help = "glob patterns of matrices that other_optimizer updates"},
      config.others);
  visitor.field({.name = "matrices",
                 .help = "glob patterns of matrices that Muon updates even if they match others"},
                config.matrices);
  visitor.field({.name = "other_optimizer",
                 .help = "optimizer of all parameters that are not matrices",
                 .choices = {"adamw", "sgd"}},
                config.other_optimizer);
  visitor.field(
      {.name = "other_lr", .help = "learning rate of other_optimizer", .min = 0, .above_min = true},
      config.other_lr);
  visitor.field(share_field("other_beta1", "AdamW's decay rate of the first moment"),
                config.other_beta1);
  visitor.field(share_field("other_beta2", "AdamW's decay rate of the second moment"),
                config.other_beta2);
  visitor.field({.name = "other_weight_decay",
                 .help = "weight decay of other_optimizer on matrices",
                 .min = 0},
                config.other_weight_decay);
  visit_groups(visitor, config.groups);
}

std::unique_ptr<Optimizer> make_muon(const MuonConfig& config, const NamedTensors& parameters) {
  check_parameters(parameters);
  check_matrices(config, parameters);
  std::vector<bool> muons, others;
  std::vector<UpdateUnit> units;
  for (const NamedTensor& parameter : parameters) {
    muons.push_back(is_muons(config, parameter));
    others.push_back(!muons.back());
    units.push_back(unit_of(parameter.tensor, muons.back()));
  }
  if (std::find(muons.begin(), muons.end(), true) == muons.end()) {
    throw UsageError("muon: the model has no matrix for Muon; select some with matrices");
  }
  auto matrices =
      part_of(parameters, options_of(parameters, config.weight_decay, false, config.groups), muons);
  const auto rest = part_of(
      parameters, options_of(parameters, config.other_weight_decay, false, config.groups), others);
  auto other = rest.parameters.empty() ? nullptr : make_other(config, rest);
  return std::make_unique<Muon>(config, std::move(matrices), std::move(other), std::move(units));
}

}  // namespace gallop::optim
