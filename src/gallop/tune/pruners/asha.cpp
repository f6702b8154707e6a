#include "gallop/tune/pruners/asha.h"

#include <algorithm>
#include <cmath>

#include "gallop/base/error.h"
#include "gallop/tune/pruners/checks.h"
#include "gallop/tune/pruners/rungs.h"
#include "gallop/tune/pruners/successive_halving.h"

namespace gallop::tune {

namespace {

bool is_end(int64_t max_resource, int64_t step) { return max_resource > 0 && step >= max_resource; }

class Stopping final : public Pruner {
 public:
  explicit Stopping(const AshaConfig& config)
      : max_resource_(config.max_resource),
        percent_(100.0 / static_cast<double>(config.reduction_factor)),
        brackets_({Rungs(config.min_resource, config.reduction_factor)}) {}

  bool should_stop(const Study& study, const Trial& trial) override {
    if (trial.reports.empty()) return false;
    brackets_.follow(study);
    if (is_end(max_resource_, trial.reports.back().step)) return false;
    const Rungs& rungs = brackets_.of(trial);
    const size_t passed = rungs.passed(trial.number);
    if (std::isnan(trial.reports.back().loss)) {
      return trial.reports.back().step >= rungs.step(passed);
    }
    return rungs.first_of_last_report(trial) < passed && is_worse(rungs, trial, passed - 1);
  }

 private:
  bool is_worse(const Rungs& rungs, const Trial& trial, size_t rung) const {
    std::vector<double> others;
    for (const auto& [loss, number] : rungs.entries(rung)) {
      if (number != trial.number) others.push_back(loss);
    }
    return !others.empty() && trial.reports.back().loss > percentile(others, percent_);
  }

  int64_t max_resource_;
  double percent_;
  Brackets brackets_;
};

class Promotion final : public Pruner {
 public:
  explicit Promotion(const AshaConfig& config)
      : max_resource_(config.max_resource),
        factor_(static_cast<size_t>(config.reduction_factor)),
        rungs_(config.min_resource, config.reduction_factor) {}

  int64_t first_stop(const Study& /*study*/, int32_t /*bracket*/) const override {
    return stop_at(0);
  }

  bool should_stop(const Study& /*study*/, const Trial& trial) override {
    return has_arrived(trial);
  }

  std::optional<Pruner::Promotion> promote(const Study& study) override {
    follow(study);
    for (size_t rung = resting_.size(); rung-- > 0;) {
      if (resting_[rung].empty()) continue;
      const auto& entries = rungs_.entries(rung);
      const Rungs::Entry& best = *resting_[rung].begin();
      const auto place = std::lower_bound(entries.begin(), entries.end(), best) - entries.begin();
      if (static_cast<size_t>(place) < entries.size() / factor_) {
        return Pruner::Promotion{.trial = best.second, .last_step = stop_at(rung + 1)};
      }
    }
    return std::nullopt;
  }

 private:
  // 0 if trials are complete at the rung: they then run to their end.
  int64_t stop_at(size_t rung) const {
    const int64_t step = rungs_.step(rung);
    return is_end(max_resource_, step) ? 0 : step;
  }

  static bool has_arrived(const Trial& trial) {
    return trial.last_step > 0 && !trial.reports.empty() &&
           trial.reports.back().step >= trial.last_step;
  }

  void follow(const Study& study) {
    changes_.each(study, [&](const Trial& trial) {
      rungs_.follow(trial);
      wake(trial.number);
      rest(trial);
    });
  }

  void wake(int64_t trial) {
    const auto found = resting_at_.find(trial);
    if (found == resting_at_.end()) return;
    const auto& [rung, loss] = found->second;
    resting_[rung].erase({loss, trial});
    resting_at_.erase(found);
  }

  // A trial that reached its last step waits at the last rung that it passed. One that did not pass
  // the rung to which it was promoted, because its loss is NaN, waits at none.
  void rest(const Trial& trial) {
    const size_t passed = rungs_.passed(trial.number);
    if (passed == 0 || trial.state != TrialState::kPruned) return;
    if (!has_arrived(trial) || trial.last_step >= rungs_.step(passed)) return;
    const size_t rung = passed - 1;
    if (resting_.size() <= rung) resting_.resize(rung + 1);
    const double loss = rungs_.loss(trial.number, rung);
    resting_[rung].insert({loss, trial.number});
    resting_at_[trial.number] = {rung, loss};
  }

  struct Place {
    size_t rung;
    double loss;
  };

  int64_t max_resource_;
  size_t factor_;
  Rungs rungs_;
  TrialChanges changes_;
  std::vector<std::set<Rungs::Entry>> resting_;  // By rung.
  std::unordered_map<int64_t, Place> resting_at_;
};

}  // namespace

void visit(config::Visitor& visitor, AshaConfig& config) {
  visitor.field(
      {.name = "variant",
       .help = "stopping: end trials at rungs; promotion: pause them there until promoted",
       .choices = {"stopping", "promotion"}},
      config.variant);
  visitor.field(kMinResource, config.min_resource);
  visitor.field(
      {.name = "max_resource",
       .help = "report at which a trial is complete, so that it is not stopped; 0: unknown",
       .min = 0},
      config.max_resource);
  visitor.field(kReductionFactor, config.reduction_factor);
}

std::unique_ptr<Pruner> make_asha(const AshaConfig& config, const StudySettings& settings) {
  check_one_objective(settings, "pruner asha");
  if (config.max_resource > 0 && config.max_resource < config.min_resource) {
    throw UsageError("pruner asha: max_resource is below min_resource");
  }
  if (config.variant == "promotion") return std::make_unique<Promotion>(config);
  return std::make_unique<Stopping>(config);
}

}  // namespace gallop::tune
