#include "gallop/tune/pruners/signed_rank.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "gallop/tune/normal.h"

namespace gallop::tune {

namespace {

constexpr size_t kExact = 50;
constexpr size_t kExactWithTies = 13;

/// Ranks of the absolute differences, doubled so that mid-ranks of ties are integers.
struct Ranks {
  std::vector<size_t> doubled;  // Doubled ranks of all nonzero differences.
  size_t positive = 0;          // Sum over positive differences, plus half of that over zeros.
  size_t zeros = 0;             // Half of the sum over zeros.
  double ties = 0;              // The sum of t^3 - t over groups of t tied differences.
};

Ranks ranks_of(std::vector<double>& differences) {
  std::sort(differences.begin(), differences.end(),
            [](double a, double b) { return std::abs(a) < std::abs(b); });
  Ranks ranks;
  for (size_t begin = 0, end = 0; begin < differences.size(); begin = end) {
    const double size = std::abs(differences[begin]);
    while (end < differences.size() && std::abs(differences[end]) == size) ++end;
    const size_t rank = begin + 1 + end, group = end - begin;
    ranks.ties += std::pow(static_cast<double>(group), 3) - static_cast<double>(group);
    if (size == 0) {
      ranks.zeros = rank * group / 2;  // One group, whose rank is group + 1.
      continue;
    }
    for (size_t i = begin; i < end; ++i) {
      ranks.doubled.push_back(rank);
      if (differences[i] > 0) ranks.positive += rank;
    }
  }
  ranks.positive += ranks.zeros;
  return ranks;
}

double exact_p(const Ranks& ranks) {
  // The distribution of the rank sum, by convolution over the ranks.
  std::vector<double> likely{1};
  for (const size_t rank : ranks.doubled) {
    std::vector<double> next(likely.size() + rank);
    for (size_t sum = 0; sum < likely.size(); ++sum) {
      next[sum] += likely[sum] / 2;
      next[sum + rank] += likely[sum] / 2;
    }
    likely = std::move(next);
  }
  double p = 0;
  for (size_t sum = likely.size(); sum-- > ranks.positive - ranks.zeros;) p += likely[sum];
  return p;
}

double normal_p(const Ranks& ranks, double count) {
  const double mean = count * (count + 1) / 4;
  const double deviation = std::sqrt((count * (count + 1) * (2 * count + 1) - ranks.ties / 2) / 24);
  return normal_cdf(-(static_cast<double>(ranks.positive) / 2 - mean) / deviation);
}

}  // namespace

double signed_rank_p(std::vector<double> differences) {
  const size_t count = differences.size();
  const Ranks ranks = ranks_of(differences);
  const bool has_ties = ranks.ties > 0 || ranks.doubled.size() < count;
  if (count <= (has_ties ? kExactWithTies : kExact)) return exact_p(ranks);
  return normal_p(ranks, static_cast<double>(count));
}

}  // namespace gallop::tune
