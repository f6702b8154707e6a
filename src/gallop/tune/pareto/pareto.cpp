#include "gallop/tune/pareto/pareto.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "gallop/tune/pareto/greedy_selection.h"

namespace gallop::tune {

namespace {

using Row = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

LossRows without_nan(LossRows losses) {
  for (Row& row : losses) {
    for (double& loss : row) {
      if (std::isnan(loss)) loss = kInfinity;
    }
  }
  return losses;
}

std::vector<size_t> indices_of(size_t count) {
  std::vector<size_t> indices(count);
  std::iota(indices.begin(), indices.end(), size_t{0});
  return indices;
}

/// Indices in lexicographic order; equal rows keep their order. No row is dominated by a later one.
std::vector<size_t> lexicographic(const LossRows& losses) {
  std::vector<size_t> order = indices_of(losses.size());
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return losses[a] < losses[b]; });
  return order;
}

/// Whether a row is at most `other` in every objective. Neither contains NaN.
bool covers(const Row& row, const Row& other) {
  return std::equal(row.begin(), row.end(), other.begin(), std::less_equal<>());
}

/// Fronts for distinct rows that are added in lexicographic order. The first front in which no row
/// dominates the next row is found by binary search, as a dominated row is dominated in each
/// earlier front.
class Fronts {
 public:
  explicit Fronts(const LossRows& losses) : losses_(losses) {}

  int32_t add(size_t index) {
    size_t low = 0, high = fronts_.size();
    while (low < high) {
      const size_t middle = (low + high) / 2;
      if (dominates_some(fronts_[middle], losses_[index])) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    if (low == fronts_.size()) fronts_.emplace_back();
    fronts_[low].push_back(index);
    return static_cast<int32_t>(low);
  }

 private:
  bool dominates_some(const std::vector<size_t>& front, const Row& row) const {
    // With up to two objectives, the last row of a front has its smallest last loss.
    if (row.size() <= 2) return losses_[front.back()].back() <= row.back();
    return std::any_of(front.rbegin(), front.rend(),
                       [&](size_t index) { return covers(losses_[index], row); });
  }

  const LossRows& losses_;
  std::vector<std::vector<size_t>> fronts_;
};

std::vector<int32_t> ranks_of(const LossRows& losses) {
  std::vector<int32_t> ranks(losses.size());
  Fronts fronts(losses);
  const Row* last = nullptr;
  int32_t rank = 0;
  for (const size_t index : lexicographic(losses)) {
    if (last == nullptr || *last != losses[index]) rank = fronts.add(index);
    ranks[index] = rank;
    last = &losses[index];
  }
  return ranks;
}

/// The row, clamped to be nowhere better than `other`.
Row limited(const Row& row, const Row& other) {
  Row result(row.size());
  for (size_t i = 0; i < row.size(); ++i) result[i] = std::max(row[i], other[i]);
  return result;
}

/// The volume that a row dominates by itself.
double inclusive_volume(const Row& row, const Row& reference) {
  double volume = 1;
  for (size_t i = 0; i < row.size(); ++i) {
    if (reference[i] <= row[i]) return 0;
    volume *= reference[i] - row[i];
  }
  return volume;
}

/// The area that points with two objectives dominate, maintained incrementally.
class Staircase {
 public:
  Staircase(double reference_x, double reference_y) : right_(reference_x), top_(reference_y) {}

  double area() const { return area_; }

  void add(double x, double y) {
    auto next = steps_.upper_bound(x);
    double top = next == steps_.begin() ? top_ : std::prev(next)->second;
    if (top <= y) return;
    if (next != steps_.begin() && std::prev(next)->first == x) {
      --next;
      top = next == steps_.begin() ? top_ : std::prev(next)->second;
    }
    double left = x;
    for (; next != steps_.end() && next->second >= y; next = steps_.erase(next)) {
      area_ += (next->first - left) * (top - y);
      left = next->first;
      top = next->second;
    }
    area_ += ((next == steps_.end() ? right_ : next->first) - left) * (top - y);
    steps_[x] = y;
  }

 private:
  double right_, top_;
  double area_ = 0;
  std::map<double, double> steps_;  // Non-dominated points: y falls as x rises.
};

double volume_of(LossRows rows, Row reference);

/// A sweep along the third objective.
double volume_of_three(const LossRows& rows, const Row& reference) {
  Staircase staircase(reference[0], reference[1]);
  double volume = 0;
  for (size_t i = 0; i < rows.size(); ++i) {  // From the worst to the best in the third objective.
    const Row& row = rows[rows.size() - 1 - i];
    staircase.add(row[0], row[1]);
    const double next = i + 1 < rows.size() ? rows[rows.size() - 2 - i][2] : reference[2];
    volume += staircase.area() * (next - row[2]);
  }
  return volume;
}

/// The sum of the volumes that each row adds to those better in the last objective. It is the worst
/// of them in that objective, so that the recursion has one objective less.
double volume_of_many(const LossRows& rows, const Row& reference) {
  const size_t last = reference.size() - 1;
  const Row rest(reference.begin(), reference.end() - 1);
  double volume = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row row(rows[i].begin(), rows[i].end() - 1);
    LossRows overlap;
    for (size_t j = i + 1; j < rows.size(); ++j) {
      overlap.push_back(limited(row, Row(rows[j].begin(), rows[j].end() - 1)));
    }
    const double slice = inclusive_volume(row, rest) - volume_of(std::move(overlap), rest);
    volume += slice * (reference[last] - rows[i][last]);
  }
  return volume;
}

/// The hypervolume for a finite reference and rows without NaN.
double volume_of(LossRows rows, Row reference) {
  std::erase_if(rows, [&](const Row& row) {
    return !std::equal(row.begin(), row.end(), reference.begin(), std::less<>());
  });
  if (rows.empty()) return 0;
  // One and two objectives are padded to three with unit extents.
  while (reference.size() < 3) {
    for (Row& row : rows) row.push_back(0);
    reference.push_back(1);
  }
  if (reference.size() > 3) {
    LossRows front;
    for (const size_t index : nondominated(rows)) front.push_back(std::move(rows[index]));
    rows = std::move(front);
  }
  std::sort(rows.begin(), rows.end(),
            [](const Row& a, const Row& b) { return a.back() > b.back(); });
  return reference.size() == 3 ? volume_of_three(rows, reference) : volume_of_many(rows, reference);
}

bool is_finite(const Row& row) {
  return std::all_of(row.begin(), row.end(), [](double value) { return std::isfinite(value); });
}

/// select_by_hypervolume() on top of `select`, which handles distinct rows.
template <typename Select>
std::vector<size_t> select_with(const LossRows& losses, size_t count, const Row& reference,
                                const Select& select) {
  const LossRows rows = without_nan(losses);
  LossRows unique;
  std::vector<size_t> first, equal;
  for (const size_t index : lexicographic(rows)) {
    if (!unique.empty() && unique.back() == rows[index]) {
      equal.push_back(index);
    } else {
      unique.push_back(rows[index]);
      first.push_back(index);
    }
  }
  if (first.size() <= count) {
    std::sort(equal.begin(), equal.end());
    equal.resize(std::min(equal.size(), count - first.size()));
    first.insert(first.end(), equal.begin(), equal.end());
    return first;
  }
  std::vector<size_t> selected = indices_of(count);
  if (is_finite(reference)) {
    selected = select(unique);
  }
  for (size_t& index : selected) index = first[index];
  return selected;
}

}  // namespace

bool dominates(const std::vector<double>& a, const std::vector<double>& b) {
  const auto known = [](double loss) { return std::isnan(loss) ? kInfinity : loss; };
  bool is_better = false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (known(a[i]) > known(b[i])) return false;
    is_better |= known(a[i]) < known(b[i]);
  }
  return is_better;
}

double total_violation(const Trial& trial) {
  double sum = 0;
  for (const double violation : trial.violations) {
    if (!(violation <= 0)) sum += std::isnan(violation) ? kInfinity : violation;
  }
  return sum;
}

std::vector<size_t> nondominated(const LossRows& losses) {
  const LossRows rows = without_nan(losses);
  std::vector<size_t> front;
  for (const size_t index : lexicographic(rows)) {
    const Row& row = rows[index];
    const auto covers_row = [&](size_t other) { return covers(rows[other], row); };
    const bool is_covered = row.size() <= 2
                                ? !front.empty() && rows[front.back()].back() <= row.back()
                                : std::any_of(front.rbegin(), front.rend(), covers_row);
    if (!is_covered) front.push_back(index);
  }
  std::sort(front.begin(), front.end());
  return front;
}

std::vector<int32_t> domination_ranks(const LossRows& losses) {
  return ranks_of(without_nan(losses));
}

std::vector<int32_t> domination_ranks(const LossRows& losses,
                                      const std::vector<double>& violations) {
  LossRows allowed, others;
  for (size_t i = 0; i < losses.size(); ++i) {
    if (violations[i] <= 0) {
      allowed.push_back(losses[i]);
    } else {
      others.push_back({violations[i]});
    }
  }
  const std::vector<int32_t> allowed_ranks = domination_ranks(allowed);
  const std::vector<int32_t> other_ranks = domination_ranks(others);
  const int32_t first =
      allowed.empty() ? 0 : 1 + *std::max_element(allowed_ranks.begin(), allowed_ranks.end());
  std::vector<int32_t> ranks;
  auto next_allowed = allowed_ranks.begin(), next_other = other_ranks.begin();
  for (const double violation : violations) {
    ranks.push_back(violation <= 0 ? *next_allowed++ : first + *next_other++);
  }
  return ranks;
}

std::vector<double> crowding_distances(const LossRows& losses) {
  std::vector<double> distances(losses.size());
  if (losses.empty()) return distances;
  const LossRows rows = without_nan(losses);
  std::vector<size_t> order = indices_of(rows.size());
  for (size_t objective = 0; objective < rows[0].size(); ++objective) {
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return rows[a][objective] < rows[b][objective]; });
    std::vector<double> values{-kInfinity};
    for (const size_t index : order) values.push_back(rows[index][objective]);
    values.push_back(kInfinity);
    if (values[1] == values[rows.size()]) continue;
    const auto low = std::upper_bound(values.begin(), values.end(), -kInfinity);
    const auto high = std::lower_bound(values.begin(), values.end(), kInfinity);
    // Halved before subtracting: the difference of the largest doubles overflows.
    double width = *std::prev(high) / 2 - *low / 2;
    if (!(width > 0)) width = 0.5;
    for (size_t i = 0; i < rows.size(); ++i) {
      const double below = values[i], above = values[i + 2];
      if (below != above) distances[order[i]] += (above / 2 - below / 2) / width;
    }
  }
  return distances;
}

std::vector<double> reference_point(const LossRows& losses) {
  constexpr double kNearZero = 1e-12;
  LossRows rows = without_nan(losses);
  Row worst = std::move(rows[0]);
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) worst[i] = std::max(worst[i], row[i]);
  }
  for (double& loss : worst) {
    loss = std::max(1.1 * loss, 0.9 * loss);
    if (loss == 0) loss = kNearZero;
  }
  return worst;
}

double hypervolume(const LossRows& losses, const std::vector<double>& reference) {
  if (!is_finite(reference)) return kInfinity;
  const double volume = volume_of(without_nan(losses), reference);
  return std::isfinite(volume) ? volume : kInfinity;
}

double added_volume(const std::vector<double>& row, std::span<const std::vector<double>> others,
                    const std::vector<double>& reference) {
  const double whole = inclusive_volume(row, reference);
  if (!std::isfinite(whole)) return kInfinity;
  LossRows overlap;
  overlap.reserve(others.size());
  for (const Row& other : others) overlap.push_back(limited(row, other));
  return whole - volume_of(std::move(overlap), reference);
}

std::vector<double> hypervolume_contributions(const LossRows& losses,
                                              const std::vector<double>& reference) {
  LossRows rows = without_nan(losses);
  std::vector<double> contributions;
  for (size_t i = 0; i < rows.size(); ++i) {
    std::swap(rows[i], rows.back());
    const auto others = std::span<const Row>(rows).first(rows.size() - 1);
    contributions.push_back(added_volume(rows.back(), others, reference));
    std::swap(rows[i], rows.back());
  }
  return contributions;
}

std::vector<size_t> select_by_hypervolume(const LossRows& losses, size_t count,
                                          const std::vector<double>& reference) {
  return select_with(losses, count, reference, [&](const LossRows& rows) {
    return select_greedily(rows, count, reference).rows;
  });
}

std::vector<size_t> select_by_hypervolume(const LossRows& losses, size_t count,
                                          const std::vector<double>& reference,
                                          GreedySelection& last) {
  return select_with(losses, count, reference,
                     [&](const LossRows& rows) { return last.select(rows, count, reference); });
}

std::vector<std::vector<size_t>> fronts_of(const std::vector<int32_t>& ranks) {
  std::vector<std::vector<size_t>> fronts;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const auto rank = static_cast<size_t>(ranks[i]);
    if (rank >= fronts.size()) fronts.resize(rank + 1);
    fronts[rank].push_back(i);
  }
  return fronts;
}

std::vector<size_t> best_rows(const LossRows& losses, size_t count) {
  std::vector<size_t> best;
  for (const auto& front : fronts_of(domination_ranks(losses))) {
    if (best.size() == count) break;
    if (best.size() + front.size() <= count) {
      best.insert(best.end(), front.begin(), front.end());
      continue;
    }
    LossRows rows;
    for (const size_t index : front) rows.push_back(losses[index]);
    for (const size_t place :
         select_by_hypervolume(rows, count - best.size(), reference_point(rows))) {
      best.push_back(front[place]);
    }
  }
  return best;
}

}  // namespace gallop::tune
