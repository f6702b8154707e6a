#include "gallop/tune/importance/forest.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace gallop::tune {

namespace {

/// A binary split of samples.
struct Split {
  double gain = 0;  // Reduction of the squared error; no split if not above 0.
  size_t dimension = 0;
  double threshold = 0;       // Numeric dimension: inclusive upper bound of the first part.
  std::vector<bool> members;  // Categorical dimension: the first part.
};

struct Sums {
  double count = 0, sum = 0;
  void add(double value) {
    count += 1;
    sum += value;
  }
  double squared() const { return count > 0 ? sum * sum / count : 0; }
};

/// The reduction of the squared error by a split into `part` and the rest.
double gain_of(const Sums& part, const Sums& all) {
  const Sums rest{all.count - part.count, all.sum - part.sum};
  return part.squared() + rest.squared() - all.squared();
}

class Tree {
 public:
  Tree(const Samples& samples, int64_t depth, Random& random)
      : samples_(samples), depth_(depth), random_(random) {}

  std::vector<Leaf> grow();

 private:
  using Indices = std::vector<size_t>;

  void grow(Indices indices, Leaf box, int64_t depth);
  Split best_split(const Indices& indices);
  void try_numbers(const Indices& indices, const Sums& all, size_t dimension, Split& best) const;
  void try_categories(const Indices& indices, const Sums& all, size_t dimension, Split& best) const;
  bool is_first(const Split& split, size_t index) const;
  Leaf part_of(Leaf box, const Split& split, bool is_first) const;

  double at(size_t index, size_t dimension) const { return samples_.points[index][dimension]; }

  const Samples& samples_;
  int64_t depth_;
  Random& random_;
  std::vector<Leaf> leaves_;
};

std::vector<Leaf> Tree::grow() {
  Leaf whole;
  for (const auto& categories : samples_.categories) {
    whole.sides.push_back({.members = std::vector<bool>(categories.size(), true)});
  }
  Indices drawn;
  for (size_t i = 0; i < samples_.values.size(); ++i) {
    drawn.push_back(random_.below(samples_.values.size()));
  }
  grow(std::move(drawn), std::move(whole), depth_);
  return std::move(leaves_);
}

void Tree::grow(Indices indices, Leaf box, int64_t depth) {
  const Split split = depth > 0 ? best_split(indices) : Split();
  if (split.gain > 0) {
    const auto middle = std::stable_partition(indices.begin(), indices.end(),
                                              [&](size_t i) { return is_first(split, i); });
    grow(Indices(indices.begin(), middle), part_of(box, split, true), depth - 1);
    return grow(Indices(middle, indices.end()), part_of(std::move(box), split, false), depth - 1);
  }
  for (const size_t index : indices) {
    box.value += samples_.values[index] / static_cast<double>(indices.size());
  }
  leaves_.push_back(std::move(box));
}

Split Tree::best_split(const Indices& indices) {
  Split best;
  const auto [least, most] = std::minmax_element(
      indices.begin(), indices.end(),
      [&](size_t a, size_t b) { return samples_.values[a] < samples_.values[b]; });
  if (samples_.values[*least] == samples_.values[*most]) return best;
  Sums all;
  for (const size_t index : indices) all.add(samples_.values[index]);
  // In random order: of equally good splits the first is taken.
  std::vector<size_t> dimensions(samples_.categories.size());
  std::iota(dimensions.begin(), dimensions.end(), size_t{0});
  for (size_t left = dimensions.size(); left > 0; --left) {
    std::swap(dimensions[left - 1], dimensions[random_.below(left)]);
    const size_t dimension = dimensions[left - 1];
    if (samples_.categories[dimension].empty()) {
      try_numbers(indices, all, dimension, best);
    } else {
      try_categories(indices, all, dimension, best);
    }
  }
  return best;
}

void Tree::try_numbers(const Indices& indices, const Sums& all, size_t dimension,
                       Split& best) const {
  std::vector<std::pair<double, double>> sorted;  // Coordinates and values.
  for (const size_t index : indices) {
    sorted.emplace_back(at(index, dimension), samples_.values[index]);
  }
  std::sort(sorted.begin(), sorted.end());
  Sums part;
  for (size_t i = 0; i + 1 < sorted.size(); ++i) {
    part.add(sorted[i].second);
    const double threshold = (sorted[i].first + sorted[i + 1].first) / 2;
    if (!(threshold < sorted[i + 1].first)) continue;
    const double gain = gain_of(part, all);
    if (gain > best.gain) best = {gain, dimension, threshold, {}};
  }
}

/// With categories sorted by their means, the best split is between two neighbors (Breiman et al.,
/// "Classification and regression trees", 1984, section 9.4).
void Tree::try_categories(const Indices& indices, const Sums& all, size_t dimension,
                          Split& best) const {
  const size_t count = samples_.categories[dimension].size();
  std::vector<Sums> sums(count);
  for (const size_t index : indices) {
    sums[static_cast<size_t>(at(index, dimension))].add(samples_.values[index]);
  }
  std::vector<size_t> order;
  for (size_t i = 0; i < count; ++i) {
    if (sums[i].count > 0) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return sums[a].sum / sums[a].count < sums[b].sum / sums[b].count;
  });
  Sums part;
  std::vector<bool> members(count);
  for (size_t i = 0; i + 1 < order.size(); ++i) {
    part.count += sums[order[i]].count;
    part.sum += sums[order[i]].sum;
    members[order[i]] = true;
    const double gain = gain_of(part, all);
    if (gain > best.gain) best = {gain, dimension, 0, members};
  }
}

bool Tree::is_first(const Split& split, size_t index) const {
  const double place = at(index, split.dimension);
  return split.members.empty() ? place <= split.threshold
                               : split.members[static_cast<size_t>(place)];
}

Leaf Tree::part_of(Leaf box, const Split& split, bool is_first) const {
  Leaf::Side& side = box.sides[split.dimension];
  if (split.members.empty()) {
    (is_first ? side.high : side.low) = split.threshold;
    return box;
  }
  for (size_t i = 0; i < side.members.size(); ++i) {
    side.members[i] = side.members[i] && split.members[i] == is_first;
  }
  return box;
}

}  // namespace

std::vector<Leaf> grown_tree(const Samples& samples, int64_t depth, Random& random) {
  return Tree(samples, depth, random).grow();
}

double size_of(const Leaf::Side& side, const std::vector<double>& categories) {
  if (categories.empty()) return side.high - side.low;
  double sum = 0;
  for (size_t i = 0; i < categories.size(); ++i) {
    if (side.members[i]) sum += categories[i];
  }
  return sum;
}

}  // namespace gallop::tune
