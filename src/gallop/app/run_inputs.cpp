#include "gallop/app/run_inputs.h"

#include <algorithm>

namespace gallop::app {

namespace {

void add_features(const data::Signature& signature, model::Task& shape) {
  shape.features = 0;
  for (const data::TableFeature& feature : signature.features) {
    if (feature.is_category()) {
      shape.categories.push_back(static_cast<int64_t>(feature.categories.size()) + 1);
      continue;
    }
    shape.features += static_cast<int64_t>(feature.width());
    shape.bins.resize(static_cast<size_t>(shape.features), feature.bins);
  }
}

}  // namespace

model::Task model_task(const data::Signature& signature, const train::TaskTable& tasks) {
  const train::Task& task = tasks.find(signature.task);
  model::Task shape{.channels = signature.channels,
                    .height = signature.height,
                    .width = signature.width,
                    .classes = signature.outputs(),
                    .context = signature.context,
                    .vocabulary = static_cast<int64_t>(signature.vocabulary.size()),
                    .features = static_cast<int64_t>(signature.columns.size()),
                    .per_element = task.per_element,
                    .sequences = task.has_sequences(),
                    .bidirectional = !task.causal,
                    .padded = signature.is_text() && signature.padded,
                    .views = signature.views};
  if (!signature.features.empty()) add_features(signature, shape);
  if (task.has_labels()) shape.outputs = model::Task::Outputs::kLabels;
  if (task.has_number_targets()) shape.outputs = model::Task::Outputs::kNumbers;
  if (signature.is_text()) shape.kind = model::Task::Kind::kText;
  if (signature.is_numbers()) shape.kind = model::Task::Kind::kNumbers;
  return shape;
}

namespace {

// A single byte, or a lead byte with its continuation bytes.
bool is_character(const std::string& token) {
  const auto goes_on = [](unsigned char byte) { return (byte & 0xc0) == 0x80; };
  return !token.empty() && !goes_on(token.front()) &&
         std::all_of(token.begin() + 1, token.end(), goes_on);
}

bool are_characters(const std::vector<std::string>& vocabulary) {
  return std::all_of(vocabulary.begin(), vocabulary.end(), [](const std::string& digits) {
    return is_character(data::from_hex(digits));
  });
}

}  // namespace

train::MetricTask metric_task(const data::Signature& signature, const train::TaskTable& tasks) {
  const train::Task& task = tasks.find(signature.task);
  return {.target = task.target,
          .classes = signature.outputs(),
          .blank = signature.blank,
          .class_names = signature.classes,
          .tokens_are_characters = task.has_tokens() && are_characters(signature.vocabulary),
          .per_element = task.per_element,
          .target_mean = signature.target_mean,
          .target_deviation = signature.target_deviation};
}

train::MetricChoice metrics_for(const train::MetricChoice& choice, const train::Task& task) {
  train::MetricChoice chosen = choice;
  const config::Catalog& known = chosen.further.catalog();
  if (chosen.deciding.name() == "auto" && task.metric != "auto") {
    chosen.deciding = config::Component(known, task.metric);
  }
  if (chosen.further.items.empty()) {
    for (const std::string& name : task.metrics) chosen.further.items.emplace_back(known, name);
  }
  return chosen;
}

}  // namespace gallop::app
