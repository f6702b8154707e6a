#include "gallop/tune/samplers/nsga2.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "gallop/tune/pareto/pareto.h"
#include "gallop/tune/samplers/generations.h"

namespace gallop::tune {

namespace {

constexpr int kDraws = 100;             // Rejections before a random point is used.
constexpr double kBlend = 0.5;          // BLX-alpha.
constexpr double kManyObjectives = 20;  // SBX eta with several objectives,
constexpr double kOneObjective = 2;     // and with one objective.

struct Individual {
  Point point;
  std::vector<double> losses;
  double violation;
};

bool beats(const Individual& a, const Individual& b) {
  if (a.violation > 0 || b.violation > 0) return a.violation < b.violation;
  return dominates(a.losses, b.losses);
}

/// Environmental selection: the best by rank, and the least crowded of the last rank that fits.
std::vector<Individual> selected(const std::vector<Individual>& all, size_t count) {
  LossRows losses;
  std::vector<double> violations;
  for (const Individual& individual : all) {
    losses.push_back(individual.losses);
    violations.push_back(individual.violation);
  }
  std::vector<Individual> best;
  for (const auto& front : fronts_of(domination_ranks(losses, violations))) {
    if (best.size() == count) break;
    LossRows rows;
    for (const size_t index : front) rows.push_back(losses[index]);
    const std::vector<double> distances = crowding_distances(rows);
    std::vector<size_t> order(front.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return distances[a] > distances[b]; });
    order.resize(std::min(order.size(), count - best.size()));
    for (const size_t place : order) best.push_back(all[front[place]]);
  }
  return best;
}

/// Simulated binary crossover of two coordinates within a range; `closeness` is its distribution
/// index (eta).
double simulated_binary(double a, double b, const Range& range, double closeness, Random& random) {
  if (random.uniform() < 0.5) return random.uniform() < 0.5 ? a : b;
  const auto [low, high] = std::minmax(a, b);
  const double gap = std::max(high - low, 1e-10);
  const double power = closeness + 1, share = random.uniform();
  const auto spread = [&](double room) {  // `room`: distance to the end of the range.
    const double scaled = share * (2 - std::pow(1 + 2 * room / gap, -power));
    return std::pow(scaled <= 1 ? scaled : 1 / (2 - scaled), 1 / power);
  };
  const double middle = (low + high) / 2;
  return random.uniform() < 0.5 ? middle - spread(low - range.low) * gap / 2
                                : middle + spread(range.high - high) * gap / 2;
}

double blended(double a, double b, const Range& range, Random& random) {
  const auto [low, high] = std::minmax(a, b);
  const double margin = kBlend * (high - low);
  return random.uniform(std::max(low - margin, range.low), std::min(high + margin, range.high));
}

/// The sequence of generations, replayed from the study's trials.
class Evolution {
 public:
  explicit Evolution(const Nsga2Config& config) : config_(config), generations_(/*pruned=*/false) {}

  /// False if the replay must start over because a trial that it used has changed.
  bool follow(const Study& study);
  Point propose(const Study& study, int64_t number) const;

 private:
  size_t population() const { return static_cast<size_t>(config_.population); }
  size_t parent(Random& random, std::optional<size_t> other) const;
  double inherited(const Study& study, size_t index, const Point& first, const Point& second,
                   Random& random) const;
  Point child(const Study& study, Random& random) const;
  bool is_known(const Study& study, const Point& point) const;

  Nsga2Config config_;
  Generations generations_;
  std::vector<Individual> parents_;  // Parents of the current generation.
  std::vector<Individual> members_;  // Members of the current generation, so far.
};

bool Evolution::follow(const Study& study) {
  if (!generations_.is_valid(study)) return false;
  while (const Trial* const trial = generations_.next(study)) {
    members_.push_back({trial->point, trial->losses, total_violation(*trial)});
    if (members_.size() < population()) continue;
    std::move(parents_.begin(), parents_.end(), std::back_inserter(members_));
    parents_ = selected(members_, population());
    members_.clear();
    generations_.begin_next();
  }
  return true;
}

/// Binary tournament: the index of the better of two random parents, different from `other`.
size_t Evolution::parent(Random& random, std::optional<size_t> other) const {
  const auto drawn = [&] {
    const size_t index = random.below(parents_.size() - (other ? 1 : 0));
    return other && index >= *other ? index + 1 : index;
  };
  const size_t first = drawn(), second = drawn();
  return beats(parents_[first], parents_[second]) ? first : second;
}

double Evolution::inherited(const Study& study, size_t index, const Point& first,
                            const Point& second, Random& random) const {
  const Parameter& parameter = study.space()[index];
  const double a = first[index], b = second[index];
  if (std::isnan(a) && std::isnan(b)) return random_value(parameter, random);
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? b : a;
  const Interval* const interval = parameter.interval();
  if (interval == nullptr || config_.crossover == "uniform" || a == b) {
    return random.uniform() < config_.swap_probability ? b : a;
  }
  const Range range = coordinates(*interval);
  const double x = coordinate(*interval, a), y = coordinate(*interval, b);
  const double closeness = study.objectives() > 1 ? kManyObjectives : kOneObjective;
  return value_at(*interval, config_.crossover == "blx"
                                 ? blended(x, y, range, random)
                                 : simulated_binary(x, y, range, closeness, random));
}

Point Evolution::child(const Study& study, Random& random) const {
  const Space& space = study.space();
  const size_t first = parent(random, {});
  const bool is_crossed = random.uniform() < config_.crossover_probability;
  const size_t second = is_crossed ? parent(random, first) : first;
  const Point& one = parents_[first].point;
  const Point& other = parents_[second].point;
  const auto active =
      std::count_if(one.begin(), one.end(), [](double x) { return !std::isnan(x); });
  const double mutation = config_.mutation_probability.value_or(1 / static_cast<double>(active));
  Point point(space.size(), kInactive);
  for (size_t i = 0; i < space.size(); ++i) {
    if (!space.is_active(point, i)) continue;
    point[i] = random.uniform() < mutation ? random_value(space[i], random)
                                           : inherited(study, i, one, other, random);
  }
  return point;
}

bool Evolution::is_known(const Study& study, const Point& point) const {
  const auto has_it = [&](const Individual& individual) {
    return is_same_point(individual.point, point);
  };
  const auto is_at_it = [&](int64_t number) {
    return is_same_point(study.trials()[static_cast<size_t>(number)].point, point);
  };
  return std::any_of(parents_.begin(), parents_.end(), has_it) ||
         std::any_of(members_.begin(), members_.end(), has_it) ||
         std::any_of(study.running().begin(), study.running().end(), is_at_it) ||
         std::any_of(study.waiting().begin(), study.waiting().end(), is_at_it);
}

Point Evolution::propose(const Study& study, int64_t number) const {
  Random random(study.seed(), number);
  for (int draw = 0; !parents_.empty() && draw < kDraws; ++draw) {
    Point point = child(study, random);
    if (study.space().allows(point) && !is_known(study, point)) return point;
  }
  return random_point(study.space(), random);
}

class Nsga2Sampler final : public Sampler {
 public:
  explicit Nsga2Sampler(const Nsga2Config& config) : config_(config), evolution_(config) {}

  std::optional<Proposal> ask(const Study& study, int64_t number) override {
    if (!evolution_.follow(study)) {
      evolution_ = Evolution(config_);
      evolution_.follow(study);
    }
    return Proposal{.point = evolution_.propose(study, number)};
  }

 private:
  Nsga2Config config_;
  Evolution evolution_;
};

}  // namespace

void visit(config::Visitor& visitor, Nsga2Config& config) {
  visitor.field({.name = "population", .help = "population size", .min = 2}, config.population);
  visitor.field(
      {.name = "crossover", .help = "crossover operator", .choices = {"uniform", "blx", "sbx"}},
      config.crossover);
  visitor.field(
      {.name = "crossover_probability", .help = "crossover probability", .min = 0, .max = 1},
      config.crossover_probability);
  visitor.field({.name = "swap_probability",
                 .help = "probability of taking a parameter from the second parent",
                 .min = 0,
                 .max = 1},
                config.swap_probability);
  visitor.field({.name = "mutation_probability",
                 .help = "mutation probability per parameter; none: 1 / number of parameters",
                 .min = 0,
                 .max = 1},
                config.mutation_probability);
}

std::unique_ptr<Sampler> make_nsga2(const Nsga2Config& config, const StudySettings& /*settings*/) {
  return std::make_unique<Nsga2Sampler>(config);
}

}  // namespace gallop::tune
