#include "gallop/tune/samplers/cma_es.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "gallop/base/error.h"
#include "gallop/tune/cma/distribution.h"
#include "gallop/tune/cma/margin.h"
#include "gallop/tune/pareto/pareto.h"
#include "gallop/tune/samplers/generations.h"
#include "gallop/tune/samplers/tpe.h"

namespace gallop::tune {

namespace {

using Vector = std::vector<double>;

// Random streams besides those of points.
constexpr uint32_t kRestart = 1, kOthers = 2;
constexpr int kDraws = 100;          // Rejections before a uniform point is used.
constexpr size_t kDrawsInside = 10;  // Per dimension, before a point is clamped.

/// A dimension of the search: a parameter with coordinates from 0 to 1.
class Axis {
 public:
  Axis(size_t parameter, const Interval& interval)
      : parameter_(parameter), interval_(&interval), range_(coordinates(interval)) {}

  size_t parameter() const { return parameter_; }
  bool is_stepped() const { return interval_->step > 0; }
  double position(double value) const { return share(coordinate(*interval_, value)); }
  double value(double position) const {
    const double inside = std::clamp(position, 0.0, 1.0);
    return value_at(*interval_, range_.low + inside * (range_.high - range_.low));
  }
  /// As for CmaMargin::Limits.
  Range limits(double position) const {
    const Range found = cell(*interval_, value(position));
    const double low = share(found.low), high = share(found.high);
    constexpr double kEnd = 1e-9;
    if (low < kEnd) return {high, high};
    return {low, high > 1 - kEnd ? low : high};
  }

 private:
  double share(double coordinate) const {
    return (coordinate - range_.low) / (range_.high - range_.low);
  }

  size_t parameter_;
  const Interval* interval_;
  Range range_;
};

std::vector<Axis> axes_of(const Space& space) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < space.size(); ++i) {
    const Interval* const interval = space[i].interval();
    if (interval == nullptr || space[i].condition || count(*interval) == 1) continue;
    axes.emplace_back(i, *interval);
  }
  return axes;
}

/// The sequence of searches (restarts), replayed from the study's trials.
class Search {
 public:
  Search(const CmaEsConfig& config, const Study& study, const std::vector<Axis>& axes)
      : config_(config),
        seed_(study.seed()),
        axes_(&axes),
        generations_(config.pruned),
        population_(config.population > 0 ? static_cast<size_t>(config.population)
                                          : CmaDistribution::default_population(axes.size())),
        margin_({}) {
    if (config.startup == 0) begin(Vector(axes.size(), 0.5));
  }

  /// False if the replay must start over because a trial that it used has changed.
  bool follow(const Study& study);
  Point propose(const Study& study, int64_t number) const { return draw(study, number).point; }

 private:
  struct Draw {
    Point point;
    // In the distribution's coordinates; nothing for uniform points.
    std::optional<Vector> position{};
  };

  void begin(Vector mean);
  void restart(int64_t number);
  void start_distribution(Vector mean, double deviation, size_t population);
  void take_startup(const Trial& trial);
  void take(const Study& study, const Trial& trial);
  void end_generation(int64_t number);
  bool is_inside(const Vector& position) const;
  Vector draw_position(Random& random) const;
  Draw draw(const Study& study, int64_t number) const;
  Vector position_of(const Trial& trial) const;
  Vector reported_position(const Study& study, const Trial& trial) const;

  struct Solution {
    double violation, loss;
    Vector position;
    bool operator<(const Solution& other) const {
      return std::pair(violation, loss) < std::pair(other.violation, other.loss);
    }
  };

  CmaEsConfig config_;
  uint64_t seed_;
  const std::vector<Axis>* axes_;
  Generations generations_;
  std::vector<Solution> solutions_;  // Solutions of the current generation.
  size_t population_;                // Population of the first search.
  std::optional<CmaDistribution> distribution_;
  CmaMargin margin_;
  size_t first_ = 0;  // First generation of this search.
  // BIPOP state: numbers of trials of the searches with large and small populations, and how often
  // the large population was doubled.
  bool is_large_ = true;
  size_t large_trials_ = 0, small_trials_ = 0;
  int doublings_ = 0;
};

void Search::start_distribution(Vector mean, double deviation, size_t population) {
  distribution_.emplace(CmaDistribution::Start{.mean = std::move(mean),
                                               .deviation = deviation,
                                               .population = population,
                                               .adapt_rates = config_.adapt_rates});
  std::vector<CmaMargin::Limits> limits;
  for (const Axis& axis : *axes_) {
    limits.emplace_back();
    if (axis.is_stepped()) limits.back() = [axis](double at) { return axis.limits(at); };
  }
  margin_ = CmaMargin(std::move(limits));
  first_ = generations_.current() + 1;
}

void Search::begin(Vector mean) {
  solutions_.clear();
  start_distribution(std::move(mean), config_.deviation, population_);
  generations_.begin_next();
}

bool Search::follow(const Study& study) {
  if (!generations_.is_valid(study)) return false;
  while (const Trial* const trial = generations_.next(study)) {
    if (distribution_) {
      // Late trials of earlier generations are used, but not those of earlier searches.
      if (generations_.generation_of(*trial) >= first_) take(study, *trial);
    } else {
      take_startup(*trial);
    }
  }
  return true;
}

void Search::take_startup(const Trial& trial) {
  solutions_.push_back({total_violation(trial), loss_of(trial), position_of(trial)});
  if (static_cast<int64_t>(solutions_.size()) < config_.startup) return;
  begin(std::min_element(solutions_.begin(), solutions_.end())->position);
}

void Search::take(const Study& study, const Trial& trial) {
  solutions_.push_back({total_violation(trial), loss_of(trial), reported_position(study, trial)});
  if (solutions_.size() == distribution_->population()) end_generation(trial.number);
}

void Search::end_generation(int64_t number) {
  std::stable_sort(solutions_.begin(), solutions_.end());
  (is_large_ ? large_trials_ : small_trials_) += solutions_.size();
  if (!distribution_->has_converged()) {
    std::vector<CmaDistribution::Solution> evaluated;
    for (Solution& solution : solutions_) {
      evaluated.push_back({std::move(solution.position), solution.loss});
    }
    distribution_->tell(evaluated);
    margin_.correct(*distribution_);
  }
  solutions_.clear();
  if (config_.restarts != "none" && distribution_->has_converged()) restart(number);
  generations_.begin_next();
}

/// Starts a new search at a random point: with twice the population, or, in BIPOP, with a small
/// population and step size as long as those had fewer trials.
void Search::restart(int64_t number) {
  Random random(seed_, number, kRestart);
  Vector mean;
  for (size_t i = 0; i < axes_->size(); ++i) mean.push_back(random.uniform());
  is_large_ = config_.restarts == "ipop" || small_trials_ >= large_trials_;
  if (is_large_) ++doublings_;
  const auto first = static_cast<double>(population_);
  const double large = std::ldexp(first, doublings_);
  if (is_large_) {
    start_distribution(std::move(mean), config_.deviation, static_cast<size_t>(large));
    return;
  }
  const double exponent = random.uniform();
  const double small = first * std::pow(large / first / 2, exponent * exponent);
  const double deviation = config_.deviation * std::pow(10, -2 * random.uniform());
  start_distribution(std::move(mean), deviation, static_cast<size_t>(std::max(small, first)));
}

bool Search::is_inside(const Vector& position) const {
  for (size_t i = 0; i < position.size(); ++i) {
    if (!(*axes_)[i].is_stepped() && (position[i] < 0 || position[i] > 1)) return false;
  }
  return true;
}

Vector Search::draw_position(Random& random) const {
  Vector position;
  for (size_t draw = 0; draw < kDrawsInside * axes_->size(); ++draw) {
    position = distribution_->sample(random);
    if (is_inside(position)) return position;
  }
  for (size_t i = 0; i < position.size(); ++i) {
    if (!(*axes_)[i].is_stepped()) position[i] = std::clamp(position[i], 0.0, 1.0);
  }
  return position;
}

Search::Draw Search::draw(const Study& study, int64_t number) const {
  const Space& space = study.space();
  Random random(study.seed(), number);
  for (int draw = 0; distribution_ && draw < kDraws; ++draw) {
    Vector position = draw_position(random);
    const Vector evaluated = margin_.widened(*distribution_, position);
    Point point(space.size(), kInactive);
    for (size_t i = 0; i < axes_->size(); ++i) {
      point[(*axes_)[i].parameter()] = (*axes_)[i].value(evaluated[i]);
    }
    for (size_t i = 0; i < space.size(); ++i) {
      if (std::isnan(point[i])) point[i] = random_value(space[i], random);
    }
    space.drop_inactive(point);
    if (space.allows(point)) return {std::move(point), std::move(position)};
  }
  return {random_point(space, random)};
}

Vector Search::position_of(const Trial& trial) const {
  Vector position;
  for (const Axis& axis : *axes_) position.push_back(axis.position(trial.point[axis.parameter()]));
  return position;
}

/// The position with which a trial updates the distribution. Trials from an earlier distribution,
/// and trials that were enqueued, are injected: clamped to a plausible distance from the mean.
Vector Search::reported_position(const Study& study, const Trial& trial) const {
  if (generations_.generation_of(trial) == generations_.current()) {
    Draw own = draw(study, trial.number);
    const auto is_same = [&](const Axis& axis) {
      return trial.point[axis.parameter()] == own.point[axis.parameter()];
    };
    if (own.position && std::all_of(axes_->begin(), axes_->end(), is_same)) {
      return *std::move(own.position);
    }
  }
  return distribution_->injected(position_of(trial));
}

class CmaEsSampler final : public Sampler {
 public:
  CmaEsSampler(const CmaEsConfig& config, const StudySettings& settings)
      : config_(config), space_(settings.space), axes_(axes_of(space_)) {
    if (config.independent == "random" || axes_.size() == space_.size()) return;
    std::vector<bool> chosen(space_.size(), true);
    for (const Axis& axis : axes_) chosen[axis.parameter()] = false;
    others_.emplace(TpeConfig{}, settings, chosen);
  }

  std::optional<Proposal> ask(const Study& study, int64_t number) override {
    if (!search_ || !search_->follow(study)) {
      search_.emplace(config_, study, axes_);
      search_->follow(study);
    }
    Point point = search_->propose(study, number);
    if (others_) {
      Random random(study.seed(), number, kOthers);
      if (auto chosen = others_->choose(study, point, random)) point = *std::move(chosen);
    }
    return Proposal{.point = std::move(point)};
  }

 private:
  CmaEsConfig config_;
  Space space_;
  std::vector<Axis> axes_;
  std::optional<Search> search_;
  std::optional<TpeChoice> others_;  // Null if others are random, or if there are none.
};

}  // namespace

void visit(config::Visitor& visitor, CmaEsConfig& config) {
  visitor.field({.name = "population",
                 .help = "population size; 0: 4 + 3 ln(number of parameters)",
                 .min = 0},
                config.population);
  visitor.field({.name = "startup",
                 .help = "random trials whose best is the initial mean; 0: the middle of the space",
                 .min = 0},
                config.startup);
  visitor.field({.name = "deviation",
                 .help = "initial standard deviation as a fraction of each interval",
                 .min = 0,
                 .max = 1,
                 .above_min = true},
                config.deviation);
  visitor.field({.name = "restarts",
                 .help = "restart strategy after convergence: a larger population (IPOP), larger "
                         "and smaller ones (BIPOP), or none",
                 .choices = {"ipop", "bipop", "none"}},
                config.restarts);
  visitor.field({.name = "independent",
                 .help = "sampler of categorical and conditional parameters",
                 .choices = {"tpe", "random"}},
                config.independent);
  visitor.field({.name = "adapt_rates",
                 .help = "adapt learning rates to the noise of the losses (LRA-CMA-ES)"},
                config.adapt_rates);
  visitor.field({.name = "pruned", .help = "use the last report of pruned trials"}, config.pruned);
}

std::unique_ptr<Sampler> make_cma_es(const CmaEsConfig& config, const StudySettings& settings) {
  if (settings.objectives.size() > 1) {
    throw UsageError("sampler cma-es: supports a single objective; use nsga2 for several");
  }
  if (config.population == 1) {
    throw UsageError("sampler cma-es: population is 1; it must be at least 2");
  }
  if (axes_of(settings.space).empty()) {
    throw UsageError("sampler cma-es: needs at least one unconditional numeric parameter");
  }
  return std::make_unique<CmaEsSampler>(config, settings);
}

}  // namespace gallop::tune
