// A custom task with its own prediction and report: numbers as means of distributions over classes.
#include <ATen/ops/arange.h>
#include <ATen/ops/softmax.h>

#include "gallop/app/registries.h"
#include "gallop/data/data_config.h"
#include "gallop/data/image_module.h"
#include "gallop/data/readers.h"
#include "gallop/train/metrics/residuals.h"

namespace mine {
using namespace gallop;

/// The mean of the class indices: logits [C] to [1], or [N, C] to [N, 1] (Rothe et al., 2015).
at::Tensor expected_value(const at::Tensor& logits) {
  const at::Tensor indices = at::arange(logits.size(-1), logits.options());
  return at::softmax(logits, -1).mul(indices).sum(-1, /*keepdim=*/true);
}

/// Pairs of expected and actual values, whose state is that of Gallop's residuals.
struct ValuePairs final : train::MetricState {
  void add(const train::Predictions& batch) override {
    pairs.add({.outputs = expected_value(batch.outputs.to(at::kFloat)),
               .target = batch.target.to(at::kFloat).unsqueeze(1)});
  }
  void merge(const MetricState& other) override {
    pairs.merge(dynamic_cast<const ValuePairs&>(other).pairs);
  }
  std::string to_bytes() const override { return pairs.to_bytes(); }
  void from_bytes(const std::string& bytes) override { pairs.from_bytes(bytes); }
  train::PairSample pairs;
};

/// Predicted against actual values, a figure without a value.
struct ValueResiduals final : train::Metric {
  std::string name() const override { return "value-residuals"; }
  std::string state_key() const override { return name(); }
  std::unique_ptr<train::MetricState> make_state() const override {
    return std::make_unique<ValuePairs>();
  }
  std::vector<train::MetricValue> values(const train::MetricState&) const override { return {}; }
  bool is_single() const override { return false; }
  std::vector<train::FigureData> figures(const train::MetricState& state) const override {
    return {{name(), dynamic_cast<const ValuePairs&>(state).pairs.residuals()}};
  }
};
std::unique_ptr<train::Metric> make_value_residuals(const train::MetricTask& /*task*/) {
  return std::make_unique<ValueResiduals>();
}

/// MNIST, of whose images the value of the digit is to be predicted.
std::unique_ptr<data::DataModule> open_digit_values(const data::MnistConfig& config,
                                                    const data::DataContext& context) {
  auto parts = data::read_mnist(config, read_context(context.config, context.options.cores));
  parts->task = "expected-value";
  parts->targets = {"value"};
  return make_image_module(std::move(parts), context);
}

void register_expected_value(Registries& registries) {
  // Loss and metrics are those of targets that are classes.
  registries.tasks.add(
      {.name = "expected-value",
       .summary = "a number, the mean of a distribution over classes",
       .target = train::MetricTask::Target::kClasses,
       .prediction = {.form = train::Prediction::Form::kNumbers, .postprocess = expected_value},
       .report = {.metrics = {train::kConfusionMatrix, {make_value_residuals}},
                  .images = train::Report::Images::kMistakes}});
  registries.data_modules.add("digit-values", "MNIST for the task expected-value",
                              open_digit_values);
}

}  // namespace mine
