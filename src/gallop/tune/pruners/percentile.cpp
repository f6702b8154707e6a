#include "gallop/tune/pruners/percentile.h"

#include <algorithm>
#include <cmath>

#include "gallop/tune/pruners/trial_changes.h"

namespace gallop::tune {

namespace {

/// The reports of complete trials at one step.
struct StepLosses {
  std::vector<double> sorted;  // NaN excluded.
  int64_t reports = 0;
};

/// The reports of the complete trials, by step.
class CompleteTrials {
 public:
  void follow(const Study& study) {
    bool is_stale = false;
    changes_.each(study, [&](const Trial& trial) { is_stale |= !take(trial); });
    if (!is_stale) return;
    // A complete trial was resumed: its reports were dropped, so start over.
    *this = CompleteTrials();
    changes_.each(study, [&](const Trial& trial) { take(trial); });
  }

  int64_t count() const { return static_cast<int64_t>(attempts_.size()); }

  const StepLosses* at(int64_t step) const {
    const auto found = steps_.find(step);
    return found == steps_.end() ? nullptr : &found->second;
  }

 private:
  // False if an earlier attempt of the trial is already included.
  bool take(const Trial& trial) {
    const bool is_complete = trial.state == TrialState::kComplete;
    const auto known = attempts_.find(trial.number);
    if (known != attempts_.end()) return is_complete && known->second == trial.attempt;
    if (!is_complete) return true;
    attempts_.emplace(trial.number, trial.attempt);
    for (const Report& report : trial.reports) {
      StepLosses& losses = steps_[report.step];
      ++losses.reports;
      if (std::isnan(report.loss)) continue;
      auto& sorted = losses.sorted;
      sorted.insert(std::upper_bound(sorted.begin(), sorted.end(), report.loss), report.loss);
    }
    return true;
  }

  TrialChanges changes_;
  std::unordered_map<int64_t, int32_t> attempts_;
  std::unordered_map<int64_t, StepLosses> steps_;
};

class Percentile final : public Pruner {
 public:
  explicit Percentile(const PercentileConfig& config) : config_(config) {}

  bool should_stop(const Study& study, const Trial& trial) override {
    complete_.follow(study);
    if (complete_.count() < std::max<int64_t>(config_.peers.startup_trials, 1)) return false;
    if (trial.reports.empty() || !is_due(config_.peers.times, trial)) return false;
    const double loss = smallest_.of(trial, trial.reports.size());
    if (std::isnan(loss)) return true;
    const StepLosses* const peers = complete_.at(trial.reports.back().step);
    if (peers == nullptr || peers->reports < config_.peers.min_trials || peers->sorted.empty()) {
      return false;
    }
    return loss > percentile(peers->sorted, config_.percentile);
  }

 private:
  PercentileConfig config_;
  CompleteTrials complete_;
  SmallestLosses smallest_;
};

void visit_peers(config::Visitor& visitor, PeersConfig& peers) {
  visitor.field(
      {.name = "startup_trials", .help = "complete trials before pruning starts", .min = 0},
      peers.startup_trials);
  visitor.field(
      {.name = "min_trials", .help = "complete trials that must have reported at a step", .min = 1},
      peers.min_trials);
  visit(visitor, peers.times);
}

}  // namespace

void visit(config::Visitor& visitor, PercentileConfig& config) {
  visitor.field(
      {.name = "percentile", .help = "percentage of trials that continue", .min = 0, .max = 100},
      config.percentile);
  visit_peers(visitor, config.peers);
}

void visit(config::Visitor& visitor, MedianConfig& config) { visit_peers(visitor, config.peers); }

std::unique_ptr<Pruner> make_percentile(const PercentileConfig& config,
                                        const StudySettings& settings) {
  check_one_objective(settings, "pruner percentile");
  return std::make_unique<Percentile>(config);
}

std::unique_ptr<Pruner> make_median(const MedianConfig& config, const StudySettings& settings) {
  check_one_objective(settings, "pruner median");
  return std::make_unique<Percentile>(PercentileConfig{.percentile = 50, .peers = config.peers});
}

}  // namespace gallop::tune
