#include "gallop/train/losses/class_weights.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/config/scalar.h"
#include "gallop/train/losses/shapes.h"

namespace gallop::train {

namespace {

constexpr const char* kBalanced = "balanced";
constexpr const char* kEffectiveNumber = "effective-number";

std::optional<double> number_of(const std::string& text) {
  config::Node node;
  node.kind = config::Node::Kind::kScalar;
  node.scalar = text;
  return config::as_number(node);
}

bool is_name(const std::string& text) { return text == kBalanced || text == kEffectiveNumber; }

std::string mistake(const std::string& text) {
  if (is_name(text)) return {};
  const auto number = number_of(text);
  if (number && *number >= 0) return {};
  return fmt::format("must be a list of numbers from 0 on, {} or {}, not '{}'", kBalanced,
                     kEffectiveNumber, text);
}

// From the weight of a class with this many samples.
template <typename Weight>
std::vector<double> by_counts(const std::vector<int64_t>& counts, const Weight& weight) {
  std::vector<double> weights;
  for (const int64_t count : counts) {
    weights.push_back(count > 0 ? weight(static_cast<double>(count)) : 0);
  }
  return weights;
}

}  // namespace

void visit(config::Visitor& v, ClassWeightsConfig& c) {
  v.field({.name = "class_weights",
           .help = "weight of each class, in order; balanced or effective-number: from the "
                   "number of training samples of each class; [] for equal weights",
           .or_item = true,
           .check = mistake},
          c.class_weights);
  v.field({.name = "beta",
           .help = "for class_weights: effective-number; 0 for equal weights, 1 for balanced ones",
           .min = 0,
           .max = 1,
           .below_max = true},
          c.beta);
}

std::vector<double> class_weights(const char* loss, const ClassWeightsConfig& config,
                                  const LossContext& context) {
  const std::vector<std::string>& texts = config.class_weights;
  const bool has_beta = texts.size() == 1 && texts.front() == kEffectiveNumber;
  if (!has_beta && config.beta != ClassWeightsConfig().beta) {
    throw UsageError(
        fmt::format("train.loss.beta of {} is for class_weights: {}; set that, or omit it", loss,
                    kEffectiveNumber));
  }
  if (texts.empty()) return {};
  if (!std::any_of(texts.begin(), texts.end(), is_name)) {
    std::vector<double> weights;
    for (const std::string& text : texts) weights.push_back(number_of(text).value());
    require_class_weights(loss, weights, context);
    return weights;
  }
  if (texts.size() > 1) {
    throw UsageError(fmt::format(
        "train.loss.class_weights of {} is a list with a name in it; give numbers, or one name",
        loss));
  }
  if (!context.class_counts) {
    throw UsageError(fmt::format(
        "train.loss.class_weights of {} is {}, but the targets are not one class label for each "
        "sample; give numbers",
        loss, texts.front()));
  }
  const std::vector<int64_t> counts = context.class_counts();
  const auto used = static_cast<double>(
      std::count_if(counts.begin(), counts.end(), [](int64_t count) { return count > 0; }));
  if (texts.front() == kBalanced) {
    const auto all = static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
    return by_counts(counts, [&](double count) { return all / (used * count); });
  }
  std::vector<double> weights = by_counts(
      counts, [&](double count) { return (1 - config.beta) / (1 - std::pow(config.beta, count)); });
  const double mean = std::accumulate(weights.begin(), weights.end(), 0.0) / used;
  for (double& weight : weights) weight /= mean;
  return weights;
}

}  // namespace gallop::train
