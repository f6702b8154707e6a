#include "gallop/tune/pruners/patience.h"

#include <cmath>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/tune/pruners/checks.h"

namespace gallop::tune {

namespace {

class Patience final : public Pruner {
 public:
  Patience(const PatienceConfig& config, std::unique_ptr<Pruner> then)
      : last_(static_cast<size_t>(config.patience) + 1),
        min_delta_(config.min_delta),
        then_(std::move(then)) {}

  int32_t bracket(const Study& study, int64_t number) const override {
    return then_ == nullptr ? 0 : then_->bracket(study, number);
  }

  bool should_stop(const Study& study, const Trial& trial) override {
    const size_t count = trial.reports.size();
    if (count <= last_) return false;
    const double before = smallest_.of(trial, count - last_);
    double after = NAN;
    for (size_t i = count - last_; i < count; ++i) after = std::fmin(after, trial.reports[i].loss);
    if (!std::isnan(after) && !(before + min_delta_ < after)) return false;
    return then_ == nullptr || then_->should_stop(study, trial);
  }

 private:
  size_t last_;
  double min_delta_;
  std::unique_ptr<Pruner> then_;
  SmallestLosses smallest_;
};

}  // namespace

void visit(config::Visitor& visitor, PatienceConfig& config) {
  visitor.field({.name = "patience",
                 .help = "a trial is pruned if more than this number of reports in a row are worse "
                         "than the best before them",
                 .min = 0},
                config.patience);
  visitor.field(
      {.name = "min_delta", .help = "minimum difference by which they are worse", .min = 0},
      config.min_delta);
  visitor.field(
      {.name = "then", .help = "pruner that decides after that, with its options; none: prune"},
      config.then);
}

std::unique_ptr<Pruner> make_patience(const PatienceConfig& config, const StudySettings& settings) {
  check_one_objective(settings, "pruner patience");
  const std::string& name = config.then.name();
  if (name == "none") return std::make_unique<Patience>(config, nullptr);
  if (name == "patience" || name == "asha") {
    throw UsageError(fmt::format("pruner patience: then cannot be {}", name));
  }
  const auto& registry = dynamic_cast<const PrunerRegistry&>(config.then.catalog());
  return std::make_unique<Patience>(config, registry.build(config.then, settings));
}

}  // namespace gallop::tune
