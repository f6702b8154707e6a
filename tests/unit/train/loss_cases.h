#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/config/component.h"
#include "gallop/config/node.h"
#include "gallop/config/resolve.h"
#include "gallop/train/losses/loss.h"

namespace gallop::train {

/// Parses a loss such as "focal gamma=0.5 class_weights=[1,2]".
inline config::Component chosen_loss(const LossRegistry& losses, const std::string& text) {
  config::Component component(losses, text.substr(0, text.find(' ')));
  std::string yaml = "{";
  for (size_t at = text.find(' '); at != std::string::npos; at = text.find(' ', at + 1)) {
    const size_t equals = text.find('=', at), end = text.find(' ', equals);
    yaml += text.substr(at + 1, equals - at - 1) + ": ";
    for (const char c :
         text.substr(equals + 1, end == std::string::npos ? end : end - equals - 1)) {
      yaml += c == ':' ? ": " : std::string(1, c);
    }
    yaml += ", ";
  }
  const config::Node options = config::parse_yaml(yaml + "}", "loss");
  config::Problems problems;
  config::read_fields(
      options, [&](config::Visitor& visitor) { component.visit_fields(visitor); }, problems);
  problems.throw_if_any();
  return component;
}

/// The context of a loss for data with such targets and a model with such outputs.
inline LossContext context_of(const at::Tensor& logits, const at::Tensor& target) {
  LossContext context{.output_sizes = logits.sizes().slice(1).vec(),
                      .target_sizes = target.sizes().slice(1).vec(),
                      .target_type = target.scalar_type()};
  const bool is_image = logits.dim() > 3;
  if (!target.is_floating_point()) context.classes = logits.size(is_image ? 1 : -1);
  return context;
}

inline std::shared_ptr<const Loss> loss_of(const std::string& text, const LossContext& context) {
  static const LossRegistry kLosses = built_in_losses();
  return build_loss(kLosses, chosen_loss(kLosses, text), context);
}

}  // namespace gallop::train
