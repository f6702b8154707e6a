#include "gallop/parallel/tensor_parameters.h"

#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/optim/gradients.h"
#include "gallop/parallel/shared_update.h"
#include "gallop/parallel/sums.h"

namespace gallop::parallel {

TensorParameters::TensorParameters(NamedTensors parameters,
                                   const std::vector<LogicalTensor>& divided,
                                   Collectives& collectives)
    : parameters_(std::move(parameters)), collectives_(collectives) {
  std::map<std::string, const LogicalTensor*> left;
  for (const LogicalTensor& one : divided) left.emplace(one.name, &one);
  for (const LogicalTensor& one : replicas_of(parameters_)) {
    const auto found = left.find(one.name);
    logical_.push_back(found != left.end() ? *found->second : one);
    if (found != left.end()) left.erase(found);
  }
  for (const LogicalTensor& one : divided) {
    if (left.contains(one.name)) logical_.push_back(one);
  }
  for (size_t i = 0; i < logical_.size(); ++i) places_.emplace(logical_[i].name, i);
}

const LogicalTensor* TensorParameters::division_of(const std::string& name) const {
  const auto found = places_.find(name);
  if (found == places_.end() || logical_[found->second].is_replicated()) return nullptr;
  return &logical_[found->second];
}

void TensorParameters::require_divisible_update(const std::vector<optim::UpdateUnit>& units) const {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (division_of(parameters_[i].name) == nullptr) continue;
    if (i < units.size() && !units[i].is_whole) continue;
    throw UsageError(
        fmt::format("parallel.name=tensor divides '{}' among processes, and this optimizer updates "
                    "it only as a "
                    "whole, as muon, lamb, lars and adafactor do; take one that updates each "
                    "element by itself, "
                    "such as adamw, or parallel.name=zero-1",
                    parameters_[i].name));
  }
}

at::Tensor TensorParameters::gradient_norm() const {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> counted;
  for (const auto& [name, tensor] : parameters_) {
    // What all processes have counts once.
    const bool is_mine = collectives_.rank() == 0 || division_of(name) != nullptr;
    if (is_mine && tensor.grad().defined()) counted.push_back(tensor.grad());
  }
  const at::Tensor squares =
      at::zeros({1}, parameters_.front().tensor.options().dtype(at::kDouble).requires_grad(false));
  if (!counted.empty()) squares.add_(optim::gradient_norm(counted).to(at::kDouble).square());
  const SubgroupScope group(collectives_);
  all_reduce_async(squares);
  wait_tensor(squares);
  return squares.select(0, 0).sqrt();
}

std::string TensorParameters::first_non_finite_gradient() const {
  return first_of_all(optim::first_non_finite_gradient(parameters_));
}

std::string TensorParameters::first_non_finite_parameter() const {
  return first_of_all(optim::first_non_finite(parameters_));
}

std::string TensorParameters::first_of_all(const std::string& own) const {
  return first_found(parameters_, gather(collectives_, own));
}

namespace {

class TensorOptimizer final : public DividedOptimizer {
 public:
  TensorOptimizer(const TensorParameters& parameters, std::unique_ptr<optim::Optimizer> inner,
                  std::unique_ptr<optim::Optimizer> whole)
      : DividedOptimizer(std::move(inner), std::move(whole)) {
    for (const LogicalTensor& one : parameters.logical_parameters()) {
      if (!one.is_replicated()) divisions_.emplace(one.name, one);
    }
    for (const LogicalTensor& state : logical_state()) {
      if (state.local.defined()) continue;
      throw InternalError(fmt::format("tensor: state '{}' is missing here", state.name));
    }
  }

 protected:
  void divide(LogicalTensor& state) const override {
    const LogicalTensor* const parameter = find_for_state(divisions_, state.name);
    if (parameter == nullptr) return;
    if (state.whole.numel() != parameter->whole.numel()) {
      throw UsageError(
          fmt::format("parallel.name=tensor: the optimizer's state '{}' is not one of single "
                      "elements, as those "
                      "of optimizer.state_bits=8 are not; set optimizer.state_bits to 32",
                      state.name));
    }
    state.parts = parameter->parts;
    state.rows = parameter->rows;
    state.replicas = parameter->replicas;
  }

 private:
  std::map<std::string, LogicalTensor> divisions_;  // By the names of parameters.
};

}  // namespace

std::unique_ptr<optim::Optimizer> make_tensor_optimizer(const TensorParameters& parameters,
                                                        const NamedTensors& buffers,
                                                        const MakeOptimizer& make) {
  NamedTensors wholes = wholes_of(parameters.logical_parameters());
  wholes.resize(parameters.tensors().size());
  auto inner = make(parameters.tensors(), buffers);
  auto whole = make(on_meta(wholes), on_meta(buffers));
  return std::make_unique<TensorOptimizer>(parameters, std::move(inner), std::move(whole));
}

}  // namespace gallop::parallel
