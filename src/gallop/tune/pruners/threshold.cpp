#include "gallop/tune/pruners/threshold.h"

#include <cmath>

#include "gallop/base/error.h"

namespace gallop::tune {

namespace {

class Threshold final : public Pruner {
 public:
  explicit Threshold(const ThresholdConfig& config) : config_(config) {}

  bool should_stop(const Study& study, const Trial& trial) override {
    if (trial.reports.empty() || !is_due(config_.times, trial)) return false;
    const double metric = study.settings().objectives[0].signed_value(trial.reports.back().loss);
    return std::isnan(metric) || (config_.lower && metric < *config_.lower) ||
           (config_.upper && metric > *config_.upper);
  }

 private:
  ThresholdConfig config_;
};

}  // namespace

void visit(config::Visitor& visitor, ThresholdConfig& config) {
  visitor.field({.name = "lower", .help = "lower bound of the metric"}, config.lower);
  visitor.field({.name = "upper", .help = "upper bound of the metric"}, config.upper);
  visit(visitor, config.times);
}

std::unique_ptr<Pruner> make_threshold(const ThresholdConfig& config,
                                       const StudySettings& settings) {
  check_one_objective(settings, "pruner threshold");
  if (!config.lower && !config.upper) {
    throw UsageError("pruner threshold: neither lower nor upper is given");
  }
  if (config.lower && config.upper && *config.lower > *config.upper) {
    throw UsageError("pruner threshold: lower is above upper");
  }
  return std::make_unique<Threshold>(config);
}

}  // namespace gallop::tune
