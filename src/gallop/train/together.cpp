#include "gallop/train/together.h"

#include <ATen/ops/empty_like.h>
#include <c10/core/ScalarType.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "gallop/train/checkpoint.h"

namespace gallop::train {

namespace {

constexpr const char* kProcesses = "processes";

}  // namespace

parallel::Limits Together::limits() const {
  return is_alone() ? parallel::Limits() : collectives_->limits();
}

void Together::begin(parallel::Section section, int64_t step) const {
  if (!is_alone()) collectives_->begin(section, step);
}

void Together::note_progress() const {
  if (!is_alone()) collectives_->note_progress();
}

void Together::start_alike(const NamedTensors& tensors) const {
  if (is_alone()) return;
  std::string shapes;
  for (const auto& [name, tensor] : tensors) {
    shapes += fmt::format("{} {} {}\n", name, c10::toString(tensor.scalar_type()),
                          fmt::join(tensor.sizes(), "x"));
  }
  parallel::require_same(*collectives_, "the model", shapes);
  share(tensors);
}

bool Together::any(bool one) const {
  return is_alone() ? one : parallel::any_of(*collectives_, one);
}

std::string Together::ask_first(const std::function<std::string()>& function) const {
  return parallel::ask_first(collectives_, function);
}

std::vector<uint64_t> Together::gather(uint64_t number) const {
  return is_alone() ? std::vector<uint64_t>{number} : parallel::gather(*collectives_, number);
}

std::vector<std::string> Together::gather(const std::string& text) const {
  return is_alone() ? std::vector<std::string>{text} : parallel::gather(*collectives_, text);
}

void Together::share(const NamedTensors& tensors) const {
  if (!is_alone()) parallel::broadcast_all(*collectives_, tensors);
}

void Together::share(std::map<std::string, std::string>& texts) const {
  if (is_alone()) return;
  texts =
      nlohmann::json::parse(parallel::text_of_first(*collectives_, nlohmann::json(texts).dump()))
          .get<std::map<std::string, std::string>>();
}

NamedTensors Together::own_state() const {
  if (is_alone()) return {};
  NamedTensors own = strategy_->own_state();
  for (NamedTensor& one : own) one.name = own_name(rank(), one.name);
  return own;
}

void Together::take_own_state(const NamedTensors& saved) const {
  if (is_alone()) return;
  const NamedTensors own = strategy_->own_state();
  if (own.empty()) return;
  std::map<std::string, at::Tensor> by_name;
  for (const auto& [name, tensor] : saved) by_name[name] = tensor;
  const auto fits = [&](int of, const NamedTensor& one) {
    const auto found = by_name.find(own_name(of, one.name));
    return found != by_name.end() && found->second.sizes() == one.tensor.sizes();
  };
  // Only the first process knows.
  std::map<std::string, std::string> known;
  int size = 0;
  for (size_t before = 0; is_first() && (size == 0 || known.size() > before); ++size) {
    before = known.size();
    for (const NamedTensor& one : own) {
      if (fits(size, one)) known[own_name(size, one.name)] = "";
    }
  }
  known[kProcesses] = std::to_string(size - 1);
  share(known);
  size = std::stoi(known.at(kProcesses));
  for (int of = 0; of < size; ++of) {
    NamedTensors had;
    for (const auto& [name, like] : own) {
      const std::string saved_name = own_name(of, name);
      if (!known.contains(saved_name)) continue;
      had.push_back({name, at::empty_like(like)});
      if (is_first()) had.back().tensor.copy_(by_name.at(saved_name));
    }
    share(had);
    strategy_->take_own_state(had, of, size);
  }
}

}  // namespace gallop::train
