#include "gallop/train/metrics/calibration.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gallop/train/metrics/exact_sum.h"
#include "gallop/train/metrics/predictions.h"
#include "gallop/train/metrics/state_bytes.h"

namespace gallop::train {

namespace {

struct Bin {
  int64_t count = 0, right = 0;
  ExactSum confidence;
};

class Bins final : public MetricState {
 public:
  Bins(int64_t bins, MetricTask task) : task_(std::move(task)), bins_(static_cast<size_t>(bins)) {}

  void add(const Predictions& batch) override {
    const HostRows rows = host_rows(batch, task_);
    for (int64_t i = 0; i < rows.rows; ++i) {
      const float* const logits = rows.row(i);
      if (!task_.has_classes()) {
        for (int64_t k = 0; k < rows.columns; ++k) add_label(rows, i * rows.columns + k);
        continue;
      }
      const float* const best = std::max_element(logits, logits + rows.columns);
      double sum = 0;
      for (int64_t k = 0; k < rows.columns; ++k) {
        sum += std::exp(static_cast<double>(logits[k]) - *best);
      }
      note(1 / sum, best - logits == rows.target[static_cast<size_t>(i)]);
    }
  }

  void merge(const MetricState& other) override {
    const auto& more = dynamic_cast<const Bins&>(other);
    for (size_t i = 0; i < bins_.size(); ++i) {
      bins_[i].count += more.bins_[i].count;
      bins_[i].right += more.bins_[i].right;
      bins_[i].confidence.merge(more.bins_[i].confidence);
    }
    nans_ += more.nans_;
  }

  std::string to_bytes() const override {
    BytesWriter writer;
    writer.put(bins_);
    writer.put(nans_);
    return writer.take();
  }
  void from_bytes(const std::string& bytes) override {
    BytesReader reader(bytes);
    reader.get(bins_);
    reader.get(nans_);
  }

  std::optional<double> error() const {
    double sum = 0, count = 0;
    for (const Bin& bin : bins_) {
      sum += std::abs(static_cast<double>(bin.right) - bin.confidence.value());
      count += static_cast<double>(bin.count);
    }
    if (nans_ > 0 || count == 0) return std::nullopt;
    return sum / count;
  }

  ReliabilityDiagram diagram() const {
    ReliabilityDiagram diagram{.bins = {}, .error = error()};
    for (const Bin& bin : bins_) {
      auto& added = diagram.bins.emplace_back();
      added.count = bin.count;
      added.correct = bin.right;
      if (bin.count == 0) continue;
      const auto count = static_cast<double>(bin.count);
      added.confidence = bin.confidence.value() / count;
      added.accuracy = static_cast<double>(bin.right) / count;
    }
    return diagram;
  }

 private:
  void add_label(const HostRows& rows, int64_t element) {
    const auto at = static_cast<size_t>(element);
    if (rows.counts[at] == 0) return;
    const float logit = rows.logits[at];
    const bool guess = logit > 0;
    note(probability_of(guess ? logit : -logit), guess == (rows.truth[at] != 0));
  }

  void note(double exact, bool is_right) {
    // Rounded to fp32, like other probabilities.
    const double confidence = static_cast<float>(exact);
    if (std::isnan(confidence)) {
      nans_ += 1;
      return;
    }
    const auto last = static_cast<int64_t>(bins_.size()) - 1;
    const auto number =
        static_cast<int64_t>(std::ceil(confidence * static_cast<double>(bins_.size()))) - 1;
    Bin& bin = bins_[static_cast<size_t>(std::clamp<int64_t>(number, 0, last))];
    bin.count += 1;
    bin.right += is_right ? 1 : 0;
    bin.confidence.add(confidence);
  }

  MetricTask task_;
  std::vector<Bin> bins_;
  int64_t nans_ = 0;
};

class CalibrationError final : public Metric {
 public:
  CalibrationError(int64_t bins, MetricTask task) : bins_(bins), task_(std::move(task)) {}

  std::string name() const override {
    return bins_ == CalibrationConfig().bins ? "expected-calibration-error"
                                             : fmt::format("expected-calibration-error-{}", bins_);
  }
  bool higher_is_better() const override { return false; }
  std::string state_key() const override { return name(); }
  std::unique_ptr<MetricState> make_state() const override {
    return std::make_unique<Bins>(bins_, task_);
  }
  std::vector<MetricValue> values(const MetricState& state) const override {
    return {{name(), dynamic_cast<const Bins&>(state).error(), false}};
  }
  std::vector<FigureData> figures(const MetricState& state) const override {
    const std::string name =
        bins_ == CalibrationConfig().bins ? "reliability" : fmt::format("reliability-{}", bins_);
    return {{name, dynamic_cast<const Bins&>(state).diagram()}};
  }

 private:
  int64_t bins_;
  MetricTask task_;
};

}  // namespace

void visit(config::Visitor& visitor, CalibrationConfig& config) {
  visitor.field(
      {.name = "bins", .help = "number of confidence bins of equal width", .min = 1, .max = 1e4},
      config.bins);
}

std::unique_ptr<Metric> make_calibration_error(const CalibrationConfig& config,
                                               const MetricTask& task) {
  if (!task.has_scores()) {
    refuse_task("expected-calibration-error", "classes or labels as targets", task);
  }
  return std::make_unique<CalibrationError>(config.bins, task);
}

}  // namespace gallop::train
