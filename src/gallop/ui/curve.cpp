#include "gallop/ui/curve.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::ui {

namespace {

constexpr const char* kAxes[] = {"step", "wall", "relative", "samples", "tokens"};

// The indices of the minimum of one line, the maximum of another, and a gap within a range.
struct Extremes {
  static constexpr size_t kNone = std::numeric_limits<size_t>::max();
  size_t least = kNone, most = kNone, gap = kNone;

  void append_to(std::vector<size_t>& chosen) const {
    size_t places[] = {least, most, gap};
    std::sort(std::begin(places), std::end(places));
    for (const size_t place : places) {
      if (place != kNone && (chosen.empty() || chosen.back() < place)) chosen.push_back(place);
    }
  }
};

Extremes extremes_of(std::span<const double> low, std::span<const double> high, size_t begin,
                     size_t end) {
  Extremes found;
  for (size_t i = begin; i < end; ++i) {
    if (!std::isfinite(low[i]) || !std::isfinite(high[i])) {
      if (found.gap == Extremes::kNone) found.gap = i;
      continue;
    }
    if (found.least == Extremes::kNone || low[i] < low[found.least]) found.least = i;
    if (found.most == Extremes::kNone || high[i] > high[found.most]) found.most = i;
  }
  return found;
}

bool is_finite(double value) { return std::isfinite(value); }

// The indices of a line's finite points, from left to right.
std::vector<size_t> finite_places(const Line& line) {
  std::vector<size_t> places;
  for (size_t i = 0; i < line.x.size(); ++i) {
    if (std::isfinite(line.y[i]) && std::isfinite(line.x[i])) places.push_back(i);
  }
  const auto is_left = [&](size_t a, size_t b) { return line.x[a] < line.x[b]; };
  // The system clock may have been set back.
  if (!std::is_sorted(places.begin(), places.end(), is_left)) {
    std::stable_sort(places.begin(), places.end(), is_left);
  }
  return places;
}

// Interpolates along a line at ascending x.
class Walker {
 public:
  explicit Walker(const Line& line) {
    for (const size_t i : finite_places(line)) {
      // If there are several points at the same x, the last one is used.
      if (!x_.empty() && x_.back() == line.x[i]) {
        y_.back() = line.y[i];
      } else {
        x_.push_back(line.x[i]);
        y_.push_back(line.y[i]);
      }
    }
  }

  const std::vector<double>& x() const { return x_; }

  // NaN outside the line's range.
  double at(double x) {
    while (next_ < x_.size() && x_[next_] < x) ++next_;
    if (next_ == x_.size()) return std::numeric_limits<double>::quiet_NaN();
    if (x_[next_] == x) return y_[next_];
    if (next_ == 0) return std::numeric_limits<double>::quiet_NaN();
    const double share = (x - x_[next_ - 1]) / (x_[next_] - x_[next_ - 1]);
    return y_[next_ - 1] + share * (y_[next_] - y_[next_ - 1]);
  }

 private:
  std::vector<double> x_, y_;
  size_t next_ = 0;
};

void append(Band& band, double x, const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  const double mean = sum / count;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double deviation = values.size() > 1 ? std::sqrt(squares / (count - 1)) : 0;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  band.x.push_back(x);
  band.mean.push_back(mean);
  band.low.push_back(mean - deviation);
  band.high.push_back(mean + deviation);
  band.least.push_back(*least);
  band.most.push_back(*most);
}

}  // namespace

CurveAxis parse_axis(const std::string& text) {
  const auto* const found = std::find(std::begin(kAxes), std::end(kAxes), text);
  if (found == std::end(kAxes)) {
    throw UsageError(fmt::format("'{}' is not an axis; valid are {}", printable(text),
                                 join_names({std::begin(kAxes), std::end(kAxes)}, "and")));
  }
  return static_cast<CurveAxis>(found - std::begin(kAxes));
}

const char* axis_name(CurveAxis axis) { return kAxes[static_cast<size_t>(axis)]; }

std::vector<double> smoothed(std::span<const double> values, double smoothing) {
  std::vector<double> result(values.begin(), values.end());
  const double weight = std::clamp(smoothing, 0.0, 1.0);
  const auto is_first = [&](double value) { return value == values.front(); };
  if (values.empty() || std::all_of(values.begin(), values.end(), is_first)) return result;
  double last = 0, count = 0;
  // The missing part of the weights' sum (bias correction); it vanishes after many values.
  double sum = 0;
  for (double& value : result) {
    if (!std::isfinite(value)) continue;
    last = last * weight + (1 - weight) * value;
    if (sum != 1) sum = weight == 1 ? 1 : 1 - std::pow(weight, ++count);
    value = last / sum;
  }
  return result;
}

std::vector<size_t> reduced(std::span<const double> values, size_t most) {
  return reduced_band(values, values, most);
}

std::vector<size_t> reduced_band(std::span<const double> low, std::span<const double> high,
                                 size_t most) {
  std::vector<size_t> chosen;
  const size_t size = low.size();
  if (size <= most) {
    for (size_t i = 0; i < size; ++i) chosen.push_back(i);
    return chosen;
  }
  const bool has_gaps = !std::all_of(low.begin(), low.end(), is_finite) ||
                        !std::all_of(high.begin(), high.end(), is_finite);
  const size_t parts = (most - 2) / (has_gaps ? 3 : 2);
  chosen.push_back(0);
  for (size_t part = 0; part < parts; ++part) {
    // Buckets between the first and the last point, which are always kept.
    const size_t begin = 1 + (size - 2) * part / parts, end = 1 + (size - 2) * (part + 1) / parts;
    extremes_of(low, high, begin, end).append_to(chosen);
  }
  chosen.push_back(size - 1);
  return chosen;
}

Band band_of(const std::vector<Line>& lines) {
  std::vector<Walker> walkers;
  std::vector<double> places;
  for (const Line& line : lines) {
    const Walker& walker = walkers.emplace_back(line);
    const auto middle = static_cast<std::ptrdiff_t>(places.size());
    places.insert(places.end(), walker.x().begin(), walker.x().end());
    std::inplace_merge(places.begin(), places.begin() + middle, places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
  }
  Band band;
  std::vector<double> values;
  for (const double x : places) {
    values.clear();
    for (Walker& walker : walkers) {
      const double value = walker.at(x);
      if (std::isfinite(value)) values.push_back(value);
    }
    if (!values.empty()) append(band, x, values);
  }
  return band;
}

}  // namespace gallop::ui
