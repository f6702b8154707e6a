#include "gallop/schedule/plateau.h"

#include <algorithm>
#include <limits>

#include "gallop/base/metric_order.h"

namespace gallop::schedule {

namespace {

class Plateau final : public Schedule {
 public:
  // Not finite before the first evaluation, which determines the direction of the metric.
  explicit Plateau(const PlateauConfig& config)
      : config_(config), best_(config.metric == "accuracy" ? -kInfinity : kInfinity) {}

  double factor(double) const override { return factor_; }

  void evaluated(double, const Metrics& metrics) override {
    const Metrics::Other found = value_in(metrics);
    if (is_better(found)) {
      best_ = found.value;
      bad_ = 0;
    } else {
      bad_ += 1;
    }
    if (cooldown_ > 0) {
      cooldown_ -= 1;
      bad_ = 0;
    }
    if (bad_ <= static_cast<double>(config_.patience)) return;
    const double reduced = std::max(factor_ * config_.factor, config_.min);
    if (factor_ - reduced > config_.eps) factor_ = reduced;
    cooldown_ = static_cast<double>(config_.cooldown);
    bad_ = 0;
  }

  std::vector<double> state() const override { return {factor_, best_, bad_, cooldown_}; }
  std::vector<std::string> followed_metrics() const override { return {config_.metric}; }
  void restore(const std::vector<double>& state) override {
    factor_ = state[0];
    best_ = state[1];
    bad_ = state[2];
    cooldown_ = state[3];
  }

 private:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  Metrics::Other value_in(const Metrics& metrics) const {
    if (config_.metric == "loss") return {config_.metric, metrics.loss, false};
    if (config_.metric == "accuracy") return {config_.metric, metrics.accuracy, true};
    for (const Metrics::Other& other : metrics.others) {
      if (other.name == config_.metric) return other;
    }
    return {config_.metric, std::numeric_limits<double>::quiet_NaN()};
  }

  bool is_better(const Metrics::Other& found) const {
    const double share = config_.threshold_mode == "rel" ? config_.threshold : 0;
    const double step = config_.threshold_mode == "abs" ? config_.threshold : 0;
    return found.higher_is_better
               ? gallop::is_better(found.value, best_ * (1 + share) + step, Better::kLarger)
               : gallop::is_better(found.value, best_ * (1 - share) - step, Better::kSmaller);
  }

  PlateauConfig config_;
  double factor_ = 1, best_, bad_ = 0, cooldown_ = 0;
};

}  // namespace

void visit(config::Visitor& visitor, PlateauConfig& config) {
  visitor.field({.name = "metric",
                 .help = "metric to monitor: loss, accuracy, top5, train.metric or one "
                         "of train.metrics"},
                config.metric);
  visitor.field({.name = "factor",
                 .help = "multiplicative factor of each decay",
                 .min = 0,
                 .max = 1,
                 .above_min = true,
                 .below_max = true},
                config.factor);
  visitor.field({.name = "patience",
                 .help = "evaluations without improvement before the factor decays",
                 .min = 0},
                config.patience);
  visitor.field({.name = "threshold",
                 .help = "minimum improvement over the best",
                 .min = 0,
                 .max = 1,
                 .below_max = true},
                config.threshold);
  visitor.field({.name = "threshold_mode",
                 .help = "threshold relative to the best, or absolute",
                 .choices = {"rel", "abs"}},
                config.threshold_mode);
  visitor.field({.name = "cooldown", .help = "evaluations to wait after a decay", .min = 0},
                config.cooldown);
  visitor.field({.name = "min", .help = "minimum factor", .min = 0, .max = 1}, config.min);
  visitor.field({.name = "eps", .help = "minimum change of the factor", .min = 0}, config.eps);
}

std::unique_ptr<Schedule> make_plateau(const PlateauConfig& config, const RunLength&) {
  return std::make_unique<Plateau>(config);
}

}  // namespace gallop::schedule
