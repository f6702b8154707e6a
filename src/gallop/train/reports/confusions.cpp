#include "gallop/train/reports/confusions.h"

#include <algorithm>

namespace gallop::train {

std::vector<Confusion> most_frequent_confusions(const std::vector<std::vector<int64_t>>& counts,
                                                size_t most) {
  std::vector<Confusion> all;
  for (size_t truth = 0; truth < counts.size(); ++truth) {
    for (size_t guess = 0; guess < counts.size(); ++guess) {
      const int64_t count = counts[truth][guess];
      if (truth != guess && count > 0) all.push_back({truth, guess, count});
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Confusion& a, const Confusion& b) { return a.count > b.count; });
  all.resize(std::min(all.size(), most));
  return all;
}

}  // namespace gallop::train
