#include "gallop/data/group_split.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <regex>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/philox.h"
#include "gallop/base/text.h"

namespace gallop::data {

namespace {

struct Group {
  uint64_t key = 0;
  const std::vector<int64_t>* members = nullptr;

  int64_t size() const { return static_cast<int64_t>(members->size()); }
};

// The number of samples of each class; that of all samples if they have no labels.
std::vector<int64_t> count_classes(const std::vector<int64_t>& members,
                                   const std::vector<int64_t>& labels) {
  if (labels.empty()) return {static_cast<int64_t>(members.size())};
  const int64_t classes = *std::max_element(labels.begin(), labels.end()) + 1;
  std::vector<int64_t> counts(static_cast<size_t>(classes));
  for (const int64_t i : members) {
    ++counts[static_cast<size_t>(labels[static_cast<size_t>(i)])];
  }
  return counts;
}

// The standard deviation of the counts of classes; of one class, the size.
double spread(const std::vector<int64_t>& counts) {
  if (counts.size() == 1) return static_cast<double>(counts[0]);
  const auto classes = static_cast<double>(counts.size());
  double mean = 0, squares = 0;
  for (const int64_t count : counts) mean += static_cast<double>(count);
  mean /= classes;
  for (const int64_t count : counts) {
    squares += (static_cast<double>(count) - mean) * (static_cast<double>(count) - mean);
  }
  return std::sqrt(squares / classes);
}

/// Folds that receive groups one after the other.
class Folds {
 public:
  Folds(const std::vector<std::vector<int64_t>>& groups, int64_t folds)
      : counts_(static_cast<size_t>(folds), std::vector<int64_t>(groups.front().size())),
        totals_(groups.front().size()) {
    for (const auto& group : groups) {
      for (size_t k = 0; k < totals_.size(); ++k) totals_[k] += group[k];
    }
  }

  // The fold with which the shares of each class vary least; of equal ones the smallest.
  int64_t best_for(const std::vector<int64_t>& group) const {
    size_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (size_t fold = 0; fold < counts_.size(); ++fold) {
      const double deviation = deviation_with(group, fold);
      const bool is_equal = std::abs(deviation - least) <= 1e-8 + 1e-5 * least;
      if (deviation < least || (is_equal && size(fold) < size(best))) {
        least = deviation;
        best = fold;
      }
    }
    return static_cast<int64_t>(best);
  }

  void add(const std::vector<int64_t>& group, int64_t fold) {
    std::vector<int64_t>& counts = counts_[static_cast<size_t>(fold)];
    for (size_t k = 0; k < group.size(); ++k) counts[k] += group[k];
  }

  int64_t smallest() const {
    size_t best = 0;
    for (size_t fold = 1; fold < counts_.size(); ++fold) {
      if (size(fold) < size(best)) best = fold;
    }
    return static_cast<int64_t>(best);
  }

 private:
  int64_t size(size_t fold) const {
    return std::accumulate(counts_[fold].begin(), counts_[fold].end(), int64_t{0});
  }

  // The mean over the classes of the standard deviation of their shares in the folds, rounded as by
  // numpy for fewer than eight classes: between equal folds, scikit-learn decides by rounding.
  double deviation_with(const std::vector<int64_t>& group, size_t taker) const {
    const auto folds = static_cast<double>(counts_.size());
    double sum = 0, classes = 0;
    for (size_t k = 0; k < group.size(); ++k) {
      if (totals_[k] == 0) continue;
      const auto share = [&](size_t fold) {
        const int64_t count = counts_[fold][k] + (fold == taker ? group[k] : 0);
        return static_cast<double>(count) / static_cast<double>(totals_[k]);
      };
      double mean = 0, squares = 0;
      for (size_t fold = 0; fold < counts_.size(); ++fold) mean += share(fold);
      mean /= folds;
      for (size_t fold = 0; fold < counts_.size(); ++fold) {
        squares += (share(fold) - mean) * (share(fold) - mean);
      }
      sum += std::sqrt(squares / folds);
      ++classes;
    }
    return sum / classes;
  }

  std::vector<std::vector<int64_t>> counts_;  // [folds][classes]
  std::vector<int64_t> totals_;               // Totals of each class.
};

uint64_t key_of(uint64_t seed, int64_t index) {
  return Philox(seed, Purpose::kSplit, 0, static_cast<uint64_t>(index)).next_u64();
}

}  // namespace

std::vector<int64_t> assign_groups(const std::vector<std::vector<int64_t>>& groups, int64_t folds) {
  std::vector<size_t> order(groups.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return spread(groups[a]) > spread(groups[b]); });
  Folds made(groups, folds);
  std::vector<int64_t> fold_of(groups.size());
  for (const size_t group : order) {
    const bool is_stratified = groups[group].size() > 1;
    fold_of[group] = is_stratified ? made.best_for(groups[group]) : made.smallest();
    made.add(groups[group], fold_of[group]);
  }
  return fold_of;
}

IndexCut cut_groups(const std::vector<std::string>& groups, const std::vector<int64_t>& labels,
                    const Holdout& holdout) {
  std::map<std::string, std::vector<int64_t>> members;
  for (size_t i = 0; i < groups.size(); ++i) members[groups[i]].push_back(static_cast<int64_t>(i));
  const auto count = static_cast<int64_t>(members.size());
  if (count < std::max<int64_t>(2, holdout.folds)) {
    throw DataError(fmt::format("data.group: the training samples are in {} groups, {}", count,
                                holdout.folds > 0
                                    ? fmt::format("fewer than {} folds", holdout.folds)
                                    : "too few to hold some out"));
  }
  std::vector<Group> order;
  for (const auto& [name, indices] : members) {
    // By the first member, which does not depend on names of folders.
    order.push_back({.key = key_of(holdout.seed, indices.front()), .members = &indices});
  }
  std::sort(order.begin(), order.end(),
            [](const Group& a, const Group& b) { return a.key < b.key; });
  IndexCut cut;
  const auto put = [](std::vector<int64_t>& list, const Group& group) {
    list.insert(list.end(), group.members->begin(), group.members->end());
  };
  if (holdout.folds > 0) {
    std::vector<std::vector<int64_t>> counts;
    for (const Group& group : order) counts.push_back(count_classes(*group.members, labels));
    const std::vector<int64_t> folds = assign_groups(counts, holdout.folds);
    for (size_t i = 0; i < order.size(); ++i) {
      put(folds[i] == holdout.fold ? cut.taken : cut.kept, order[i]);
    }
  } else {
    const auto wanted = std::llround(holdout.fraction * static_cast<double>(groups.size()));
    for (const Group& group : order) {
      const bool fits = static_cast<int64_t>(cut.taken.size()) + group.size() <= wanted;
      put(fits ? cut.taken : cut.kept, group);
    }
    if (cut.taken.empty()) {
      throw DataError(
          fmt::format("data.group: no group is small enough to be {} of the {} training samples",
                      holdout.fraction, format_count(static_cast<int64_t>(groups.size()))));
    }
  }
  std::sort(cut.kept.begin(), cut.kept.end());
  std::sort(cut.taken.begin(), cut.taken.end());
  return cut;
}

IndexCut cut_groups(const std::vector<std::string>& groups, const Holdout& holdout) {
  return cut_groups(groups, {}, holdout);
}

std::vector<std::string> groups_of(int64_t size,
                                   const std::function<std::string(int64_t)>& describe,
                                   const std::string& group) {
  const bool is_by_folder = group == kByFolder;
  std::regex pattern;
  try {
    pattern = is_by_folder ? "^(.*)/" : group;
  } catch (const std::regex_error& error) {
    throw UsageError(fmt::format("data.group: '{}' is not a valid regular expression: {}",
                                 printable(group), error.what()));
  }
  std::vector<std::string> groups;
  for (int64_t i = 0; i < size; ++i) {
    const std::string name = describe(i);
    std::smatch found;
    if (!std::regex_search(name, found, pattern)) {
      throw DataError(
          is_by_folder ? fmt::format("data.group: the sample '{}' is in no folder", printable(name))
                       : fmt::format("data.group: '{}' is not found in the name of the sample '{}'",
                                     printable(group), printable(name)));
    }
    groups.push_back(found.size() > 1 ? found[1].str() : found[0].str());
  }
  return groups;
}

}  // namespace gallop::data
