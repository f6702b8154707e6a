// Custom components, which recipes select by name like those of Gallop.
#include "gallop/app/plugin.h"

#include <algorithm>

#include <ATen/ops/linear.h>
#include <ATen/ops/logsumexp.h>

#include "gallop/model/initializer.h"
#include "gallop/model/module_model.h"
#include "gallop/train/losses/shapes.h"
#include "gallop/train/metrics/class_counts.h"

namespace mine {
using namespace gallop;

/// Cross-entropy + weight log(Z)^2, which keeps logits small (Chowdhery et al., 2022).
struct ZLoss final : train::Loss {
  explicit ZLoss(double of_z) : weight(of_z) {}
  at::Tensor sum(const model::Output& output, const NamedTensors& batch) const override {
    const at::Tensor logits = train::class_rows(train::widened(output.logits()));
    const at::Tensor target = train::field_of(batch, "target").flatten();
    const at::Tensor z = at::logsumexp(logits, 1).square().sum();
    return train::cross_entropy_sum(logits, target, 0.0).add(z, weight);
  }
  at::Tensor count(const NamedTensors& batch) const override {
    const at::Tensor& target = train::field_of(batch, "target");
    return train::count_tensor(target.numel(), target);
  }
  train::LossTraits traits() const override { return {.counts_by_size = true}; }
  double weight;
};
struct ZLossConfig {
  double weight = 1e-4;
};
void visit(config::Visitor& visitor, ZLossConfig& config) {
  visitor.field({.name = "weight", .help = "weight of log(Z)^2", .min = 0}, config.weight);
}
std::unique_ptr<train::Loss> make_z_loss(const ZLossConfig& config,
                                         const train::LossContext& data) {
  train::require_class_labels("z-loss", data);
  return std::make_unique<ZLoss>(config.weight);
}

/// 64 hidden units, each the maximum of 4 linear functions (Goodfellow et al., 2013).
struct Maxout final : torch::nn::Module {
  Maxout(const model::Task& task, model::Initializer init) {
    const int64_t pixels = task.channels * task.height * task.width;
    first = register_parameter("first", init.weight({256, pixels}, {}));
    head = register_parameter("head", init.weight({task.classes, 64}, {}));
  }
  at::Tensor forward(const at::Tensor& images) {
    const at::Tensor units = at::linear(images.flatten(1), first).reshape({-1, 64, 4}).amax(2);
    return at::linear(units, head);
  }
  at::Tensor first, head;
};
struct MaxoutConfig {};
void visit(config::Visitor& /*visitor*/, MaxoutConfig& /*config*/) {}
std::unique_ptr<model::Model> make_maxout(const MaxoutConfig& /*config*/, const model::Task& task,
                                          model::InitialWeights weights) {
  if (task.kind != model::Task::Kind::kImages) {
    throw UsageError("model maxout needs images; choose another model");
  }
  return model::model_of(std::make_shared<Maxout>(task, model::Initializer(weights)));
}

/// The smallest recall of any class, from the counts of Gallop's metrics.
struct WorstRecall final : train::Metric {
  explicit WorstRecall(train::MetricTask of) : task(std::move(of)) {}
  std::string name() const override { return "worst-recall"; }
  std::string state_key() const override { return "classes"; }
  std::unique_ptr<train::MetricState> make_state() const override {
    return std::make_unique<train::ClassCounts>(task);
  }
  std::vector<train::MetricValue> values(const train::MetricState& state) const override {
    const auto n = dynamic_cast<const train::ClassCounts&>(state).numbers();
    double worst = 1;
    for (size_t c = 0; c < n.truths.size(); ++c) {
      if (n.truths[c] > 0) worst = std::min(worst, 1.0 * n.hits[c] / n.truths[c]);
    }
    return {{.name = name(), .value = worst}};
  }
  train::MetricTask task;
};
std::unique_ptr<train::Metric> make_worst_recall(const train::NoMetricOptions& /*options*/,
                                                 const train::MetricTask& task) {
  return std::make_unique<WorstRecall>(task);
}

void register_expected_value(Registries& registries);  // expected_value.cpp

void register_components(Registries& registries) {
  registries.losses.add("z-loss", "cross-entropy + weight log(Z)^2", make_z_loss);
  registries.models.add("maxout", "one layer of maxout units over images", make_maxout);
  registries.metrics.add("worst-recall", "smallest recall of any class", make_worst_recall);
  register_expected_value(registries);
}

}  // namespace mine

GALLOP_PLUGIN("mine", mine::register_components)
