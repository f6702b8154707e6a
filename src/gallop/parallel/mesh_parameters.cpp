#include "gallop/parallel/mesh_parameters.h"

#include <algorithm>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/parallel/collectives_group.h"
#include "gallop/parallel/sums.h"

namespace gallop::parallel {

namespace {

// A tensor of as many dimensions: groups of an optimizer tell matrices from vectors by them.
at::Tensor nothing_of(const at::Tensor& parameter) {
  const auto dims = static_cast<size_t>(std::max<int64_t>(1, parameter.dim()));
  return at::empty(std::vector<int64_t>(dims, 0), parameter.options().requires_grad(false));
}

}  // namespace

MeshParameters::MeshParameters(NamedTensors parameters, MeshDivision division, MeshGroups& groups)
    : parameters_(std::move(parameters)),
      division_(std::move(division)),
      groups_(groups),
      parts_(groups.along({division_.axis})),
      partition_(division_.shards != nullptr ? groups.along({kPipelineAxis, kShardAxis})
                                             : groups.along({kPipelineAxis})),
      norm_(parameters_) {
  for (const LogicalTensor& one : division_.tensors) divided_.emplace(one.name, &one);
  std::map<std::string, size_t> shard_indices;
  if (division_.shards != nullptr) {
    const NamedTensors& shards = division_.shards->parameters();
    for (size_t i = 0; i < shards.size(); ++i) shard_indices.emplace(shards[i].name, i);
  }
  for (size_t i = 0; i < parameters_.size(); ++i) add_own(i, shard_indices);
}

void MeshParameters::add_own(size_t index, const std::map<std::string, size_t>& shard_indices) {
  const auto& [name, tensor] = parameters_[index];
  if (division_.stages != nullptr && !division_.stages->is_here(name)) {
    own_.push_back({name, nothing_of(tensor)});
    // So that all processes count the same updates.
    if (tensor.requires_grad()) own_.back().tensor.mutable_grad() = nothing_of(tensor);
    return;
  }
  int64_t begin = 0;
  if (division_.shards != nullptr) {
    const size_t shard = shard_indices.at(name);
    own_.push_back(division_.shards->tensors()[shard]);
    begin = division_.shards->layout().part_of(shard, division_.shards->collectives().rank()).begin;
  } else {
    own_.push_back({name, tensor});
  }
  // What all processes along the axis have counts once.
  if (parts_.rank() == 0 || is_divided(name)) norm_.add(index, own_.back().tensor, begin);
}

at::Tensor MeshParameters::gradient_norm() const {
  const at::NoGradGuard no_grad;
  norm_.sum_here();
  if (partition_.size() > 1) CollectivesGroup(partition_).all_reduce(norm_.sums());
  at::Tensor norm = norm_.norm();
  if (parts_.size() == 1) return norm;
  const at::Tensor squares = norm.square().reshape({1});
  CollectivesGroup(parts_).all_reduce(squares);
  return squares.select(0, 0).sqrt();
}

std::string MeshParameters::first_non_finite_gradient() const {
  return first_of_all(optim::first_non_finite_gradient(own_));
}

std::string MeshParameters::first_non_finite_parameter() const {
  return first_of_all(optim::first_non_finite(own_));
}

std::string MeshParameters::first_of_all(const std::string& own) const {
  return first_found(parameters_, gather(groups_.all(), own));
}

std::vector<LogicalTensor> MeshParameters::logical_parameters() const {
  const int tp = parts_.size();
  const auto held = [&](LogicalTensor divided) {
    divided.replicas = {.count = groups_.mesh().size() / tp, .apart = tp};
    return divided;
  };
  std::vector<LogicalTensor> all;
  std::map<std::string, const LogicalTensor*> left = divided_;
  for (const LogicalTensor& one : replicas_of(parameters_)) {
    const auto found = left.find(one.name);
    all.push_back(found != left.end() ? held(*found->second) : one);
    if (found != left.end()) left.erase(found);
  }
  for (const LogicalTensor& one : division_.tensors) {
    if (left.contains(one.name)) all.push_back(held(one));
  }
  return all;
}

LogicalTensor MeshParameters::update_of(const NamedTensor& tensor) const {
  const DeviceMesh& mesh = groups_.mesh();
  const int tp = parts_.size(), replicas = mesh.size() / tp / mesh.size(kPipelineAxis);
  const auto& [name, here] = tensor;
  const auto found = divided_.find(name);
  const bool is_divided = found != divided_.end();
  LogicalTensor update =
      is_divided
          ? *found->second
          : LogicalTensor{.name = name, .whole = on_meta({tensor}).front().tensor, .local = {}};
  const int first =
      division_.stages != nullptr ? division_.stages->owner_of(name) * replicas * tp : 0;
  const auto& of_ranks = division_.shard_parts;
  const bool is_sharded = !of_ranks.empty() && of_ranks.front().contains(name);
  if (is_divided && is_sharded) {
    const std::vector<LogicalTensor::Part> columns = std::exchange(update.parts, {});
    for (int t = 0; t < tp; ++t) {
      const auto i = static_cast<size_t>(t);
      for (const LogicalTensor::Part& shard : of_ranks[i].at(name)) {
        update.parts.push_back({.rank = first + shard.rank * tp + t,
                                .begin = columns[i].begin,
                                .end = columns[i].end,
                                .first = shard.begin,
                                .last = shard.end});
      }
    }
  } else if (is_divided) {
    for (LogicalTensor::Part& part : update.parts) part.rank += first;
    update.replicas = {.count = replicas, .apart = tp};
  } else if (is_sharded) {
    update.parts = of_ranks.front().at(name);
    for (LogicalTensor::Part& part : update.parts) part.rank = first + part.rank * tp;
    update.replicas = {.count = tp, .apart = 1};
  } else if (division_.stages != nullptr) {
    update.parts = {{first, 0, update.whole.numel()}};
    update.replicas = {.count = replicas * tp, .apart = 1};
  }
  return update;
}

void MeshParameters::require_divisible_update(const std::vector<optim::UpdateUnit>& units) const {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!is_divided(parameters_[i].name)) continue;
    if (i < units.size() && !units[i].is_whole) continue;
    throw UsageError(
        fmt::format("{} divides '{}' among processes, and this optimizer updates it only as a "
                    "whole, as muon, lamb, lars and adafactor do; use an elementwise one, such as "
                    "adamw, or parallel.name=zero-1",
                    option(), parameters_[i].name));
  }
}

const char* MeshParameters::option() const {
  if (division_.axis == kExpertAxis) return "parallel.name=expert";
  return stages() != nullptr ? "parallel.tensor_parallel_degree" : "parallel.name=tensor";
}

namespace {

class MeshOptimizer final : public DividedOptimizer {
 public:
  MeshOptimizer(const MeshParameters& parameters, const NamedTensors& buffers,
                std::unique_ptr<optim::Optimizer> inner, std::unique_ptr<optim::Optimizer> whole)
      : DividedOptimizer(std::move(inner), std::move(whole)), parameters_(parameters) {
    for (const NamedTensors* list : {&parameters.parameters(), &buffers}) {
      for (const NamedTensor& one : *list) updates_.emplace(one.name, parameters.update_of(one));
    }
    logical_state();  // Rejects states that cannot be divided.
  }

 protected:
  void updated() override {
    if (parameters_.shards() != nullptr) parameters_.shards()->share_update();
    if (parameters_.stages() != nullptr) parameters_.stages()->send_to_readers();
  }
  void exchanged(bool averaged, bool are_others) override {
    if (parameters_.shards() != nullptr && are_others) {
      const CollectivesScope scope(parameters_.shards()->collectives());
      parameters_.shards()->all_gather();
    }
    if (parameters_.stages() == nullptr) return;
    if (averaged && (are_others || !parameters_.stages()->are_gathered())) {
      parameters_.stages()->gather();
    } else if (!averaged && are_others) {
      parameters_.stages()->send_to_readers();
    }
  }
  void divide(LogicalTensor& state) const override {
    const LogicalTensor* const update = find_for_state(updates_, state.name);
    if (update != nullptr) {
      const bool is_of_elements = state.whole.numel() == update->whole.numel();
      if ((parameters_.is_divided(update->name) && !is_of_elements) || !divide_as(state, *update)) {
        throw UsageError(
            fmt::format("{}: the optimizer's state '{}' is not elementwise, for example because of "
                        "optimizer.state_bits=8; set optimizer.state_bits to 32",
                        parameters_.option(), state.name));
      }
    }
    // The optimizer here may have constant states of parameters of other stages.
    if (state.elements_in(parameters_.rank()) == 0) state.local = at::Tensor();
    require_own_part(state, parameters_.rank());
  }

 private:
  const MeshParameters& parameters_;
  std::map<std::string, LogicalTensor> updates_;  // By the names of parameters and buffers.
};

}  // namespace

std::unique_ptr<optim::Optimizer> make_mesh_optimizer(const MeshParameters& parameters,
                                                      const NamedTensors& buffers,
                                                      const MakeOptimizer& make) {
  const StageParameters* const stages = parameters.stages();
  NamedTensors own;
  for (const NamedTensor& buffer : buffers) {
    if (stages == nullptr || stages->is_here(buffer.name)) own.push_back(buffer);
  }
  NamedTensors wholes = wholes_of(parameters.logical_parameters());
  wholes.resize(parameters.tensors().size());
  auto inner = make(parameters.tensors(), own);
  auto whole = make(on_meta(wholes), on_meta(buffers));
  return std::make_unique<MeshOptimizer>(parameters, buffers, std::move(inner), std::move(whole));
}

}  // namespace gallop::parallel
