#include "gallop/tune/pareto/domination_fronts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "gallop/tune/pareto/pareto.h"

namespace gallop::tune {

namespace {

using Front = DominationFronts::Front;

// Ranking from scratch takes about as long as inserting this fraction of the rows one by one.
constexpr size_t kManyShare = 16;

bool dominates_row(const double* a, const double* b, size_t objectives) {
  bool is_better = false;
  for (size_t i = 0; i < objectives; ++i) {
    if (a[i] > b[i]) return false;
    is_better |= a[i] < b[i];
  }
  return is_better;
}

void append(Front& front, int64_t row, const double* losses, size_t objectives) {
  front.rows.push_back(row);
  front.losses.insert(front.losses.end(), losses, losses + objectives);
}

void append(Front& front, const Front& more) {
  front.rows.insert(front.rows.end(), more.rows.begin(), more.rows.end());
  front.losses.insert(front.losses.end(), more.losses.begin(), more.losses.end());
}

/// Removes and returns the rows for whose indices `is_taken` is true.
template <typename IsTaken>
Front take(Front& front, size_t objectives, const IsTaken& is_taken) {
  Front taken;
  size_t left = 0;
  for (size_t i = 0; i < front.rows.size(); ++i) {
    const double* const losses = &front.losses[i * objectives];
    if (is_taken(i)) {
      append(taken, front.rows[i], losses, objectives);
    } else {
      std::copy_n(losses, objectives, &front.losses[left * objectives]);
      front.rows[left++] = front.rows[i];
    }
  }
  front.rows.resize(left);
  front.losses.resize(left * objectives);
  return taken;
}

}  // namespace

void DominationFronts::insert(int64_t row, const std::vector<double>& losses) {
  added_.rows.push_back(row);
  for (const double loss : losses) {
    added_.losses.push_back(std::isnan(loss) ? std::numeric_limits<double>::infinity() : loss);
  }
  ++size_;
}

void DominationFronts::erase(int64_t row) {
  const Front taken =
      take(added_, objectives_, [&](size_t index) { return added_.rows[index] == row; });
  if (taken.rows.empty()) removed_.push_back(row);
  --size_;
}

const std::vector<Front>& DominationFronts::fronts() {
  if (!removed_.empty() || added_.rows.size() > size_ / kManyShare) {
    rank_all();
  } else {
    for (size_t i = 0; i < added_.rows.size(); ++i) add(added_, i);
  }
  added_ = {};
  removed_.clear();
  return fronts_;
}

void DominationFronts::rank_all() {
  Front all;
  std::sort(removed_.begin(), removed_.end());
  for (Front& front : fronts_) {
    take(front, objectives_, [&](size_t index) {
      return std::binary_search(removed_.begin(), removed_.end(), front.rows[index]);
    });
    append(all, front);
  }
  append(all, added_);
  LossRows losses;
  for (size_t i = 0; i < all.rows.size(); ++i) {
    const double* const row = &all.losses[i * objectives_];
    losses.emplace_back(row, row + objectives_);
  }
  fronts_.clear();
  for (const auto& indices : fronts_of(domination_ranks(losses))) {
    Front& front = fronts_.emplace_back();
    for (const size_t index : indices) {
      append(front, all.rows[index], losses[index].data(), objectives_);
    }
  }
}

void DominationFronts::add(const Front& rows, size_t index) {
  Front moving;
  append(moving, rows.rows[index], &rows.losses[index * objectives_], objectives_);
  const auto place = std::partition_point(fronts_.begin(), fronts_.end(), [&](const Front& front) {
    return dominates_some(front, moving.losses.data());
  });
  for (auto rank = static_cast<size_t>(place - fronts_.begin()); !moving.rows.empty(); ++rank) {
    if (rank == fronts_.size()) fronts_.emplace_back();
    Front dominated = take_dominated(fronts_[rank], moving);
    const bool is_whole = fronts_[rank].rows.empty() && !dominated.rows.empty();
    append(fronts_[rank], moving);
    moving = std::move(dominated);
    if (!is_whole) continue;
    // Every following front moves back by one as well.
    fronts_.insert(fronts_.begin() + static_cast<ptrdiff_t>(rank + 1), std::move(moving));
    return;
  }
}

bool DominationFronts::dominates_some(const Front& front, const double* losses) const {
  for (size_t i = 0; i < front.losses.size(); i += objectives_) {
    if (dominates_row(&front.losses[i], losses, objectives_)) return true;
  }
  return false;
}

Front DominationFronts::take_dominated(Front& from, const Front& by) const {
  std::vector<double> best(objectives_,
                           std::numeric_limits<double>::infinity());  // Ideal point of `by`.
  for (size_t i = 0; i < by.losses.size(); ++i) {
    double& loss = best[i % objectives_];
    loss = std::min(loss, by.losses[i]);
  }
  return take(from, objectives_, [&](size_t index) {
    const double* const losses = &from.losses[index * objectives_];
    return dominates_row(best.data(), losses, objectives_) && dominates_some(by, losses);
  });
}

}  // namespace gallop::tune
