// Metrics from the Tally of every evaluation, and top-k accuracy.
#include "gallop/train/metrics/loss_metrics.h"

#include <cmath>
#include <numbers>

#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "gallop/data/text_samples.h"
#include "gallop/train/loss.h"
#include "gallop/train/metrics/add_counts.h"
#include "gallop/train/metrics/predictions.h"
#include "gallop/train/metrics/state_bytes.h"

namespace gallop::train {

namespace {

using Target = MetricTask::Target;

class OfTally final : public Metric {
 public:
  using Formula = double (*)(const Tally&);
  OfTally(const char* name, bool higher_is_better, Formula formula)
      : name_(name), higher_is_better_(higher_is_better), formula_(formula) {}

  std::string name() const override { return name_; }
  bool higher_is_better() const override { return higher_is_better_; }
  std::string state_key() const override { return kTallyKey; }
  std::unique_ptr<MetricState> make_state() const override {
    return std::make_unique<TallyState>();
  }
  std::vector<MetricValue> values(const MetricState& state) const override {
    const Tally& tally = dynamic_cast<const TallyState&>(state).tally();
    if (tally.count == 0) return {{name_, std::nullopt, higher_is_better_}};
    return {{name_, formula_(tally), higher_is_better_}};
  }

 private:
  const char* name_;
  bool higher_is_better_;
  Formula formula_;
};

// The counts of hits and of targets, on the device of the predictions.
class HitsState final : public MetricState {
 public:
  explicit HitsState(int64_t k) : k_(k) {}

  void add(const Predictions& batch) override {
    const auto [logits, target] = class_rows(batch);
    const at::Tensor counted = target.ne(data::kIgnoredTarget);
    add_counts(counts_, at::stack({hits_among(logits, target, k_).sum(), counted.sum()}));
  }
  void merge(const MetricState& other) override {
    const auto& more = dynamic_cast<const HitsState&>(other);
    if (more.counts_.defined()) add_counts(counts_, more.counts_);
  }
  std::string to_bytes() const override {
    BytesWriter writer;
    const auto [hits, all] = counts();
    writer.put(hits);
    writer.put(all);
    return writer.take();
  }
  void from_bytes(const std::string& bytes) override {
    BytesReader reader(bytes);
    counts_ = at::zeros({2}, at::kLong);
    for (int i = 0; i < 2; ++i) reader.get(counts_.mutable_data_ptr<int64_t>()[i]);
  }
  std::pair<int64_t, int64_t> counts() const {
    if (!counts_.defined()) return {0, 0};
    const at::Tensor host = counts_.cpu();
    return {host.const_data_ptr<int64_t>()[0], host.const_data_ptr<int64_t>()[1]};
  }

 private:
  int64_t k_;
  at::Tensor counts_;
};

class TopK final : public Metric {
 public:
  explicit TopK(int64_t k) : k_(k) {}
  std::string name() const override { return fmt::format("top{}", k_); }
  std::string state_key() const override { return name(); }
  std::unique_ptr<MetricState> make_state() const override {
    return std::make_unique<HitsState>(k_);
  }
  std::vector<MetricValue> values(const MetricState& state) const override {
    const auto [hits, all] = dynamic_cast<const HitsState&>(state).counts();
    if (all == 0) return {{name()}};
    return {{name(), static_cast<double>(hits) / static_cast<double>(all)}};
  }

 private:
  int64_t k_;
};

void require_classes(const char* metric, const MetricTask& task) {
  if (task.has_classes()) return;
  refuse_task(metric, "one of several classes for each target", task);
}

double top5(const Tally& tally) { return tally.top5_accuracy(); }

ClassRows rows_for_tally(const at::Tensor& outputs, const at::Tensor& labels) {
  // An image with a class label per pixel.
  if (labels.dim() > 2) return class_rows({.outputs = outputs, .target = labels});
  return {.logits = outputs, .target = labels};
}

}  // namespace

Tally tally_of(const at::Tensor& outputs, const at::Tensor& labels) {
  const ClassRows rows = rows_for_tally(outputs, labels);
  Tally tally = count_correct(rows.logits, rows.target, true);
  tally.loss_sum = cross_entropy_sum(rows.logits, rows.target, 0).item<double>();
  return tally;
}

Tally count_correct_of(const at::Tensor& outputs, const at::Tensor& labels) {
  const ClassRows rows = rows_for_tally(outputs, labels);
  return count_correct(rows.logits, rows.target, true);
}

void TallyState::add(const Predictions& batch) {
  const ClassRows rows = class_rows(batch);
  tally_.add(tally_of(rows.logits, rows.target));
}
void TallyState::merge(const MetricState& other) {
  tally_.add(dynamic_cast<const TallyState&>(other).tally_);
}
std::string TallyState::to_bytes() const {
  BytesWriter writer;
  writer.put(tally_);
  return writer.take();
}
void TallyState::from_bytes(const std::string& bytes) { BytesReader(bytes).get(tally_); }

void visit(config::Visitor& visitor, TopKConfig& config) {
  visitor.field({.name = "k", .help = "number of top predictions to consider", .min = 1}, config.k);
}

std::unique_ptr<Metric> make_loss(const NoMetricOptions&, const MetricTask&) {
  return std::make_unique<OfTally>("loss", /*higher_is_better=*/false,
                                   [](const Tally& tally) { return tally.loss(); });
}

std::unique_ptr<Metric> make_top1(const NoMetricOptions&, const MetricTask&) {
  return std::make_unique<OfTally>("accuracy", /*higher_is_better=*/true,
                                   [](const Tally& tally) { return tally.accuracy(); });
}

std::unique_ptr<Metric> make_top5(const NoMetricOptions&, const MetricTask& task) {
  require_classes("top5", task);
  return std::make_unique<OfTally>("top5", /*higher_is_better=*/true, top5);
}

std::unique_ptr<Metric> make_top_k(const TopKConfig& config, const MetricTask& task) {
  require_classes("top-k", task);
  constexpr int64_t kOfEveryEvaluation = 5;
  if (config.k == kOfEveryEvaluation) return make_top5({}, task);
  return std::make_unique<TopK>(config.k);
}

std::unique_ptr<Metric> make_perplexity(const NoMetricOptions&, const MetricTask& task) {
  require_classes("perplexity", task);
  return std::make_unique<OfTally>("perplexity", /*higher_is_better=*/false,
                                   [](const Tally& tally) { return std::exp(tally.loss()); });
}

std::unique_ptr<Metric> make_bits_per_character(const NoMetricOptions&, const MetricTask& task) {
  if (task.target != Target::kTokens || !task.tokens_are_characters) {
    refuse_task("bits-per-character", "tokens that are one character each", task);
  }
  return std::make_unique<OfTally>(
      "bits-per-character", /*higher_is_better=*/false,
      [](const Tally& tally) { return tally.loss() / std::numbers::ln2; });
}

std::unique_ptr<Metric> make_auto_metric(const NoMetricOptions& config, const MetricTask& task) {
  const bool is_loss = task.target == Target::kTokens || !task.has_scores();
  return is_loss ? make_loss(config, task) : make_accuracy(config, task);
}

}  // namespace gallop::train
