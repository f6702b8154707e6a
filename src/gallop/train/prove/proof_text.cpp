#include "gallop/train/prove/proof_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace gallop::train {

namespace {

std::string order_of(Quantity quantity) {
  switch (quantity) {
    case Quantity::kGradients:
    case Quantity::kWeights: return ", from the loss to the input,";
    default: return {};
  }
}

bool is_one(const ComparedQuantity& one) {
  return one.tensors.size() == 1 && one.tensors.front().name == name_of(one.quantity);
}

std::string error_text(const StepError& one) {
  return fmt::format("{:.2g} in step {} where {:.2g} is the bound", one.error, one.step, one.bound);
}

// Not finite numbers have no JSON.
nlohmann::ordered_json number(double value) {
  if (!std::isfinite(value)) return nullptr;
  return value;
}

nlohmann::ordered_json json_of(const ComparedTensor& tensor) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (const StepError& one : tensor.steps) {
    steps.push_back(
        {{"step", one.step}, {"error", number(one.error)}, {"bound", number(one.bound)}});
  }
  nlohmann::ordered_json json = {
      {"name", tensor.name}, {"differs", tensor.differs()}, {"steps", steps}};
  if (!tensor.remark.empty()) json["remark"] = tensor.remark;
  return json;
}

std::string difference_text(const ComparedQuantity& quantity) {
  const ComparedTensor& first = *quantity.first_that_differs();
  const std::string remark = first.remark.empty() ? "" : "; " + first.remark;
  if (quantity.quantity == Quantity::kSamples) return "samples differ" + remark;
  if (is_one(quantity)) {
    return fmt::format("{}: the error is {}{}", name_of(quantity.quantity),
                       error_text(first.worst()), remark);
  }
  std::string text =
      fmt::format("{}: the first that differs{} is {}: {}{}", name_of(quantity.quantity),
                  order_of(quantity.quantity), first.name, error_text(first.worst()), remark);
  const ComparedTensor& worst = quantity.worst();
  if (&worst != &first) {
    text += fmt::format("; the worst is {}: {}", worst.name, error_text(worst.worst()));
  }
  return text;
}

}  // namespace

std::string difference_text(const Proof& proof) {
  const ComparedQuantity* quantity = proof.first_that_differs();
  if (quantity == nullptr) return {};
  std::string text = difference_text(*quantity);
  // The outputs and losses belong to no layer, but gradients do.
  const auto gradients =
      std::find_if(proof.quantities.begin(), proof.quantities.end(),
                   [](const auto& one) { return one.quantity == Quantity::kGradients; });
  const bool has_no_layer =
      quantity->quantity == Quantity::kOutputs || quantity->quantity == Quantity::kLoss;
  if (has_no_layer && gradients != proof.quantities.end() &&
      gradients->first_that_differs() != nullptr) {
    text += "; " + difference_text(*gradients);
  }
  return text;
}
std::string proof_text(const Proof& proof) {
  std::string text = fmt::format("{:<16}  {:>8}  {:>9}  {:>9}  {:>5}  {}\n", "quantity", "tensors",
                                 "error", "bound", "step", "worst of them");
  for (const ComparedQuantity& quantity : proof.quantities) {
    const ComparedTensor& tensor = quantity.worst();
    const StepError& worst = tensor.worst();
    if (quantity.quantity == Quantity::kSamples) {
      text += fmt::format("{:<16}  {:>8}  {}\n", name_of(quantity.quantity), proof.samples,
                          tensor.differs() ? tensor.remark : "equal");
      continue;
    }
    text += fmt::format("{:<16}  {:>8}  {:>9.2g}  {:>9.2g}  {:>5}  {}\n",
                        name_of(quantity.quantity), quantity.tensors.size(), worst.error,
                        worst.bound, worst.step, is_one(quantity) ? "" : tensor.name);
  }
  for (size_t end = text.find(" \n"); end != std::string::npos; end = text.find(" \n")) {
    text.erase(end, 1);
  }
  return text;
}

std::string proof_json(const Proof& proof) {
  nlohmann::ordered_json quantities = nlohmann::ordered_json::array();
  for (const ComparedQuantity& quantity : proof.quantities) {
    nlohmann::ordered_json tensors = nlohmann::ordered_json::array();
    for (const ComparedTensor& one : quantity.tensors) tensors.push_back(json_of(one));
    quantities.push_back({{"name", name_of(quantity.quantity)}, {"tensors", tensors}});
  }
  const nlohmann::ordered_json json = {{"proven", proof.first_that_differs() == nullptr},
                                       {"steps", proof.steps},
                                       {"samples", proof.samples},
                                       {"difference", difference_text(proof)},
                                       {"quantities", quantities}};
  return json.dump();
}

}  // namespace gallop::train
