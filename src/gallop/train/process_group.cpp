#include "gallop/train/process_group.h"

#include <ATen/ops/empty_like.h>
#include <c10/core/ScalarType.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "gallop/parallel/model_averager.h"
#include "gallop/train/checkpoint.h"

namespace gallop::train {

namespace {

constexpr const char* kProcesses = "processes";

}  // namespace

parallel::Limits ProcessGroup::limits() const {
  return is_alone() ? parallel::Limits() : collectives_->limits();
}

bool ProcessGroup::has_same_weights() const {
  if (is_alone() || strategy_->pipeline() != nullptr) return false;
  return averager() == nullptr || averager()->are_equal();
}

void ProcessGroup::begin(parallel::Section section, int64_t step) const {
  if (!is_alone()) collectives_->begin(section, step);
}

void ProcessGroup::gather_parameters() const {
  if (!is_alone()) strategy_->gather_parameters();
}

void ProcessGroup::release_parameters() const {
  if (!is_alone()) strategy_->release_parameters();
}

void ProcessGroup::parameters_replaced() const {
  if (!is_alone()) strategy_->parameters_replaced();
}

std::vector<LogicalTensor> ProcessGroup::parameters_in_parts() const {
  return is_alone() ? std::vector<LogicalTensor>() : strategy_->parameters_in_parts();
}

void ProcessGroup::note_progress() const {
  if (!is_alone()) collectives_->note_progress();
}

void ProcessGroup::broadcast_parameters(const NamedTensors& tensors) const {
  if (is_alone()) return;
  // Each process has made its parts by itself.
  std::map<std::string, at::Tensor> wholes_of_parts;
  if (strategy_->model_is_in_parts()) {
    for (const LogicalTensor& one : strategy_->parameters_in_parts()) {
      if (!one.is_replicated()) wholes_of_parts.emplace(one.name, one.whole);
    }
  }
  std::string shapes;
  NamedTensors replicas;
  for (const NamedTensor& one : tensors) {
    const auto part = wholes_of_parts.find(one.name);
    const at::Tensor& whole = part != wholes_of_parts.end() ? part->second : one.tensor;
    shapes += fmt::format("{} {} {}\n", one.name, c10::toString(whole.scalar_type()),
                          fmt::join(whole.sizes(), "x"));
    if (part == wholes_of_parts.end()) replicas.push_back(one);
  }
  parallel::require_same(*collectives_, "the model", shapes);
  broadcast(replicas);
}

bool ProcessGroup::any(bool one) const {
  return is_alone() ? one : parallel::any_of(*collectives_, one);
}

std::vector<uint64_t> ProcessGroup::gather(uint64_t number) const {
  return is_alone() ? std::vector<uint64_t>{number} : parallel::gather(*collectives_, number);
}

std::vector<std::string> ProcessGroup::gather(const std::string& text) const {
  return is_alone() ? std::vector<std::string>{text} : parallel::gather(*collectives_, text);
}

void ProcessGroup::broadcast(const NamedTensors& tensors) const {
  if (!is_alone()) parallel::broadcast_all(*collectives_, tensors);
}

void ProcessGroup::broadcast(std::map<std::string, std::string>& texts) const {
  if (is_alone()) return;
  texts =
      nlohmann::json::parse(parallel::text_of_first(*collectives_, nlohmann::json(texts).dump()))
          .get<std::map<std::string, std::string>>();
}

NamedTensors ProcessGroup::rank_state() const {
  if (is_alone()) return {};
  NamedTensors own = strategy_->rank_state();
  for (NamedTensor& one : own) one.name = rank_state_name(rank(), one.name);
  return own;
}

void ProcessGroup::load_rank_state(const NamedTensors& saved) const {
  if (is_alone()) return;
  const NamedTensors own = strategy_->rank_state();
  if (own.empty()) return;
  std::map<std::string, at::Tensor> by_name;
  for (const auto& [name, tensor] : saved) by_name[name] = tensor;
  const auto fits = [&](int of, const NamedTensor& one) {
    const auto found = by_name.find(rank_state_name(of, one.name));
    return found != by_name.end() && found->second.sizes() == one.tensor.sizes();
  };
  // Only rank 0 has the saved tensors.
  std::map<std::string, std::string> known;
  int size = 0;
  for (size_t before = 0; is_first() && (size == 0 || known.size() > before); ++size) {
    before = known.size();
    for (const NamedTensor& one : own) {
      if (fits(size, one)) known[rank_state_name(size, one.name)] = "";
    }
  }
  known[kProcesses] = std::to_string(size - 1);
  broadcast(known);
  size = std::stoi(known.at(kProcesses));
  for (int of = 0; of < size; ++of) {
    NamedTensors had;
    for (const auto& [name, like] : own) {
      const std::string saved_name = rank_state_name(of, name);
      if (!known.contains(saved_name)) continue;
      had.push_back({name, at::empty_like(like)});
      if (is_first()) had.back().tensor.copy_(by_name.at(saved_name));
    }
    broadcast(had);
    strategy_->load_rank_state(had, of, size);
  }
}

}  // namespace gallop::train
