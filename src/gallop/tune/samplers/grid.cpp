#include "gallop/tune/samplers/grid.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_set>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/permutation.h"
#include "gallop/base/text.h"

namespace gallop::tune {

namespace {

constexpr double kMostPoints = 1e15;
constexpr int64_t kMostValues = 1'000'000;     // Values of one parameter; they are stored.
constexpr int64_t kMostForbidden = 2'000'000;  // In a row; avoids scanning a huge grid.

std::vector<double> values_of(const Choices& choices) {
  std::vector<double> values;
  for (size_t i = 0; i < choices.values.size(); ++i) {
    if (choices.weights.empty() || choices.weights[i] > 0) values.push_back(static_cast<double>(i));
  }
  return values;
}

// Removes rounding noise: 0.3 instead of 0.30000000000000004, which is a sum, and on other scales
// 0.001 instead of 0.0010000000000000009, whose logarithm has been rounded, too.
double without_noise(const Interval& interval, double value) {
  const int digits = interval.scale == Scale::kLinear ? 15 : 12;
  const double rounded = parse_number<double>(fmt::format("{:.{}g}", value, digits)).value();
  return std::clamp(rounded, interval.low, interval.high);
}

// One of `size` values of an interval, evenly spaced on its scale from bound to bound.
double value_between(const Interval& interval, int64_t index, int64_t size) {
  if (index == 0) return interval.low;
  if (index == size - 1) return interval.high;
  const auto [low, high] = coordinates(interval);
  const double share = static_cast<double>(index) / static_cast<double>(size - 1);
  return without_noise(interval, value_at(interval, low + share * (high - low)));
}

std::vector<double> values_of(const std::string& name, const Interval& interval,
                              const std::optional<int64_t>& points) {
  const bool is_counted = count(interval) > 0;
  const int64_t size = is_counted ? count(interval) : *points;
  if (size > kMostValues) {
    throw UsageError(fmt::format("the grid has {} values of {}; at most {} are supported", size,
                                 printable(name), kMostValues));
  }
  std::vector<double> values;
  for (int64_t i = 0; i < size; ++i) {
    values.push_back(is_counted ? value_on_grid(interval, static_cast<double>(i))
                                : value_between(interval, i, size));
  }
  return values;
}

/// The combinations of a space's values, by index. A parameter and those conditional on it form a
/// tree; the last parameters vary fastest.
class Combinations {
 public:
  Combinations(const Space& space, const GridConfig& config)
      : values_(space.size()), children_(space.size()), counts_(space.size()), ends_(space.size()) {
    std::string without_end;
    for (size_t i = 0; i < space.size(); ++i) {
      const Interval* const interval = space[i].interval();
      if (interval != nullptr && count(*interval) == 0 && !config.points) {
        without_end += (without_end.empty() ? "" : ", ") + space[i].name;
        continue;
      }
      values_[i] = interval == nullptr ? values_of(*space[i].choices())
                                       : values_of(space[i].name, *interval, config.points);
    }
    if (!without_end.empty()) {
      throw UsageError("a grid needs a step, or a number of points, for " + without_end);
    }
    for (size_t i = space.size(); i-- > 0;) count_values(space, i);
    if (!(product(roots_) <= kMostPoints)) {
      throw UsageError(fmt::format("the grid has {:.3g} points", product(roots_)));
    }
  }

  int64_t size() const { return static_cast<int64_t>(product(roots_)); }

  Point at(int64_t index) const {
    Point point(values_.size(), kInactive);
    decide(roots_, index, point);
    return point;
  }

 private:
  using Parameters = std::vector<size_t>;

  /// Later parameters have been counted already. Children are in ascending order.
  void count_values(const Space& space, size_t parameter) {
    children_[parameter].resize(values_[parameter].size());
    for (size_t child = parameter + 1; child < space.size(); ++child) {
      const auto& condition = space[child].condition;
      if (!condition || condition->parent != parameter) continue;
      for (size_t i = 0; i < values_[parameter].size(); ++i) {
        const auto value = static_cast<size_t>(values_[parameter][i]);
        const auto& choices = condition->choices;
        if (std::find(choices.begin(), choices.end(), value) != choices.end()) {
          children_[parameter][i].push_back(child);
        }
      }
    }
    for (const Parameters& children : children_[parameter]) {
      counts_[parameter] += product(children);
      ends_[parameter].push_back(counts_[parameter]);
    }
    if (!space[parameter].condition) roots_.insert(roots_.begin(), parameter);
  }

  /// The number of combinations of these independent parameters.
  double product(const Parameters& parameters) const {
    double all = 1;
    for (const size_t parameter : parameters) all *= counts_[parameter];
    return all;
  }

  void decide(const Parameters& parameters, int64_t index, Point& point) const {
    for (size_t i = parameters.size(); i-- > 0;) {
      const auto count = static_cast<int64_t>(counts_[parameters[i]]);
      decide(parameters[i], index % count, point);
      index /= count;
    }
  }

  void decide(size_t parameter, int64_t index, Point& point) const {
    const auto& ends = ends_[parameter];
    const auto value = static_cast<size_t>(
        std::upper_bound(ends.begin(), ends.end(), static_cast<double>(index)) - ends.begin());
    point[parameter] = values_[parameter][value];
    const double begin = value == 0 ? 0 : ends[value - 1];
    decide(children_[parameter][value], index - static_cast<int64_t>(begin), point);
  }

  std::vector<std::vector<double>> values_;
  std::vector<std::vector<Parameters>> children_;  // By parameter and value.
  std::vector<double> counts_;                     // Number of combinations by parameter.
  std::vector<std::vector<double>> ends_;          // Cumulative counts by parameter and value.
  Parameters roots_;
};

class GridSampler final : public Sampler {
 public:
  GridSampler(const GridConfig& config, const StudySettings& settings)
      : combinations_(settings.space, config),
        order_(settings.seed, 0, combinations_.size()),
        shuffle_(config.shuffle) {}

  std::optional<Proposal> ask(const Study& study, int64_t /*number*/) override {
    auto point = next(study);
    if (point) return Proposal{.point = std::move(*point)};
    if (!gives_up_) return std::nullopt;
    throw UsageError(
        fmt::format("sampler grid: the constraints reject {1} of {0:.3g} points in a row; make "
                    "the grid smaller, or search with another sampler",
                    static_cast<double>(combinations_.size()), format_count(kMostForbidden)));
  }

  bool is_exhausted(const Study& study) const override { return !next(study) && !gives_up_; }

 private:
  static std::string key(const Space& space, const Point& point) {
    std::string bytes;
    for (size_t i = 0; i < point.size(); ++i) {
      double known = std::isnan(point[i]) ? kInactive : point[i];
      // Event logs of earlier versions contain unrounded sums.
      const Interval* const interval = space[i].interval();
      if (interval != nullptr && !std::isnan(known)) {
        known =
            interval->step > 0 ? nearest_value(*interval, known) : without_noise(*interval, known);
      }
      bytes.append(reinterpret_cast<const char*>(&known), sizeof known);
    }
    return bytes;
  }

  std::optional<Point> next(const Study& study) const {
    if (&study != study_ || study.trials().size() < seen_) {
      tried_.clear();
      seen_ = 0;
      place_ = 0;
      forbidden_ = 0;
      gives_up_ = false;
      study_ = &study;
    }
    const Space& space = study.space();
    for (; seen_ < study.trials().size(); ++seen_) {
      tried_.insert(key(space, study.trials()[seen_].point));
    }
    for (; place_ < combinations_.size() && !gives_up_; ++place_) {
      Point point = combinations_.at(shuffle_ ? order_(place_) : place_);
      const bool is_allowed = space.allows(point);
      if (is_allowed && !tried_.contains(key(space, point))) return point;
      forbidden_ = is_allowed ? 0 : forbidden_ + 1;
      gives_up_ = forbidden_ > kMostForbidden;
    }
    return std::nullopt;
  }

  const Combinations combinations_;
  const Permutation order_;
  const bool shuffle_;
  // The scanned study, and the index up to which all points are tried or rejected.
  mutable const Study* study_ = nullptr;
  mutable size_t seen_ = 0;
  mutable int64_t place_ = 0;
  mutable int64_t forbidden_ = 0;  // Number of rejections in a row before it.
  mutable bool gives_up_ = false;
  mutable std::unordered_set<std::string> tried_;
};

}  // namespace

void visit(config::Visitor& visitor, GridConfig& config) {
  visitor.field({.name = "points",
                 .help = "grid points of a continuous interval, evenly spaced on its scale",
                 .min = 2},
                config.points);
  visitor.field({.name = "shuffle", .help = "shuffle the grid by the study's seed"},
                config.shuffle);
}

int64_t grid_size(const Space& space, const GridConfig& config) {
  return Combinations(space, config).size();
}

std::unique_ptr<Sampler> make_grid(const GridConfig& config, const StudySettings& settings) {
  return std::make_unique<GridSampler>(config, settings);
}

}  // namespace gallop::tune
