#include "gallop/tune/gaussian_process/boxes.h"

#include <algorithm>
#include <limits>
#include <map>

namespace gallop::tune {

namespace {

// A step of the staircase below which nothing is dominated: a range of the first objective, below a
// level of the second, from a level of the third objective on. All are indices.
struct Step {
  size_t left, right, top, since;
};

std::vector<double> levels_of(const std::vector<std::vector<double>>& losses, size_t objective,
                              double reference) {
  std::vector<double> levels{-std::numeric_limits<double>::infinity(), reference};
  for (const std::vector<double>& row : losses) levels.push_back(row[objective]);
  std::sort(levels.begin(), levels.end());
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  return levels;
}

size_t index_of(const std::vector<double>& levels, double value) {
  return static_cast<size_t>(std::lower_bound(levels.begin(), levels.end(), value) -
                             levels.begin());
}

// Removes the part of the staircase right of `left` and above `top` from this level of the third
// objective on, and emits the boxes that end there.
void cut(std::vector<Step>& stairs, size_t left, size_t top, size_t since,
         std::vector<Step>& ended) {
  std::vector<Step> result;
  bool is_cut = false;
  size_t right = left;
  for (const Step& step : stairs) {
    if (step.right <= left || step.top <= top) {
      result.push_back(step);
      continue;
    }
    ended.push_back({std::max(step.left, left), step.right, step.top, step.since});
    if (step.left < left) result.push_back({step.left, left, step.top, step.since});
    is_cut = true;
    right = step.right;
  }
  if (is_cut) result.push_back({left, right, top, since});
  std::sort(result.begin(), result.end(),
            [](const Step& a, const Step& b) { return a.left < b.left; });
  stairs = std::move(result);
}

}  // namespace

UndominatedBoxes undominated_boxes(std::vector<std::vector<double>> losses,
                                   const std::vector<double>& reference) {
  const size_t objectives = reference.size();
  std::erase_if(losses, [&reference](const std::vector<double>& row) {
    for (size_t k = 0; k < row.size(); ++k) {
      if (!(row[k] < reference[k])) return true;
    }
    return false;
  });
  UndominatedBoxes result;
  for (size_t k = 0; k < objectives; ++k) {
    result.levels.push_back(levels_of(losses, k, reference[k]));
  }
  const auto level = [&](const std::vector<double>& row, size_t k) {
    return k < objectives ? index_of(result.levels[k], row[k]) : 0;
  };
  std::sort(losses.begin(), losses.end(),
            [&level](const auto& a, const auto& b) { return level(a, 2) < level(b, 2); });
  const size_t last = objectives > 2 ? result.levels[2].size() - 1 : 1;
  std::vector<Step> stairs{{0, result.levels[0].size() - 1, result.levels[1].size() - 1, 0}};
  std::vector<Step> ended;
  const auto add_box = [&](const Step& step, size_t until) {
    if (step.since == until) return;
    result.boxes.push_back({{step.left, 0, step.since}, {step.right, step.top, until}});
    result.boxes.back().lower.resize(objectives);
    result.boxes.back().upper.resize(objectives);
  };
  for (const std::vector<double>& row : losses) {
    const size_t since = level(row, 2);
    ended.clear();
    cut(stairs, level(row, 0), level(row, 1), since, ended);
    for (const Step& step : ended) add_box(step, since);
  }
  for (const Step& step : stairs) add_box(step, last);
  return result;
}

}  // namespace gallop::tune
