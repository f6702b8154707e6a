#include "gallop/tune/pareto/greedy_selection.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <set>
#include <span>

#include "gallop/tune/pareto/box_cover.h"

namespace gallop::tune {

namespace {

using Row = std::vector<double>;

BoxCover::Corner corner(const Row& row) { return {row[0], row[1], row[2]}; }

size_t place_of(const LossRows& rows, const Row& row) {
  return static_cast<size_t>(std::lower_bound(rows.begin(), rows.end(), row) - rows.begin());
}

/// The hypervolume that a row adds to the selected rows, as of some round.
struct Share {
  double value;
  double error;  // Bound on the difference from added_volume().
  size_t row;
  size_t round;  // Number of selected rows.
};

class Shares {
 public:
  Shares(const LossRows& rows, const Row& reference) : rows_(rows), reference_(reference) {}
  virtual ~Shares() = default;

  virtual void select(size_t row) = 0;
  virtual Share now(size_t row) = 0;
  /// The value of added_volume(), without rounding differences.
  virtual double exact(const Share& share) const { return share.value; }
  /// The error bound of the row's last value before it was made exact.
  virtual double error(size_t /*row*/) const { return 0; }

 protected:
  const LossRows& rows_;
  const Row& reference_;
};

/// With two objectives, a row adds the rectangle up to its selected neighbors.
class SharesOfTwo final : public Shares {
 public:
  using Shares::Shares;

  void select(size_t row) override { selected_.insert(row); }

  Share now(size_t row) override {
    const auto next = selected_.upper_bound(row);
    double right = reference_[0], top = reference_[1];
    if (next != selected_.end()) right = std::min(right, rows_[*next][0]);
    if (next != selected_.begin()) top = std::min(top, rows_[*std::prev(next)][1]);
    const double x = rows_[row][0], y = rows_[row][1];
    const double area = x < right && y < top ? (right - x) * (top - y) : 0;
    return {.value = area, .error = 0, .row = row, .round = selected_.size()};
  }

 private:
  std::set<size_t> selected_;
};

class SharesOfMany : public Shares {
 public:
  using Shares::Shares;

  void select(size_t row) override { selected_.push_back(rows_[row]); }

  Share now(size_t row) override {
    return {
        .value = added(row, selected_.size()), .error = 0, .row = row, .round = selected_.size()};
  }

 protected:
  double added(size_t row, size_t round) const {
    return added_volume(rows_[row], std::span<const Row>(selected_).first(round), reference_);
  }

 private:
  LossRows selected_;
};

class SharesOfThree final : public SharesOfMany {
 public:
  SharesOfThree(const LossRows& rows, const Row& reference) : SharesOfMany(rows, reference) {
    for (const Row& row : rows) covers_.emplace_back(corner(row), corner(reference));
  }

  void select(size_t row) override {
    SharesOfMany::select(row);
    selected_.push_back(corner(rows_[row]));
  }

  Share now(size_t row) override {
    BoxCover& cover = covers_[row];
    while (cover.rows() < selected_.size()) cover.add(selected_[cover.rows()]);
    return {.value = cover.left(), .error = cover.error(), .row = row, .round = selected_.size()};
  }

  double exact(const Share& share) const override { return added(share.row, share.round); }
  double error(size_t row) const override { return covers_[row].error(); }

 private:
  std::vector<BoxCover> covers_;
  std::vector<BoxCover::Corner> selected_;
};

std::unique_ptr<Shares> make_shares(const LossRows& rows, const Row& reference) {
  if (reference.size() == 2) return std::make_unique<SharesOfTwo>(rows, reference);
  if (reference.size() == 3) return std::make_unique<SharesOfThree>(rows, reference);
  return std::make_unique<SharesOfMany>(rows, reference);
}

/// The remaining rows as a heap with the largest contribution at the front; ties by row.
class Candidates {
 public:
  Candidates(size_t rows, Shares& shares) : shares_(shares) {
    for (size_t row = 0; row < rows; ++row) {
      heap_.push_back(shares.now(row));
      make_exact(heap_.back());
    }
    std::make_heap(heap_.begin(), heap_.end(), is_less);
  }

  const Share& best() const { return heap_[0]; }

  void refresh_best() {
    heap_[0] = shares_.now(heap_[0].row);
    settle();
  }

  void remove_best() {
    heap_[0] = heap_.back();
    heap_.pop_back();
    settle();
  }

 private:
  static bool is_less(const Share& a, const Share& b) {
    return a.value != b.value ? a.value < b.value : a.row > b.row;
  }

  void make_exact(Share& share) {
    if (share.error > 0) share.value = shares_.exact(share);
    share.error = 0;
  }

  bool is_below(Share& a, Share& b) {
    if (!(std::abs(a.value - b.value) > a.error + b.error)) {
      make_exact(a);
      make_exact(b);
    }
    return is_less(a, b);
  }

  // Restores the heap order of the front.
  void settle() {
    size_t place = 0;
    for (size_t child = 1; child < heap_.size(); child = 2 * place + 1) {
      if (child + 1 < heap_.size() && is_below(heap_[child], heap_[child + 1])) ++child;
      if (!is_below(heap_[place], heap_[child])) return;
      std::swap(heap_[place], heap_[child]);
      place = child;
    }
  }

  Shares& shares_;
  std::vector<Share> heap_;
};

}  // namespace

GreedySteps select_greedily(const LossRows& rows, size_t count,
                            const std::vector<double>& reference) {
  const auto shares = make_shares(rows, reference);
  Candidates left(rows.size(), *shares);
  GreedySteps steps;
  while (steps.rows.size() < count) {
    const Share best = left.best();
    if (best.round < steps.rows.size()) {
      left.refresh_best();
      continue;
    }
    steps.rows.push_back(best.row);
    steps.shares.push_back(best.value);
    steps.errors.push_back(shares->error(best.row));
    shares->select(best.row);
    left.remove_best();
  }
  return steps;
}

std::vector<size_t> GreedySelection::select(const LossRows& rows, size_t count,
                                            const std::vector<double>& reference) {
  const size_t unchanged = reference == reference_ ? unchanged_steps(rows, count) : 0;
  if (unchanged < count) {
    // Selects some more, as the next call may ask for more.
    const size_t more = std::min(rows.size(), count + count / 16 + 8);
    steps_ = select_greedily(rows, more, reference);
    reference_ = reference;
  } else {
    for (auto* const column : {&steps_.shares, &steps_.errors}) column->resize(unchanged);
    steps_.rows.resize(unchanged);
    for (size_t& row : steps_.rows) row = place_of(rows, rows_[row]);
  }
  rows_ = rows;
  return {steps_.rows.begin(), steps_.rows.begin() + static_cast<ptrdiff_t>(count)};
}

size_t GreedySelection::unchanged_steps(const LossRows& rows, size_t count) const {
  LossRows come, gone;
  std::set_difference(rows.begin(), rows.end(), rows_.begin(), rows_.end(),
                      std::back_inserter(come));
  std::set_difference(rows_.begin(), rows_.end(), rows.begin(), rows.end(),
                      std::back_inserter(gone));
  auto end = steps_.rows.begin() + static_cast<ptrdiff_t>(steps_.rows.size());
  for (const Row& row : gone) end = std::find(steps_.rows.begin(), end, place_of(rows_, row));
  auto unchanged = static_cast<size_t>(end - steps_.rows.begin());
  for (const Row& row : come) {
    if (unchanged < count) break;
    unchanged = std::min(unchanged, steps_without(row));
  }
  return unchanged;
}

// A contribution is certainly smaller if the difference exceeds a multiple of the errors, since
// both the old and the new selection have such an error.
size_t GreedySelection::steps_without(const Row& row) const {
  constexpr double kErrors = 4;
  if (row.size() != 3) return 0;
  BoxCover cover(corner(row), corner(reference_));
  double share = cover.left();
  for (size_t step = 0; step < steps_.rows.size(); ++step) {
    const double least = steps_.shares[step] - kErrors * steps_.errors[step];
    const double error = kErrors * cover.error();
    if (!(share + error < least)) share = cover.left();
    if (!(share + error < least)) return step;
    cover.add(corner(rows_[steps_.rows[step]]));
  }
  return steps_.rows.size();
}

}  // namespace gallop::tune
