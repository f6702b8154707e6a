#include "gallop/parallel/stage_parameters.h"

#include <algorithm>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/kernel/update.h"
#include "gallop/parallel/shared_update.h"

namespace gallop::parallel {

namespace {

// Of as many dimensions: groups of an optimizer tell matrices from vectors by them.
at::Tensor nothing_of(const at::Tensor& parameter) {
  const auto dims = static_cast<size_t>(std::max<int64_t>(1, parameter.dim()));
  return at::empty(std::vector<int64_t>(dims, 0), parameter.options().requires_grad(false));
}

at::Tensor in_memory_order(const at::Tensor& dense) {
  return dense.detach().as_strided({dense.numel()}, {1}, dense.storage_offset());
}

}  // namespace

StageParameters::StageParameters(NamedTensors parameters, NamedTensors statistics,
                                 TensorOwners owners, Collectives& collectives)
    : parameters_(std::move(parameters)),
      statistics_(std::move(statistics)),
      owners_(std::move(owners)),
      collectives_(collectives) {
  int64_t chunks = 0;
  for (const auto& [name, tensor] : parameters_) {
    own_.push_back({name, is_here(name) ? tensor : nothing_of(tensor)});
    if (!tensor.requires_grad()) continue;
    // So that all processes count the same updates.
    if (!is_here(name)) own_.back().tensor.mutable_grad() = nothing_of(tensor);
    is_by_chunk_ &= is_summed_by_chunk(tensor);
    if (is_here(name)) {
      trained_.push_back(own_.size() - 1);
      first_.push_back(chunks);
    }
    chunks += kernel::norm_chunks(tensor.numel());
  }
  sums_ = make_norm_sums(parameters_.front().tensor, chunks, is_by_chunk_);
}

at::Tensor StageParameters::gradient_norm() const {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients;
  std::vector<int64_t> first;
  for (size_t i = 0; i < trained_.size(); ++i) {
    const at::Tensor& gradient = own_[trained_[i]].tensor.grad();
    if (!gradient.defined() || gradient.numel() == 0) continue;
    gradients.push_back(gradient);
    first.push_back(first_[i]);
  }
  sum_squares(sums_, gradients, first, is_by_chunk_);
  collectives_.all_reduce_async(sums_);
  collectives_.wait(sums_);
  return norm_of_all(sums_, is_by_chunk_);
}

std::string StageParameters::first_non_finite_gradient() const {
  return first_of_all(optim::first_non_finite_gradient(own_));
}

std::string StageParameters::first_non_finite_parameter() const {
  return first_of_all(optim::first_non_finite(own_));
}

std::string StageParameters::first_of_all(const std::string& own) const {
  return first_found(parameters_, parallel::gather(collectives_, own));
}

void StageParameters::gather() const {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> all;
  for (const NamedTensors* list : {&parameters_, &statistics_}) {
    for (const auto& [name, tensor] : *list) {
      if (tensor.numel() == 0) continue;
      std::vector<int64_t> sizes(static_cast<size_t>(collectives_.size()));
      sizes[static_cast<size_t>(owner_of(name))] = tensor.numel();
      all.push_back(in_memory_order(tensor));
      collectives_.all_gather_async(all.back(), sizes);
    }
  }
  for (const at::Tensor& tensor : all) collectives_.wait(tensor);
}

void StageParameters::send_to_readers() const {
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : parameters_) {
    const auto reader = owners_.readers.find(name);
    if (reader == owners_.readers.end() || reader->second == owner_of(name)) continue;
    const at::Tensor value = in_memory_order(tensor);
    if (is_here(name)) {
      collectives_.send_async(value, reader->second);
    } else if (reader->second == collectives_.rank()) {
      collectives_.recv_async(value, owner_of(name));
    } else {
      continue;
    }
    collectives_.wait(value);
  }
}

namespace {

class StageOptimizer final : public DividedOptimizer {
 public:
  StageOptimizer(const StageParameters& parameters, const NamedTensors& buffers,
                 std::unique_ptr<optim::Optimizer> inner, std::unique_ptr<optim::Optimizer> whole)
      : DividedOptimizer(std::move(inner), std::move(whole)), parameters_(parameters) {
    for (const NamedTensors* list : {&parameters.parameters(), &buffers}) {
      for (const auto& [name, tensor] : *list) owners_.emplace(name, parameters.owner_of(name));
    }
  }

 protected:
  void updated() override {
    parameters_.send_to_readers();
    is_gathered_ = false;
  }
  void exchanged(bool averaged, bool are_others) override {
    if (averaged && (are_others || !is_gathered_)) {
      parameters_.gather();
      is_gathered_ = true;
    } else if (!averaged && are_others) {
      parameters_.send_to_readers();
      is_gathered_ = false;
    }
  }
  void divide(LogicalTensor& tensor) const override {
    const int* const owner = find_for_state(owners_, tensor.name);
    const bool is_here = owner == nullptr || *owner == parameters_.collectives().rank();
    if (is_here && !tensor.local.defined()) {
      throw InternalError(fmt::format("pipeline: state '{}' is missing here", tensor.name));
    }
    if (!is_here) tensor.local = at::Tensor();
    if (owner == nullptr) return;
    const int replicas = parameters_.replicas();
    tensor.parts = {{*owner * replicas, 0, tensor.whole.numel()}};
    tensor.replicas = {.count = replicas, .apart = 1};
  }

 private:
  const StageParameters& parameters_;
  std::map<std::string, int> owners_;
  bool is_gathered_ = false;  // Whether all processes have the values of all parameters.
};

}  // namespace

std::unique_ptr<optim::Optimizer> make_stage_optimizer(const StageParameters& parameters,
                                                       const NamedTensors& buffers,
                                                       const MakeOptimizer& make) {
  NamedTensors own;
  for (const NamedTensor& buffer : buffers) {
    if (parameters.is_here(buffer.name)) own.push_back(buffer);
  }
  auto inner = make(parameters.tensors(), own);
  auto whole = make(on_meta(parameters.parameters()), on_meta(buffers));
  return std::make_unique<StageOptimizer>(parameters, buffers, std::move(inner), std::move(whole));
}

}  // namespace gallop::parallel
