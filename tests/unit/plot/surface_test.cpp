#include "gallop/plot/surface.h"

#include <cmath>
#include <fstream>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gallop/base/philox.h"
#include "gallop/plot/triangulation.h"
#include "unit/fixtures.h"

namespace gallop::plot {
namespace {

constexpr int kColumns = 16, kRows = 10;

AxisTicks unit_axis(Scale scale = Scale::kLinear, double low = 0, double high = 1) {
  return AxisTicks({.label = "", .scale = scale, .min = low, .max = high}, {}, 4, false);
}

AxisTicks categories(std::vector<std::string> names) {
  return AxisTicks({.label = "", .categories = std::move(names)}, {}, 4, false);
}

double middle(int cell, int cells) { return (cell + 0.5) / cells; }

double at(const std::vector<double>& values, int column, int row, int columns = kColumns) {
  return values[static_cast<size_t>(row * columns + column)];
}

std::vector<GridPoint> random_points(size_t count, int64_t side) {
  Philox random(5, Purpose::kSample, 0, count);
  std::set<std::pair<int64_t, int64_t>> places;
  while (places.size() < count) {
    places.insert({static_cast<int64_t>(random() % static_cast<uint64_t>(side)),
                   static_cast<int64_t>(random() % static_cast<uint64_t>(side))});
  }
  std::vector<GridPoint> points;
  for (const auto& [x, y] : places) points.push_back({x, y});
  return points;
}

double turn(const GridPoint& a, const GridPoint& b, const GridPoint& c) {
  return static_cast<double>((b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x));
}

// By the definition: the sign of a determinant (de Berg et al., "Computational geometry", ch. 9).
bool lies_in_circle(const GridPoint& a, const GridPoint& b, const GridPoint& c,
                    const GridPoint& p) {
  long double m[3][3];
  const GridPoint* corners[] = {&a, &b, &c};
  for (size_t i = 0; i < 3; ++i) {
    m[i][0] = static_cast<long double>(corners[i]->x - p.x);
    m[i][1] = static_cast<long double>(corners[i]->y - p.y);
    m[i][2] = m[i][0] * m[i][0] + m[i][1] * m[i][1];
  }
  return m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) -
             m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
             m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]) >
         0;
}

void expect_delaunay(const std::vector<GridPoint>& points, double hull_area) {
  double area = 0;
  for (const auto& corners : triangulated(points)) {
    const GridPoint &a = points[static_cast<size_t>(corners[0])],
                    &b = points[static_cast<size_t>(corners[1])],
                    &c = points[static_cast<size_t>(corners[2])];
    ASSERT_GT(turn(a, b, c), 0);
    area += turn(a, b, c) / 2;
    for (const GridPoint& other : points) EXPECT_FALSE(lies_in_circle(a, b, c, other));
  }
  EXPECT_DOUBLE_EQ(area, hull_area);
}

// Twice the area within the points' hull, by Andrew's chains (1979).
double area_of_hull(std::vector<GridPoint> points) {
  std::sort(points.begin(), points.end(), [](const GridPoint& a, const GridPoint& b) {
    return std::pair(a.x, a.y) < std::pair(b.x, b.y);
  });
  double area = 0;
  for (const bool upper : {false, true}) {
    std::vector<GridPoint> chain;
    for (const GridPoint& point : points) {
      while (chain.size() > 1 &&
             (turn(chain[chain.size() - 2], chain.back(), point) > 0) == upper) {
        chain.pop_back();
      }
      chain.push_back(point);
    }
    for (size_t i = 1; i < chain.size(); ++i) {
      const double part = static_cast<double>(chain[i].x - chain[i - 1].x) *
                          static_cast<double>(chain[i].y + chain[i - 1].y) / 2;
      area += upper ? part : -part;
    }
  }
  return area;
}

TEST(Triangulated, IsDelaunayForRandomPoints) {
  for (const size_t count : {3, 4, 10, 60, 300}) {
    const auto points = random_points(count, kGridSide + 1);
    expect_delaunay(points, area_of_hull(points));
  }
}

// Many points on one circle and on one line.
TEST(Triangulated, IsDelaunayForALattice) {
  std::vector<GridPoint> points;
  for (int64_t x = 0; x < 9; ++x) {
    for (int64_t y = 0; y < 7; ++y) points.push_back({x * 2048, y * 2048});
  }
  expect_delaunay(points, 8. * 6 * 2048 * 2048);
  for (const size_t count : {20, 100}) {
    const auto few = random_points(count, 12);
    expect_delaunay(few, area_of_hull(few));
  }
}

TEST(Triangulated, FindsNoTriangleOnALine) {
  EXPECT_TRUE(triangulated({}).empty());
  EXPECT_TRUE(triangulated({{1, 1}}).empty());
  EXPECT_TRUE(triangulated({{1, 1}, {2, 5}}).empty());
  EXPECT_TRUE(triangulated({{1, 1}, {3, 3}, {2, 2}, {9, 9}}).empty());
}

TEST(Sampled, ReproducesAPlaneExactly) {
  const auto plane = [](double x, double y) { return 3 - 2 * x + 5 * y; };
  Surface surface;
  for (const GridPoint& point : random_points(50, kGridSide)) {
    surface.x.push_back(static_cast<double>(point.x) / kGridSide + 1e-5);
    surface.y.push_back(static_cast<double>(point.y) / kGridSide);
    surface.values.push_back(plane(surface.x.back(), surface.y.back()));
  }
  for (const double corner : {0., 1.}) {  // With these no cell is outside.
    surface.x.insert(surface.x.end(), {0, 1});
    surface.y.insert(surface.y.end(), {corner, corner});
    surface.values.insert(surface.values.end(), {plane(0, corner), plane(1, corner)});
  }
  const auto values = sampled(surface, unit_axis(), unit_axis(), kColumns, kRows);
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < kColumns; ++column) {
      EXPECT_NEAR(at(values, column, row), plane(middle(column, kColumns), middle(row, kRows)),
                  1e-12);
    }
  }
}

// Fixture of tests/parity/make_surface.py.
TEST(Sampled, AgreesWithSciPy) {
  const auto stored = nlohmann::json::parse(std::ifstream(fixtures() / "surface.json"));
  Surface surface{stored.at("x"), stored.at("y"), stored.at("values")};
  const int columns = stored.at("columns"), rows = stored.at("rows");
  const auto values = sampled(surface, unit_axis(), unit_axis(), columns, rows);
  int holes = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto& expected = stored.at("sampled")[i];
    holes += expected.is_null() ? 1 : 0;
    ASSERT_EQ(std::isnan(values[i]), expected.is_null()) << i;
    if (!expected.is_null()) {
      EXPECT_NEAR(values[i], expected.get<double>(), 1e-9) << i;
    }
  }
  EXPECT_GT(holes, 10);
  EXPECT_LT(holes, columns * rows / 2);
}

TEST(Sampled, IsEmptyOutsideOfTheTrianglesAndForALine) {
  const Surface triangle{{0, 1, 0}, {0, 0, 1}, {1, 1, 1}};
  const auto values = sampled(triangle, unit_axis(), unit_axis(), 4, 4);
  EXPECT_EQ(at(values, 0, 0, 4), 1);
  EXPECT_TRUE(std::isnan(at(values, 3, 3, 4)));
  const Surface line{{0, 0.5, 1}, {0, 0.5, 1}, {1, 2, 3}};
  for (const double value : sampled(line, unit_axis(), unit_axis(), 4, 4)) {
    EXPECT_TRUE(std::isnan(value));
  }
}

TEST(Sampled, IsLinearInTheLogarithmAndOmitsNonFiniteValues) {
  const Surface surface{{1, 100, 1, 100, 10}, {0, 0, 1, 1, 0.5}, {0, 2, 0, 2, NAN}};
  const auto values = sampled(surface, unit_axis(Scale::kLog, 1, 100), unit_axis(), 4, 4);
  for (int row = 0; row < 4; ++row) EXPECT_NEAR(at(values, 1, row, 4), 0.75, 1e-12);
}

TEST(Sampled, AveragesDuplicatePoints) {
  const Surface surface{{0, 1, 0, 1, 0}, {0, 0, 1, 1, 0}, {1, 1, 1, 1, 9}};
  const auto values = sampled(surface, unit_axis(), unit_axis(), 2, 2);
  EXPECT_GT(at(values, 0, 0, 2), 2);
  EXPECT_LT(at(values, 0, 0, 2), 5);
}

// Between two categories there is nothing to interpolate.
TEST(Sampled, GivesEachCategoryAStripe) {
  const Surface surface{{0, 1, 0.5, 0.25}, {0, 0, 1, 1}, {2, 4, 7, 7}};
  const auto values = sampled(surface, unit_axis(), categories({"a", "b"}), 4, 4);
  EXPECT_NEAR(at(values, 0, 0, 4), 2.25, 1e-12);
  EXPECT_NEAR(at(values, 3, 1, 4), 3.75, 1e-12);
  EXPECT_TRUE(std::isnan(at(values, 0, 2, 4)));
  EXPECT_EQ(at(values, 1, 3, 4), 7);
  const Surface turned{surface.y, surface.x, surface.values};
  const auto upright = sampled(turned, categories({"a", "b"}), unit_axis(), 4, 4);
  EXPECT_NEAR(at(upright, 1, 3, 4), 3.75, 1e-12);
  EXPECT_TRUE(std::isnan(at(upright, 2, 0, 4)));
}

TEST(Sampled, GivesEachPairOfCategoriesAField) {
  const Surface surface{{0, 0, 2}, {0, 0, 1}, {2, 4, 8}};
  const auto values = sampled(surface, categories({"a", "b", "c"}), categories({"d", "e"}), 6, 4);
  EXPECT_EQ(at(values, 0, 0, 6), 3);
  EXPECT_EQ(at(values, 1, 1, 6), 3);
  EXPECT_TRUE(std::isnan(at(values, 2, 0, 6)));
  EXPECT_EQ(at(values, 5, 3, 6), 8);
}

}  // namespace
}  // namespace gallop::plot
