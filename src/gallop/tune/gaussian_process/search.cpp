#include "gallop/tune/gaussian_process/search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "gallop/tune/gaussian_process/lbfgs.h"
#include "gallop/tune/gaussian_process/sample.h"
#include "gallop/tune/sampler.h"

namespace gallop::tune {

namespace {

using Coordinate = std::vector<double>;
using Dimension = Coordinates::Dimension;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr LbfgsLimits kClimb{.evaluations = 60, .gradient = 1e-2, .relative_decrease = 1e-7};
constexpr size_t kTogether = 64;
constexpr int kRounds = 10;
constexpr size_t kCandidatesReturned = 50;
constexpr double kGain = 1e-4;  // Minimum improvement for another round.

struct Place {
  Coordinate coordinates;  // Includes coordinates of inactive parameters.
  double value = -kInfinity;
};

class Climb {
 public:
  Climb(const Acquisition& acquisition, const Coordinates& coordinates)
      : acquisition_(acquisition), coordinates_(coordinates), lengths_(acquisition.lengths()) {
    for (const Dimension& dimension : coordinates.dimensions()) {
      (dimension.values.empty() ? has_gradient_ : has_values_) = true;
      has_values_ = has_values_ || dimension.count > 0;
    }
  }

  void values(std::vector<Place>& places) const;
  void climb(std::vector<Place>& places) const;

 private:
  bool is_allowed(const Coordinate& at) const {
    const Space& space = coordinates_.space();
    return space.constraints().empty() || space.allows(coordinates_.decoded(at));
  }
  void follow_gradients(std::vector<Place>& places) const;
  Lbfgs gradient_search(const Place& place) const;
  void try_values(std::vector<Place>& places, size_t dimension) const;
  std::vector<double> other_values(const Place& place, size_t dimension) const;

  const Acquisition& acquisition_;
  const Coordinates& coordinates_;
  std::vector<double> lengths_;
  bool has_gradient_ = false, has_values_ = false;
};

Matrix rows_of(std::span<const Coordinate> points, size_t dimensions) {
  Matrix rows(points.size(), dimensions);
  for (size_t i = 0; i < points.size(); ++i) {
    std::copy(points[i].begin(), points[i].end(), rows.row(i));
  }
  return rows;
}

// Evaluates the places at their rounded coordinates; disallowed ones keep -infinity.
void Climb::values(std::vector<Place>& places) const {
  std::vector<Coordinate> points;
  std::vector<size_t> owners;
  for (size_t i = 0; i < places.size(); ++i) {
    if (!is_allowed(places[i].coordinates)) continue;
    points.push_back(coordinates_.rounded(places[i].coordinates));
    owners.push_back(i);
  }
  // In small batches, so that intermediate results stay in the cache.
  for (size_t begin = 0; begin < points.size(); begin += kTogether) {
    const size_t count = std::min(kTogether, points.size() - begin);
    const std::vector<double> found =
        acquisition_.evaluate(rows_of({points.data() + begin, count}, lengths_.size()), nullptr);
    for (size_t i = 0; i < count; ++i) places[owners[begin + i]].value = found[i];
  }
}

// Scales coordinates by the length scales. Dimensions without a gradient are fixed.
Lbfgs Climb::gradient_search(const Place& place) const {
  const Point point = coordinates_.decoded(place.coordinates);
  const Coordinate shown = coordinates_.encoded(point);
  std::vector<double> start, lower, upper;
  for (size_t d = 0; d < shown.size(); ++d) {
    const Dimension& dimension = coordinates_.dimensions()[d];
    const bool moves = dimension.values.empty() && !std::isnan(point[dimension.parameter]);
    start.push_back(shown[d] / lengths_[d]);
    lower.push_back(moves ? 0 : start[d]);
    upper.push_back(moves ? 1 / lengths_[d] : start[d]);
  }
  return Lbfgs(std::move(start), std::move(lower), std::move(upper), kClimb);
}

void Climb::follow_gradients(std::vector<Place>& places) const {
  std::vector<Lbfgs> searches;
  for (const Place& place : places) searches.push_back(gradient_search(place));
  const size_t dimensions = lengths_.size();
  while (true) {
    std::vector<Coordinate> points;
    std::vector<Lbfgs*> owners;
    for (Lbfgs& search : searches) {
      if (search.is_done()) continue;
      Coordinate point = search.wanted();
      for (size_t d = 0; d < dimensions; ++d) point[d] *= lengths_[d];
      if (is_allowed(point)) {
        points.push_back(std::move(point));
        owners.push_back(&search);
      } else {
        search.tell(kInfinity, point);
      }
    }
    if (points.empty()) {
      if (std::all_of(searches.begin(), searches.end(),
                      [](const Lbfgs& search) { return search.is_done(); })) {
        break;
      }
      continue;
    }
    Matrix gradients;
    const std::vector<double> found =
        acquisition_.evaluate(rows_of(points, dimensions), &gradients);
    for (size_t i = 0; i < owners.size(); ++i) {
      for (size_t d = 0; d < dimensions; ++d) gradients.at(i, d) *= -lengths_[d];
      owners[i]->tell(-found[i], {gradients.row(i), dimensions});
    }
  }
  std::vector<Place> reached = places;
  for (size_t i = 0; i < places.size(); ++i) {
    const Coordinate shown = coordinates_.rounded(places[i].coordinates);
    for (size_t d = 0; d < dimensions; ++d) {
      const double moved = searches[i].best()[d] * lengths_[d];
      // An unchanged coordinate keeps the unrounded value of an inactive parameter.
      if (searches[i].best()[d] != shown[d] / lengths_[d]) reached[i].coordinates[d] = moved;
    }
    reached[i].value = -kInfinity;
  }
  values(reached);
  for (size_t i = 0; i < places.size(); ++i) {
    if (reached[i].value > places[i].value) places[i] = std::move(reached[i]);
  }
}

std::vector<double> Climb::other_values(const Place& place, size_t dimension) const {
  const Dimension& own = coordinates_.dimensions()[dimension];
  const double now = coordinates_.rounded(place.coordinates)[dimension];
  std::vector<double> result;
  for (const double value : own.values) {
    if (value != now) result.push_back(value);
  }
  if (own.values.empty()) {
    for (int64_t distance = 1; distance < own.count; distance *= 2) {
      for (const int64_t signed_distance : {-distance, distance}) {
        const double value = coordinates_.neighbor(dimension, now, signed_distance);
        if (value != now) result.push_back(value);
      }
    }
  }
  return result;
}

void Climb::try_values(std::vector<Place>& places, size_t dimension) const {
  const size_t parameter = coordinates_.dimensions()[dimension].parameter;
  std::vector<Place> tried;
  std::vector<size_t> owners;
  for (size_t i = 0; i < places.size(); ++i) {
    const Point point = coordinates_.decoded(places[i].coordinates);
    if (std::isnan(point[parameter])) continue;
    for (const double value : other_values(places[i], dimension)) {
      tried.push_back({places[i].coordinates});
      tried.back().coordinates[dimension] = value;
      owners.push_back(i);
    }
  }
  values(tried);
  for (size_t i = 0; i < tried.size(); ++i) {
    Place& place = places[owners[i]];
    if (tried[i].value > place.value) place = std::move(tried[i]);
  }
}

void Climb::climb(std::vector<Place>& places) const {
  std::vector<Place> moving = std::move(places);
  places.clear();
  for (int round = 0; round < kRounds && !moving.empty(); ++round) {
    const std::vector<Place> before = moving;
    if (has_gradient_) follow_gradients(moving);
    for (size_t d = 0; has_values_ && d < lengths_.size(); ++d) {
      if (coordinates_.dimensions()[d].count > 1) try_values(moving, d);
    }
    std::vector<Place> still_moving;
    for (size_t i = 0; i < moving.size(); ++i) {
      const bool moves = has_values_ && moving[i].value > before[i].value + kGain;
      (moves ? still_moving : places).push_back(std::move(moving[i]));
    }
    moving = std::move(still_moving);
  }
  for (Place& place : moving) places.push_back(std::move(place));
}

std::vector<Place> candidates(const Coordinates& coordinates, size_t count, Random& random) {
  const Matrix sample = even_sample(count, coordinates.dimensions().size(), random);
  std::vector<Place> places(count);
  for (size_t i = 0; i < count; ++i) {
    for (size_t d = 0; d < sample.columns(); ++d) {
      places[i].coordinates.push_back(coordinates.drawn(d, sample.at(i, d)));
    }
  }
  return places;
}

// Resamples few coordinates of good points: if only one or two coordinates of such a point are
// wrong, a space-filling sample of many dimensions does not find it. Each coordinate is resampled
// with probability 1 / dimensions, and at least one is.
void move_around(std::span<Place> places, const std::vector<Coordinate>& good, Random& random) {
  for (size_t i = 0; i < places.size(); ++i) {
    const Coordinate& around = good[random.below(good.size())];
    const size_t dimensions = around.size(), redrawn = random.below(dimensions);
    for (size_t d = 0; d < dimensions; ++d) {
      if (d != redrawn && random.below(dimensions) > 0) places[i].coordinates[d] = around[d];
    }
  }
}

// At most `count` of the points, chosen at random.
std::vector<Place> some_of(std::vector<Coordinate> good, size_t count, Random& random) {
  std::vector<Place> places;
  for (size_t i = 0; i < std::min(count, good.size()); ++i) {
    if (good.size() > count) std::swap(good[i], good[i + random.below(good.size() - i)]);
    places.push_back({good[i]});
  }
  return places;
}

// The best place and others without replacement, with probability proportional to the exponential
// of their value (Gumbel top-k).
std::vector<Place> drawn_places(const std::vector<Place>& places, size_t count, Random& random) {
  std::vector<std::pair<double, size_t>> ranked;
  for (size_t i = 0; i < places.size(); ++i) {
    const double noise = -std::log(-std::log(std::max(random.uniform(), 1e-300)));
    if (places[i].value > -kInfinity) ranked.emplace_back(-(places[i].value + noise), i);
  }
  std::sort(ranked.begin(), ranked.end());
  const auto best = static_cast<size_t>(
      std::max_element(places.begin(), places.end(),
                       [](const Place& a, const Place& b) { return a.value < b.value; }) -
      places.begin());
  std::vector<Place> result{places[best]};
  for (const auto& [rank, index] : ranked) {
    if (result.size() < count && index != best) result.push_back(places[index]);
  }
  return result;
}

}  // namespace

std::vector<Point> search(const Acquisition& acquisition, const Coordinates& coordinates,
                          const std::vector<std::vector<double>>& good, Random random,
                          const SearchSettings& settings) {
  const Climb climb(acquisition, coordinates);
  std::vector<Place> places = candidates(coordinates, settings.candidates, random);
  if (!good.empty()) {
    move_around(std::span(places).first(std::min(settings.around_good, places.size())), good,
                random);
  }
  climb.values(places);
  std::vector<Place> known = some_of(good, std::max<size_t>(settings.starts / 2, 1), random);
  climb.values(known);
  std::erase_if(known, [](const Place& place) { return place.value == -kInfinity; });
  std::erase_if(places, [](const Place& place) { return place.value == -kInfinity; });
  if (places.empty()) {
    places.push_back({coordinates.encoded(random_point(coordinates.space(), random))});
    climb.values(places);
  }
  const size_t drawn = settings.starts - std::min(settings.starts - 1, known.size());
  std::vector<Place> starts = drawn_places(places, drawn, random);
  starts.insert(starts.end(), known.begin(), known.end());
  climb.climb(starts);
  std::stable_sort(starts.begin(), starts.end(),
                   [](const Place& a, const Place& b) { return a.value > b.value; });
  const size_t more = std::min(places.size(), kCandidatesReturned);
  std::partial_sort(places.begin(), places.begin() + static_cast<ptrdiff_t>(more), places.end(),
                    [](const Place& a, const Place& b) { return a.value > b.value; });
  starts.insert(starts.end(), places.begin(), places.begin() + static_cast<ptrdiff_t>(more));
  std::vector<Point> result;
  for (const Place& place : starts) result.push_back(coordinates.decoded(place.coordinates));
  return result;
}

}  // namespace gallop::tune
