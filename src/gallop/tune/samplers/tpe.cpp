#include "gallop/tune/samplers/tpe.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "gallop/tune/samplers/parzen.h"
#include "gallop/tune/samplers/quasi_random.h"
#include "gallop/tune/samplers/random.h"
#include "gallop/tune/samplers/sobol.h"
#include "gallop/tune/samplers/tpe_history.h"

namespace gallop::tune {

namespace {

constexpr int kRounds = 100;

/// The value of a parameter that has only one.
std::optional<double> only_value(const Parameter& parameter) {
  if (const Interval* const interval = parameter.interval()) {
    return count(*interval) == 1 ? std::optional(interval->low) : std::nullopt;
  }
  return parameter.choices()->values.size() == 1 ? std::optional(0.0) : std::nullopt;
}

/// Parameters that are sampled jointly: those with the same condition (or none), or a single one.
using Group = std::vector<size_t>;

bool same_condition(const Parameter& a, const Parameter& b) {
  if (!a.condition || !b.condition) return !a.condition && !b.condition;
  return a.condition->parent == b.condition->parent && a.condition->choices == b.condition->choices;
}

/// Groups of the chosen parameters, ordered so that conditions are decided first.
std::vector<Group> groups_of(const Space& space, const std::string& densities,
                             const std::vector<bool>& chosen) {
  std::vector<Group> groups;
  const auto is_alone = [&](const Parameter& parameter) {
    if (only_value(parameter) || densities == "independent") return true;
    return parameter.condition && (densities == "joint" || parameter.choices());
  };
  for (size_t i = 0; i < space.size(); ++i) {
    if (!chosen[i]) continue;
    const auto fits = [&](const Group& group) {
      return !is_alone(space[i]) && !is_alone(space[group[0]]) &&
             same_condition(space[i], space[group[0]]);
    };
    const auto found = std::find_if(groups.begin(), groups.end(), fits);
    if (found == groups.end()) {
      groups.push_back({i});
    } else {
      found->push_back(i);
    }
  }
  const auto parent = [&](const Group& group) {
    const auto& condition = space[group[0]].condition;
    return condition ? static_cast<int64_t>(condition->parent) : -1;
  };
  std::stable_sort(groups.begin(), groups.end(),
                   [&](const Group& a, const Group& b) { return parent(a) < parent(b); });
  return groups;
}

/// The choices that decide whether a parameter is active, if more than one of them activates it.
std::vector<size_t> context_of(const Space& space, size_t parameter) {
  std::vector<size_t> context;
  const auto* condition = &space[parameter].condition;
  while (*condition) {
    if ((*condition)->choices.size() > 1) context.push_back((*condition)->parent);
    condition = &space[(*condition)->parent].condition;
  }
  return context;
}

/// The densities of one group: of the good trials and of the rest.
struct Densities {
  ParzenEstimator good, rest;

  /// Conditional parameters with one objective use the choices as context.
  Densities(const Space& space, const Group& group, size_t objectives)
      : good(space, group,
             objectives > 1 ? ParzenEstimator::Weights::kEqual : ParzenEstimator::Weights::kFading,
             context(space, group, objectives)),
        rest(space, group, ParzenEstimator::Weights::kFading, context(space, group, objectives)) {}

  void move(const TpeHistory::Move& move, const Point& point) {
    if (std::isnan(point[good.parameters()[0]])) return;
    if (ParzenEstimator* const from = of(move.from)) from->erase(move.trial);
    if (ParzenEstimator* const to = of(move.to)) to->insert(move.trial, point);
  }

 private:
  static std::vector<size_t> context(const Space& space, const Group& group, size_t objectives) {
    return objectives > 1 ? std::vector<size_t>{} : context_of(space, group[0]);
  }

  ParzenEstimator* of(TpeHistory::Side side) {
    using Side = TpeHistory::Side;
    return side == Side::kGood ? &good : side == Side::kRest ? &rest : nullptr;
  }
};

/// The trials in which some conditional parameters are active. The best tenth of them is good for
/// these parameters, so that even a branch that is not the best one is modeled well enough for
/// comparison.
struct Branch {
  size_t parameter;  // One of them.
  TpeHistory history;
};

/// The observed trials, ranked, with the densities of all groups.
class Known {
 public:
  Known(const Space& space, const std::vector<Group>& groups, size_t objectives, bool count_running)
      : history_(objectives, count_running) {
    for (const Group& group : groups) {
      densities_.emplace_back();
      branch_of_.emplace_back();
      if (only_value(space[group[0]])) continue;
      densities_.back().emplace(space, group, objectives);
      if (objectives > 1 || !space[group[0]].condition) continue;
      const auto found =
          std::find_if(branches_.begin(), branches_.end(), [&](const Branch& branch) {
            return same_condition(space[branch.parameter], space[group[0]]);
          });
      branch_of_.back() = static_cast<size_t>(found - branches_.begin());
      if (found == branches_.end()) {
        branches_.push_back({group[0], TpeHistory(objectives, count_running)});
      }
    }
  }

  size_t finished() const { return history_.finished(); }
  /// Null for a group with only one value.
  std::optional<Densities>& densities(size_t group) { return densities_[group]; }

  /// Registers a trial that has changed since the last update.
  void change(const Trial& trial) {
    history_.change(trial.number);
    for (Branch& branch : branches_) {
      if (!std::isnan(trial.point[branch.parameter])) branch.history.change(trial.number);
    }
  }

  void update(const Study& study) {
    move(study, history_.update(study), std::nullopt);
    for (size_t i = 0; i < branches_.size(); ++i) {
      move(study, branches_[i].history.update(study, history_.good()), i);
    }
  }

 private:
  void move(const Study& study, const std::vector<TpeHistory::Move>& moves,
            std::optional<size_t> branch) {
    for (const TpeHistory::Move& move : moves) {
      for (size_t group = 0; group < densities_.size(); ++group) {
        if (!densities_[group] || branch_of_[group] != branch) continue;
        densities_[group]->move(move, study.trials()[static_cast<size_t>(move.trial)].point);
      }
    }
  }

  TpeHistory history_;
  std::vector<Branch> branches_;
  std::vector<std::optional<Densities>> densities_;  // By group.
  std::vector<std::optional<size_t>> branch_of_;  // By group; none for groups that all trials have.
};

}  // namespace

class TpeChoice::Impl {
 public:
  Impl(const TpeConfig& config, const StudySettings& settings, const std::vector<bool>& chosen)
      : config_(config),
        objectives_(settings.objectives.size()),
        groups_(groups_of(settings.space, densities_of(config, settings), chosen)) {}

  std::optional<Point> choose(const Study& study, Point point, Random& random) {
    look_at(study);
    known_->update(study);
    if (known_->finished() < static_cast<size_t>(config_.startup)) return std::nullopt;
    return best_candidate(study.space(), std::move(point), *known_, random);
  }

 private:
  static std::string densities_of(const TpeConfig& config, const StudySettings& settings) {
    if (config.densities != "auto") return config.densities;
    return settings.objectives.size() > 1 ? "independent" : "grouped";
  }

  // Registers the trials that have changed since the last call.
  void look_at(const Study& study) {
    if (&study != study_ || study.finished().size() < seen_) {
      known_.emplace(study.space(), groups_, objectives_, config_.count_running);
      open_.clear();
      seen_ = 0;
      study_ = &study;
    }
    std::set<int64_t> changed = open_;
    changed.insert(study.finished().begin() + static_cast<ptrdiff_t>(seen_),
                   study.finished().end());
    seen_ = study.finished().size();
    open_ = study.running();
    open_.insert(study.waiting().begin(), study.waiting().end());
    changed.insert(open_.begin(), open_.end());
    for (const int64_t trial : changed) {
      known_->change(study.trials()[static_cast<size_t>(trial)]);
    }
  }

  // Samples one group after the other; nothing if no candidate is allowed.
  std::optional<Point> best_candidate(const Space& space, Point point, Known& known,
                                      Random& random) const {
    for (const Group& group : groups_) {
      for (const size_t parameter : group) point[parameter] = kInactive;
    }
    for (size_t i = 0; i < groups_.size(); ++i) {
      const size_t first = groups_[i][0];
      if (!space.is_active(point, first)) continue;
      auto& densities = known.densities(i);
      if (!densities) {
        point[first] = *only_value(space[first]);
        continue;
      }
      densities->good.set_narrowing(narrowing(space[first]));
      densities->good.set_context(point);
      densities->rest.set_context(point);
      if (!decide(space, *densities, random, point)) return std::nullopt;
    }
    if (!space.allows(point)) return std::nullopt;
    return point;
  }

  // The narrowing factor for the group of this parameter.
  double narrowing(const Parameter& parameter) const {
    if (objectives_ > 1 || parameter.condition) return 1;
    return 1 + (config_.narrowing - 1) / static_cast<double>(1 + open_.size());
  }

  // Constraints on parameters that are not decided yet are treated as satisfied.
  bool decide(const Space& space, Densities& densities, Random& random, Point& point) const {
    std::vector<Point> candidates;
    for (int round = 0; round < kRounds && candidates.empty(); ++round) {
      for (int64_t i = 0; i < config_.candidates; ++i) {
        densities.good.draw(random, point);
        if (space.allows(point)) candidates.push_back(point);
      }
    }
    if (candidates.empty()) return false;
    const std::vector<double> good = densities.good.log_densities(candidates);
    const std::vector<double> rest = densities.rest.log_densities(candidates);
    size_t best = 0;
    for (size_t i = 1; i < candidates.size(); ++i) {
      if (good[i] - rest[i] > good[best] - rest[best]) best = i;
    }
    point = candidates[best];
    return true;
  }

  const TpeConfig config_;
  const size_t objectives_;
  const std::vector<Group> groups_;
  std::optional<Known> known_;
  // The observed part of the study.
  const Study* study_ = nullptr;
  size_t seen_ = 0;  // Number of its finished trials.
  std::set<int64_t> open_;
};

TpeChoice::TpeChoice(const TpeConfig& config, const StudySettings& settings,
                     const std::vector<bool>& chosen)
    : impl_(std::make_unique<Impl>(config, settings, chosen)) {}

TpeChoice::~TpeChoice() = default;

std::optional<Point> TpeChoice::choose(const Study& study, Point point, Random& random) {
  return impl_->choose(study, std::move(point), random);
}

namespace {

class TpeSampler final : public Sampler {
 public:
  TpeSampler(const TpeConfig& config, const StudySettings& settings)
      : choice_(config, settings, std::vector<bool>(settings.space.size(), true)),
        others_(starts_evenly(settings) ? make_quasi_random({}, settings)
                                        : make_random({}, settings)) {}

  std::optional<Proposal> ask(const Study& study, int64_t number) override {
    Random random(study.seed(), number);
    auto point = choice_.choose(study, Point(study.space().size(), kInactive), random);
    return point ? Proposal{.point = *std::move(point)} : others_->ask(study, number);
  }

 private:
  static bool starts_evenly(const StudySettings& settings) {
    return settings.objectives.size() == 1 && settings.space.size() <= Sobol::kMostDimensions;
  }

  TpeChoice choice_;
  std::unique_ptr<Sampler> others_;  // For points that the densities cannot provide.
};

}  // namespace

void visit(config::Visitor& visitor, TpeConfig& config) {
  visitor.field({.name = "startup",
                 .help = "finished trials before TPE starts; until then points are quasi-random, "
                         "or random with several objectives",
                 .min = 1},
                config.startup);
  visitor.field({.name = "candidates", .help = "candidates per trial", .min = 1},
                config.candidates);
  visitor.field({.name = "narrowing",
                 .help = "bandwidth factor of the good trials' density if no other trial runs, "
                         "with one objective; 1: as Optuna's",
                 .min = 1,
                 .max = 100},
                config.narrowing);
  visitor.field({.name = "densities",
                 .help = "density estimators: independent (one per parameter, univariate), joint "
                         "(multivariate), or grouped (one per group of conditional parameters); "
                         "auto: grouped, or independent with several objectives",
                 .choices = {"auto", "grouped", "joint", "independent"}},
                config.densities);
  visitor.field(
      {.name = "count_running", .help = "count running trials as bad ones (constant liar)"},
      config.count_running);
}

std::unique_ptr<Sampler> make_tpe(const TpeConfig& config, const StudySettings& settings) {
  return std::make_unique<TpeSampler>(config, settings);
}

}  // namespace gallop::tune
