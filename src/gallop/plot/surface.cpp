#include "gallop/plot/surface.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "gallop/plot/triangulation.h"

namespace gallop::plot {

namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

// A sample with coordinates in [0, 1].
struct Sample {
  double x = 0, y = 0, value = 0;
  int64_t count = 1;
};

int64_t node(double place) { return std::llround(place * static_cast<double>(kGridSide)); }

// Samples with finite values; those at the same grid node are averaged.
std::vector<Sample> samples_of(const Surface& surface, const AxisTicks& x, const AxisTicks& y) {
  std::map<std::pair<int64_t, int64_t>, Sample> at;
  for (size_t i = 0; i < surface.values.size(); ++i) {
    const Sample one{x.place(surface.x[i]), y.place(surface.y[i]), surface.values[i]};
    const bool is_inside = one.x >= 0 && one.x <= 1 && one.y >= 0 && one.y <= 1;
    if (!is_inside || !std::isfinite(one.value)) continue;
    const auto [found, is_new] = at.try_emplace({node(one.x), node(one.y)}, one);
    if (is_new) continue;
    Sample& mean = found->second;
    const auto count = static_cast<double>(++mean.count);
    mean.x += (one.x - mean.x) / count;
    mean.y += (one.y - mean.y) / count;
    mean.value += (one.value - mean.value) / count;
  }
  std::vector<Sample> samples;
  for (const auto& [place, sample] : at) samples.push_back(sample);
  return samples;
}

// The cells of a drawing.
class Grid {
 public:
  Grid(int columns, int rows)
      : columns_(columns), rows_(rows), values_(static_cast<size_t>(columns * rows), kNothing) {}

  double x_of(int column) const { return (column + 0.5) / columns_; }
  double y_of(int row) const { return (row + 0.5) / rows_; }

  void fill(const Sample& a, const Sample& b, const Sample& c) {
    const double area = (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
    if (!(area > 0)) return;
    const auto [left, right] =
        cells(std::min({a.x, b.x, c.x}), std::max({a.x, b.x, c.x}), columns_);
    const auto [low, high] = cells(std::min({a.y, b.y, c.y}), std::max({a.y, b.y, c.y}), rows_);
    for (int row = low; row <= high; ++row) {
      for (int column = left; column <= right; ++column) {
        const double x = x_of(column) - a.x, y = y_of(row) - a.y;
        const double of_b = (x * (c.y - a.y) - y * (c.x - a.x)) / area;
        const double of_c = (y * (b.x - a.x) - x * (b.y - a.y)) / area;
        if (std::min({of_b, of_c, 1 - of_b - of_c}) < -kSlack) continue;
        value(row, column) = a.value + of_b * (b.value - a.value) + of_c * (c.value - a.value);
      }
    }
  }

  // The range of rows or columns whose centers are within [from, to].
  static std::pair<int, int> cells(double from, double to, int count) {
    return {std::max(0, static_cast<int>(std::ceil(from * count - 0.5 - kSlack))),
            std::min(count - 1, static_cast<int>(std::floor(to * count - 0.5 + kSlack)))};
  }

  double& value(int row, int column) {
    return values_[static_cast<size_t>(row) * static_cast<size_t>(columns_) +
                   static_cast<size_t>(column)];
  }
  std::vector<double> take() { return std::move(values_); }

 private:
  static constexpr double kSlack = 1e-9;

  int columns_, rows_;
  std::vector<double> values_;
};

void fill_triangles(const std::vector<Sample>& samples, Grid& grid) {
  std::vector<GridPoint> points;
  for (const Sample& sample : samples) points.push_back({node(sample.x), node(sample.y)});
  for (const auto& corners : triangulated(points)) {
    const auto at = [&](size_t i) { return samples[static_cast<size_t>(corners[i])]; };
    grid.fill(at(0), at(1), at(2));
  }
}

// Interpolates between samples on a line, sorted by position.
double between(const std::vector<std::pair<double, double>>& line, double place) {
  const auto after = std::lower_bound(line.begin(), line.end(),
                                      std::pair(place, -std::numeric_limits<double>::infinity()));
  if (after == line.end()) return kNothing;
  if (after->first == place) return after->second;
  if (after == line.begin()) return kNothing;
  const auto before = after - 1;
  return std::lerp(before->second, after->second,
                   (place - before->first) / (after->first - before->first));
}

// Each category is a stripe along the other axis.
void fill_stripes(const std::vector<Sample>& samples, size_t categories, bool along_x, int cells,
                  int stripe_cells, Grid& grid) {
  std::vector<std::vector<std::pair<double, double>>> lines(categories);
  const auto stripe_of = [categories](double place) {
    return std::min(categories - 1, static_cast<size_t>(place * static_cast<double>(categories)));
  };
  for (const Sample& sample : samples) {
    lines[stripe_of(along_x ? sample.y : sample.x)].emplace_back(along_x ? sample.x : sample.y,
                                                                 sample.value);
  }
  for (auto& line : lines) std::sort(line.begin(), line.end());
  for (int i = 0; i < cells; ++i) {
    for (int j = 0; j < stripe_cells; ++j) {
      const double place = along_x ? grid.x_of(i) : grid.y_of(i);
      const auto& line = lines[stripe_of(along_x ? grid.y_of(j) : grid.x_of(j))];
      (along_x ? grid.value(j, i) : grid.value(i, j)) = between(line, place);
    }
  }
}

void fill_fields(const std::vector<Sample>& samples, const AxisTicks& x, const AxisTicks& y,
                 int columns, int rows, Grid& grid) {
  const auto half_x = 0.5 / static_cast<double>(x.categories());
  const auto half_y = 0.5 / static_cast<double>(y.categories());
  for (const Sample& sample : samples) {
    const auto [left, right] = Grid::cells(sample.x - half_x, sample.x + half_x, columns);
    const auto [low, high] = Grid::cells(sample.y - half_y, sample.y + half_y, rows);
    for (int row = low; row <= high; ++row) {
      for (int column = left; column <= right; ++column) grid.value(row, column) = sample.value;
    }
  }
}

}  // namespace

std::vector<double> sampled(const Surface& surface, const AxisTicks& x, const AxisTicks& y,
                            int columns, int rows) {
  const std::vector<Sample> samples = samples_of(surface, x, y);
  Grid grid(columns, rows);
  if (x.categories() > 0 && y.categories() > 0) {
    fill_fields(samples, x, y, columns, rows, grid);
  } else if (y.categories() > 0) {
    fill_stripes(samples, y.categories(), /*along_x=*/true, columns, rows, grid);
  } else if (x.categories() > 0) {
    fill_stripes(samples, x.categories(), /*along_x=*/false, rows, columns, grid);
  } else {
    fill_triangles(samples, grid);
  }
  return grid.take();
}

}  // namespace gallop::plot
