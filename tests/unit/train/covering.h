#pragma once

#include <algorithm>
#include <cstddef>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace gallop::train {

/// A case with the combinations of values that it tests, such as {"adamw+bf16", "adamw+sam"}.
template <typename Case>
using Combined = std::pair<Case, std::vector<std::string>>;

/// The cases of the short tests, which together have every combination, and all the others, which
/// only the long tests run.
template <typename Case>
struct Covering {
  std::vector<Case> usual, rest;
};

/// Chooses greedily: first the cases with the most combinations that no chosen one has.
template <typename Case>
Covering<Case> cover(const std::vector<Combined<Case>>& cases) {
  size_t most = 0;
  for (const auto& [tested, combinations] : cases) most = std::max(most, combinations.size());
  std::vector<bool> is_chosen(cases.size());
  std::set<std::string> covered;
  for (size_t wanted = most; wanted > 0; --wanted) {
    for (size_t i = 0; i < cases.size(); ++i) {
      const auto& combinations = cases[i].second;
      size_t news = 0;
      for (const std::string& one : combinations) news += covered.contains(one) ? 0 : 1;
      if (is_chosen[i] || news < wanted) continue;
      is_chosen[i] = true;
      covered.insert(combinations.begin(), combinations.end());
    }
  }
  Covering<Case> result;
  for (size_t i = 0; i < cases.size(); ++i) {
    (is_chosen[i] ? result.usual : result.rest).push_back(cases[i].first);
  }
  return result;
}

/// The cases of these names for the short tests, and all others.
template <typename Case>
Covering<Case> usual_by_name(const std::vector<Case>& cases, const std::set<std::string>& names) {
  Covering<Case> result;
  for (const Case& one : cases) {
    (names.contains(one.name) ? result.usual : result.rest).push_back(one);
  }
  if (result.usual.size() != names.size()) throw std::logic_error("a name without a case");
  return result;
}

}  // namespace gallop::train
