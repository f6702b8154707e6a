#include "gallop/optimize/experiments.h"

#include <algorithm>

namespace gallop::optimize {

double Comparison::memory_gain() const {
  return changed.peak_bytes > 0
             ? static_cast<double>(base.peak_bytes) / static_cast<double>(changed.peak_bytes)
             : 1;
}

std::optional<double> TrainedRun::epochs_to(double target, bool higher_is_better) const {
  for (const Point& point : evaluations) {
    if (higher_is_better ? point.metric >= target : point.metric <= target) return point.epochs;
  }
  return std::nullopt;
}

std::string path_of(const std::string& option) { return option.substr(0, option.find('=')); }

std::vector<std::string> with(std::vector<std::string> options,
                              const std::vector<std::string>& changes) {
  for (const std::string& change : changes) {
    const auto same = std::find_if(options.begin(), options.end(), [&](const std::string& one) {
      return path_of(one) == path_of(change);
    });
    if (same == options.end()) {
      options.push_back(change);
    } else {
      *same = change;
    }
  }
  return options;
}

}  // namespace gallop::optimize
