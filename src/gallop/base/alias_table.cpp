#include "gallop/base/alias_table.h"

#include <cmath>

#include "gallop/base/error.h"

namespace gallop {

AliasTable::AliasTable(std::span<const double> weights) : cells_(weights.size()) {
  double sum = 0;
  for (const double weight : weights) {
    if (!(weight >= 0) || !std::isfinite(weight)) throw InternalError("alias table: a bad weight");
    sum += weight;
  }
  if (!(sum > 0) || !std::isfinite(sum)) throw InternalError("alias table: weights without a sum");
  const auto count = static_cast<double>(weights.size());
  std::vector<size_t> small, large;
  for (size_t i = 0; i < weights.size(); ++i) {
    cells_[i] = {.own = weights[i] / sum * count, .alias = static_cast<int64_t>(i)};
    (cells_[i].own < 1 ? small : large).push_back(i);
  }
  while (!small.empty() && !large.empty()) {
    const size_t low = small.back(), high = large.back();
    small.pop_back();
    cells_[low].alias = static_cast<int64_t>(high);
    cells_[high].own -= 1 - cells_[low].own;
    if (cells_[high].own >= 1) continue;
    large.pop_back();
    small.push_back(high);
  }
  // What is left differs from 1 by rounding alone, unless its weight is 0.
  for (const size_t i : large) cells_[i].own = 1;
  for (const size_t i : small) {
    if (weights[i] > 0) cells_[i].own = 1;
  }
}

int64_t AliasTable::draw(Philox& random) const {
  const auto i = static_cast<int64_t>(random.below(cells_.size()));
  const Cell& cell = cells_[static_cast<size_t>(i)];
  const double share = static_cast<double>(random.next_u64() >> 11) * 0x1p-53;
  return share < cell.own ? i : cell.alias;
}

}  // namespace gallop
