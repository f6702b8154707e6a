#include "gallop/tune/pareto/greedy_selection.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "gallop/tune/pareto/box_cover.h"
#include "gallop/tune/random.h"

namespace gallop::tune {
namespace {

/// Each time the row that adds the most to those before it; of equal ones the first. Shares that
/// were smaller some time ago are not looked at again.
std::vector<size_t> selected_one_by_one(const LossRows& rows, size_t count,
                                        const std::vector<double>& reference) {
  struct Share {
    double value;
    size_t row, round;
  };
  std::vector<Share> left;
  for (size_t row = 0; row < rows.size(); ++row) {
    left.push_back({added_volume(rows[row], {}, reference), row, 0});
  }
  std::vector<size_t> selected;
  LossRows selected_rows;
  while (selected.size() < count) {
    const auto best = std::max_element(left.begin(), left.end(), [](const auto& a, const auto& b) {
      return a.value != b.value ? a.value < b.value : a.row > b.row;
    });
    if (best->round < selected.size()) {
      best->value = added_volume(rows[best->row], selected_rows, reference);
      best->round = selected.size();
      continue;
    }
    selected.push_back(best->row);
    selected_rows.push_back(rows[best->row]);
    left.erase(best);
  }
  return selected;
}

/// The same for two objectives, for which a row adds a rectangle.
std::vector<size_t> selected_by_rectangles(const LossRows& rows, size_t count,
                                           const std::vector<double>& reference) {
  LossRows corners(rows.size(), reference);
  std::vector<size_t> selected;
  while (selected.size() < count) {
    size_t best = rows.size();
    double most = -1;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (std::find(selected.begin(), selected.end(), i) != selected.end()) continue;
      const double area = (corners[i][0] - rows[i][0]) * (corners[i][1] - rows[i][1]);
      if (area > most) best = i;
      most = std::max(most, area);
    }
    selected.push_back(best);
    for (size_t i = 0; i < rows.size(); ++i) {
      const size_t objective = i < best ? 0 : 1;
      corners[i][objective] = std::min(corners[i][objective], rows[best][objective]);
    }
  }
  return selected;
}

/// Rows in lexicographic order none of which dominates another or equals it.
LossRows front_of(LossRows rows) {
  std::sort(rows.begin(), rows.end());
  LossRows front;
  for (const size_t index : nondominated(rows)) front.push_back(rows[index]);
  return front;
}

/// On a sphere, to 1 / steps if that is not 0, times a scale; each also with its objectives turned,
/// so that shares are equal but for their rounding.
LossRows random_front(Random& random, size_t objectives, size_t count, double steps, double scale) {
  LossRows rows(count);
  for (auto& row : rows) {
    double square = 0;
    for (size_t i = 0; i < objectives; ++i) {
      row.push_back(random.uniform());
      square += row[i] * row[i];
    }
    for (double& loss : row) {
      loss = 2 - loss / std::sqrt(square);
      if (steps > 0) loss = std::round(loss * steps) / steps;
      loss *= scale;
    }
  }
  for (size_t i = 0; i < count; ++i) {
    for (size_t turn = 1; turn < objectives; ++turn) {
      rows.push_back(rows[i]);
      std::rotate(rows.back().begin(), rows.back().begin() + static_cast<ptrdiff_t>(turn),
                  rows.back().end());
    }
  }
  return front_of(std::move(rows));
}

TEST(GreedySelection, MatchesThePlainAlgorithm) {
  for (const double scale : {1.0, -1.0, 1e-70, 1e-150, 1e150}) {
    for (const double steps : {0.0, 4.0, 7.0, 10.0, 1000.0}) {
      for (const size_t objectives : {2, 3, 4}) {
        SCOPED_TRACE(testing::Message()
                     << objectives << " objectives, " << steps << " steps, scale " << scale);
        Random random(4, static_cast<int64_t>(steps));
        const LossRows rows =
            random_front(random, objectives, objectives == 4 ? 10 : 60, steps, scale);
        const std::vector<double> reference = reference_point(rows);
        const size_t count = (rows.size() + 1) / 2;
        EXPECT_EQ(select_greedily(rows, count, reference).rows,
                  objectives == 2 ? selected_by_rectangles(rows, count, reference)
                                  : selected_one_by_one(rows, count, reference));
      }
    }
  }
}

TEST(GreedySelection, SelectsInfinitelyGoodRowsFirst) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const LossRows rows{{-kInfinity, 3, 1}, {0, -kInfinity, 1}, {0, 1, 0.5}, {1, 0, 0.5}, {1, 1, 0}};
  const std::vector<double> reference{4, 4, 4};
  for (size_t count = 0; count <= rows.size(); ++count) {
    EXPECT_EQ(select_greedily(rows, count, reference).rows,
              selected_one_by_one(rows, count, reference));
  }
}

TEST(GreedySelection, KeepsTheUnaffectedSelectionAfterChanges) {
  for (const double steps : {0.0, 8.0, 10.0}) {
    for (const size_t objectives : {2, 3, 4}) {
      SCOPED_TRACE(testing::Message() << objectives << " objectives, " << steps << " steps");
      Random random(6, static_cast<int64_t>(steps));
      const LossRows all = random_front(random, objectives, objectives == 4 ? 10 : 60, steps, 1);
      std::vector<bool> is_there(all.size(), true);
      GreedySelection selection;
      for (int i = 0; i < 150; ++i) {
        LossRows rows;
        for (size_t row = 0; row < all.size(); ++row) {
          if (is_there[row]) rows.push_back(all[row]);
        }
        const size_t count = std::min(rows.size(), rows.size() / 4 + random.below(3));
        const std::vector<double> reference(objectives, i < 100 ? 2.5 : 2.25);
        ASSERT_EQ(selection.select(rows, count, reference),
                  select_greedily(rows, count, reference).rows);
        for (size_t changes = random.below(3); changes > 0; --changes) {
          const size_t row = random.below(all.size());
          is_there[row] = !is_there[row];
        }
      }
    }
  }
}

TEST(BoxCover, IsAccurateWithinItsError) {
  for (int64_t trial = 0; trial < 40; ++trial) {
    Random random(5, trial);
    const auto row = [&] {
      return BoxCover::Corner{random.uniform(), random.uniform(), random.uniform()};
    };
    const BoxCover::Corner own = row();
    const std::vector<double> reference{1, 1, 0.9};
    BoxCover cover(own, {1, 1, 0.9});
    LossRows others;
    for (int i = 0; i < 60; ++i) {
      const double added = added_volume(std::vector(own.begin(), own.end()), others, reference);
      if (own[2] < 0.9) {
        ASSERT_LE(std::abs(cover.left() - added), cover.error());
        ASSERT_LT(cover.error(), 1e-12);
      }
      const BoxCover::Corner other = row();
      cover.add(other);
      others.emplace_back(other.begin(), other.end());
    }
    EXPECT_EQ(cover.rows(), 60);
  }
}

}  // namespace
}  // namespace gallop::tune
