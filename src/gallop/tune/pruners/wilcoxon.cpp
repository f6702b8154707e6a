#include "gallop/tune/pruners/wilcoxon.h"

#include <algorithm>
#include <cmath>

#include "gallop/tune/pruners/signed_rank.h"

namespace gallop::tune {

namespace {

constexpr size_t kLeastSteps = 2;  // The test needs two.

bool has_only_finite(const Trial& trial) {
  return std::all_of(trial.reports.begin(), trial.reports.end(),
                     [](const Report& report) { return std::isfinite(report.loss); });
}

double mean_loss(const Trial& trial) {
  double sum = 0;
  for (const Report& report : trial.reports) sum += report.loss;
  return sum / static_cast<double>(trial.reports.size());
}

/// The loss differences of two trials at their common steps.
std::vector<double> differences(const Trial& trial, const Trial& other) {
  std::vector<double> differences;
  auto from = other.reports.begin();
  for (const Report& report : trial.reports) {
    while (from != other.reports.end() && from->step < report.step) ++from;
    if (from == other.reports.end()) break;
    if (from->step == report.step) differences.push_back(report.loss - from->loss);
  }
  return differences;
}

class Wilcoxon final : public Pruner {
 public:
  explicit Wilcoxon(const WilcoxonConfig& config) : config_(config) {}

  bool should_stop(const Study& study, const Trial& trial) override {
    const auto number = study.best();
    if (!number || trial.reports.empty()) return false;
    const Trial& best = study.trials()[static_cast<size_t>(*number)];
    if (best.reports.empty() || !has_only_finite(trial) || !has_only_finite(best)) return false;
    auto differences = tune::differences(trial, best);
    const auto least = std::max(kLeastSteps, static_cast<size_t>(config_.startup_steps));
    if (differences.size() < least || mean_loss(best) >= mean_loss(trial)) return false;
    return signed_rank_p(std::move(differences)) < config_.p_threshold;
  }

 private:
  WilcoxonConfig config_;
};

}  // namespace

void visit(config::Visitor& visitor, WilcoxonConfig& config) {
  visitor.field({.name = "p_threshold",
                 .help = "p-value below which a trial is pruned as worse than the best",
                 .min = 0,
                 .max = 1},
                config.p_threshold);
  visitor.field(
      {.name = "startup_steps", .help = "reports to compare before pruning starts", .min = 0},
      config.startup_steps);
}

std::unique_ptr<Pruner> make_wilcoxon(const WilcoxonConfig& config, const StudySettings& settings) {
  check_one_objective(settings, "pruner wilcoxon");
  return std::make_unique<Wilcoxon>(config);
}

}  // namespace gallop::tune
