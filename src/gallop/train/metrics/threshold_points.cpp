#include "gallop/train/metrics/threshold_points.h"

#include <algorithm>
#include <array>
#include <limits>

namespace gallop::train {

namespace {

using Entry = ScoreCounts::Entry;
__extension__ using Wide = __int128;

constexpr size_t kMostPoints = 2000;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The number of targets at or above a threshold.
struct Vertex {
  int64_t negatives = 0, positives = 0;
  double threshold = kInfinity;
};

double ratio(int64_t part, int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

std::vector<Vertex> vertices_of(const std::vector<Entry>& entries) {
  std::vector<Vertex> all = {{}};
  for (size_t i = entries.size(); i-- > 0;) {
    all.push_back({.negatives = all.back().negatives + entries[i].negatives,
                   .positives = all.back().positives + entries[i].positives,
                   .threshold = entries[i].score()});
  }
  return all;
}

bool is_on_line(const Vertex& a, const Vertex& b, const Vertex& c) {
  return Wide{b.negatives - a.negatives} * Wide{c.positives - a.positives} ==
         Wide{c.negatives - a.negatives} * Wide{b.positives - a.positives};
}

std::vector<Vertex> without_those_on_lines(const std::vector<Vertex>& all) {
  std::vector<Vertex> kept;
  for (const Vertex& one : all) {
    const size_t size = kept.size();
    if (size >= 2 && is_on_line(kept[size - 2], kept[size - 1], one)) kept.pop_back();
    kept.push_back(one);
  }
  return kept;
}

// As `drop_intermediate` of scikit-learn: drops points whose recall equals that of both neighbors.
// The first vertex is above all thresholds.
std::vector<Vertex> without_equal_recalls(const std::vector<Vertex>& all) {
  std::vector<Vertex> kept = {all.front()};
  for (size_t i = 1; i < all.size(); ++i) {
    const bool is_first = i == 1, is_last = i + 1 == all.size();
    if (is_first || is_last || all[i].positives != all[i - 1].positives ||
        all[i + 1].positives != all[i].positives) {
      kept.push_back(all[i]);
    }
  }
  return kept;
}

// Keeps one point per step along the curve.
std::vector<Vertex> thinned_roc(const std::vector<Vertex>& all) {
  if (all.size() <= kMostPoints) return all;
  const Vertex& end = all.back();
  const auto step_of = [&](const Vertex& one) {
    const double way = ratio(one.negatives, end.negatives) + ratio(one.positives, end.positives);
    return static_cast<int64_t>(way / 2 * static_cast<double>(kMostPoints - 2));
  };
  std::vector<Vertex> kept = {all.front()};
  for (size_t i = 1; i + 1 < all.size(); ++i) {
    if (step_of(all[i]) != step_of(kept.back())) kept.push_back(all[i]);
  }
  kept.push_back(end);
  return kept;
}

double precision_of(const Vertex& one) {
  const int64_t taken = one.negatives + one.positives;
  return taken == 0 ? 1 : ratio(one.positives, taken);
}

// Keeps the first, last, lowest and highest point per step of recall.
std::vector<Vertex> thinned_precision(const std::vector<Vertex>& all) {
  if (all.size() <= kMostPoints) return all;
  constexpr int64_t kSteps = kMostPoints / 4;
  const auto step_of = [&](size_t i) {
    return static_cast<int64_t>(Wide{all[i].positives} * kSteps / (all.back().positives + 1));
  };
  std::vector<Vertex> kept;
  for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    std::array<size_t, 4> chosen = {begin, begin, begin, begin};
    for (end = begin; end < all.size() && step_of(end) == step_of(begin); ++end) {
      if (precision_of(all[end]) < precision_of(all[chosen[1]])) chosen[1] = end;
      if (precision_of(all[end]) > precision_of(all[chosen[2]])) chosen[2] = end;
      chosen[3] = end;
    }
    std::sort(chosen.begin(), chosen.end());
    for (size_t i = 0; i < chosen.size(); ++i) {
      if (i == 0 || chosen[i] != chosen[i - 1]) kept.push_back(all[chosen[i]]);
    }
  }
  return kept;
}

}  // namespace

void add_roc_points(const std::vector<Entry>& entries, ThresholdCurve& curve) {
  if (curve.negatives == 0 || curve.positives == 0) return;
  for (const Vertex& one : thinned_roc(without_those_on_lines(vertices_of(entries)))) {
    curve.x.push_back(ratio(one.negatives, curve.negatives));
    curve.y.push_back(ratio(one.positives, curve.positives));
    curve.thresholds.push_back(one.threshold);
  }
}

void add_precision_recall_points(const std::vector<Entry>& entries, ThresholdCurve& curve) {
  if (curve.positives == 0) return;
  for (const Vertex& one : thinned_precision(without_equal_recalls(vertices_of(entries)))) {
    curve.x.push_back(ratio(one.positives, curve.positives));
    curve.y.push_back(precision_of(one));
    curve.thresholds.push_back(one.threshold);
  }
}

}  // namespace gallop::train
