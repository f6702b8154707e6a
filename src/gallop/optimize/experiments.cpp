#include "gallop/optimize/experiments.h"

#include <algorithm>

#include "gallop/base/text.h"

namespace gallop::optimize {

double Comparison::memory_gain() const {
  return changed.peak_bytes > 0
             ? static_cast<double>(base.peak_bytes) / static_cast<double>(changed.peak_bytes)
             : 1;
}

std::optional<double> TrainingResult::epochs_to(double target, bool higher_is_better) const {
  for (const Point& point : evaluations) {
    if (higher_is_better ? point.metric >= target : point.metric <= target) return point.epochs;
  }
  return std::nullopt;
}

std::string path_of(const std::string& option) { return option.substr(0, option.find('=')); }

int64_t processes_of(const std::vector<std::string>& options) {
  for (const std::string& one : options) {
    if (path_of(one) != kProcesses) continue;
    return parse_number<int64_t>(one.substr(one.find('=') + 1)).value_or(1);
  }
  return 1;
}

std::vector<std::string> recipe_options(std::vector<std::string> options) {
  std::erase_if(options, [](const std::string& one) { return path_of(one) == kProcesses; });
  return options;
}

std::vector<std::string> with(std::vector<std::string> options,
                              const std::vector<std::string>& changes) {
  for (const std::string& change : changes) {
    const std::string path = path_of(change);
    std::erase_if(options,
                  [&](const std::string& one) { return path_of(one).starts_with(path + "."); });
    const auto same = std::find_if(options.begin(), options.end(),
                                   [&](const std::string& one) { return path_of(one) == path; });
    if (same == options.end()) {
      options.push_back(change);
      continue;
    }
    *same = change;
    // A section that comes later would replace it.
    const bool is_hidden = std::any_of(same, options.end(), [&](const std::string& one) {
      return path.starts_with(path_of(one) + ".");
    });
    if (is_hidden) std::rotate(same, same + 1, options.end());
  }
  return options;
}

}  // namespace gallop::optimize
