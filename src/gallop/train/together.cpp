#include "gallop/train/together.h"

#include <c10/core/ScalarType.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace gallop::train {

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

}  // namespace gallop::train
