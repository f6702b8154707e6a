#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/advise/rules.h"
#include "gallop/base/text.h"
#include "gallop/profile/profile_text.h"

namespace gallop::advise {

using profile::percent;

namespace {

// "conv1.bias, conv2.bias and 3 more"
std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t kMost = 4;
  std::vector<std::string> some(names.begin(), names.begin() + std::min(names.size(), kMost));
  if (names.size() > kMost) some.push_back(fmt::format("{} more", names.size() - kMost));
  return join_names(some, "and");
}

const profile::LayerTime* layer_of(const Facts& facts, const std::string& name) {
  for (const profile::LayerTime& layer : facts.profile.layers) {
    if (layer.name == name) return &layer;
  }
  return nullptr;
}

}  // namespace

std::string option_to_freeze(const Facts& facts, const std::vector<std::string>& names) {
  std::vector<std::string> all = facts.settings.frozen;
  all.insert(all.end(), names.begin(), names.end());
  return fmt::format("train.freeze=[{}]", fmt::join(all, ", "));
}

std::optional<Advice> unused_parameters(const Facts& facts) {
  const std::vector<std::string>& names = facts.model.unused_parameters;
  if (names.empty()) return std::nullopt;
  // A layer may compute all the same: the statistics of a batch norm are part of the result.
  std::set<std::string> layers;
  for (const std::string& name : names) layers.insert(name.substr(0, name.rfind('.')));
  double seconds = 0;
  for (const std::string& name : layers) {
    const profile::LayerTime* layer = layer_of(facts, name);
    if (layer != nullptr) seconds += layer->seconds();
  }
  const double share = facts.profile.share_of(seconds);
  return Advice{
      .finding =
          fmt::format("The loss does not depend on {} parameter{} ({}), whose layers take "
                      "{} of the step: {}",
                      names.size(), names.size() == 1 ? "" : "s",
                      format_bytes(facts.model.unused_bytes), percent(share), some_of(names)),
      .remedy =
          "Remove these layers from the model; train.freeze saves only the memory of their "
          "optimizer state",
      .gain = {.low = speedup_without(share),
               .high = speedup_without(1.2 * share),
               .basis = "the time without them, and without what reads their output"}};
}

std::optional<Advice> bias_before_norm(const Facts& facts) {
  const std::vector<std::string>& names = facts.model.biases_before_norm;
  if (names.empty()) return std::nullopt;
  const std::string option = option_to_freeze(facts, names);
  const Trial* trial = facts.trial(option);
  return Advice{
      .finding = fmt::format("A batch norm subtracts the mean, and {} with it", some_of(names)),
      .remedy =
          "Leave these biases out of the model (bias: false), or freeze them with "
          "train.freeze; the trained function is the same",
      .options = {option},
      .gain = trial == nullptr ? Gain() : gain_of(facts, *trial)};
}

std::optional<Advice> layer_sizes(const Facts& facts) {
  // Smaller gains of one layer are noise.
  constexpr double kLeastSpeedup = 1.1;
  std::vector<const ShapeTrial*> found;
  double saved = 0;
  for (const ShapeTrial& trial : facts.model.shapes) {
    // What a smaller layer saves by doing less is no fault of its sizes.
    const double less = std::max(1.0, 1 / trial.work);
    if (trial.seconds_as_is < kLeastSpeedup * less * trial.seconds) continue;
    const profile::LayerTime* layer = layer_of(facts, trial.layer);
    if (layer == nullptr) continue;
    found.push_back(&trial);
    saved += facts.profile.share_of(layer->seconds()) * (1 - trial.seconds / trial.seconds_as_is);
  }
  if (found.empty()) return std::nullopt;
  const ShapeTrial& first = *found.front();
  std::string finding =
      fmt::format("Layer {} has {}, and is {:.2f} times as fast with {}", first.layer, first.sizes,
                  first.seconds_as_is / first.seconds, first.better_sizes);
  if (found.size() > 1) {
    std::vector<std::string> others;
    for (size_t i = 1; i < found.size(); ++i) others.push_back(found[i]->layer);
    finding += fmt::format("; the same applies to {}", some_of(others));
  }
  return Advice{.finding = std::move(finding),
                .remedy = "Change these sizes; this changes the model",
                .gain = {.low = speedup_without(saved / 2),
                         .high = speedup_without(saved),
                         .basis = "measured for each layer alone"}};
}

std::optional<Advice> memory_bound(const Facts& facts) {
  // Below the second, slow_layer() finds what is slow.
  constexpr double kShare = 0.5, kOfLimit = 0.25;
  double seconds = 0, limit = 0;
  std::vector<const profile::LayerTime*> layers;
  for (const profile::LayerTime& layer : facts.profile.layers) {
    if (layer.name.empty() || layer.limit_by_flops > layer.limit / 2) continue;
    if (layer.limit < kOfLimit * layer.seconds()) continue;
    seconds += layer.seconds();
    limit += layer.limit;
    layers.push_back(&layer);
  }
  const double share = facts.profile.share_of(seconds);
  if (share < kShare) return std::nullopt;
  std::sort(layers.begin(), layers.end(),
            [](const auto* a, const auto* b) { return a->seconds() > b->seconds(); });
  std::vector<std::string> names;
  for (const profile::LayerTime* layer : layers) names.push_back(layer->name);
  return Advice{
      .finding =
          fmt::format("{} of the step moves data, at {} of the bandwidth of this machine: {}",
                      percent(share), percent(limit / seconds), some_of(names)),
      .remedy =
          "More cores would not help; a larger batch reads weights less often, and smaller "
          "layers or formats move less"};
}

}  // namespace gallop::advise
