#include "gallop/plot/ticks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace gallop::plot {

namespace {

// Rounds up to one of 1, 2, 5, 10, 20, ...
double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1., 2., 5.}) {
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

}  // namespace

std::string tick_label(double value) {
  const bool small = std::abs(value) < 0.001 && value != 0;
  std::string text = small ? fmt::format("{:.3e}", value) : fmt::format("{:.6g}", value);
  const auto e = text.find('e');
  if (e == std::string::npos) return text;
  const std::string exponent = std::to_string(std::stoi(text.substr(e + 1)));
  text.resize(e);
  if (text.find('.') != std::string::npos) text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + "e" + exponent;
}

std::string short_label(double value) {
  return tick_label(std::stod(fmt::format("{:.3g}", value)));
}

AxisTicks::AxisTicks(const Axis& axis, const std::vector<double>& values, int most, bool widen,
                     double margin)
    : log_(axis.scale == Scale::kLog && axis.categories.empty()),
      margin_(axis.categories.empty() ? margin : 0),
      categories_(axis.categories.size()) {
  if (categories_ > 0) {
    low_ = -0.5;
    high_ = static_cast<double>(categories_) - 0.5;
    for (size_t i = 0; i < categories_; ++i) {
      ticks_.push_back({static_cast<double>(i), axis.categories[i]});
    }
    return;
  }
  find_bounds(axis, values);
  if (log_) {
    make_log(axis, std::max(2, most));
  } else {
    make_linear(axis, std::max(2, most), widen);
  }
}

void AxisTicks::find_bounds(const Axis& axis, const std::vector<double>& values) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double value : values) {
    if (!std::isfinite(value) || (log_ && value <= 0)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (low > high) {  // No data.
    low = log_ ? 1 : 0;
    high = log_ ? 10 : 1;
  }
  low_ = axis.min.value_or(low);
  high_ = axis.max.value_or(high);
  // Values that differ by rounding are equal: between them there is no room for ticks.
  constexpr double kRounding = 1e-12;
  const bool is_given = axis.min && axis.max;
  const double least = is_given ? 0 : kRounding * std::max(std::abs(low_), std::abs(high_));
  if (high_ - low_ > least) return;
  if (log_) {
    low_ /= 2;
    high_ *= 2;
  } else if (low_ == 0) {
    high_ = 1;
  } else {
    low_ = std::min(0.0, 1.25 * low_);
    high_ = std::max(0.0, 1.25 * high_);
  }
}

void AxisTicks::make_linear(const Axis& axis, int most, bool widen) {
  const bool near_zero = low_ > 0 && low_ < 0.4 * high_;
  if (widen && near_zero && !axis.min) low_ = 0;
  const double least = round_step((high_ - low_) / most);
  const double step = axis.whole ? std::max(1.0, least) : least;
  if (widen && !axis.min) low_ = step * std::floor(low_ / step + 1e-9);
  if (widen && !axis.max) high_ = step * std::ceil(high_ / step - 1e-9);
  const double first = std::ceil(low_ / step - 1e-9);
  // If bounds differed by rounding, steps beyond 2^53 could not be counted.
  for (int i = 0; i <= 2 * most + 2; ++i) {
    const double value = (first + i) * step + 0.0;  // Avoids -0.
    if (!(value <= high_ + 1e-9 * step)) return;
    ticks_.push_back({value, tick_label(value)});
  }
}

void AxisTicks::make_log(const Axis& axis, int most) {
  const double first = std::floor(std::log10(low_)), last = std::ceil(std::log10(high_));
  const double decades = std::log10(high_ / low_);
  const double stride = std::max(1.0, std::ceil(decades / most));
  const std::vector<double> factors =
      decades > 2 ? std::vector<double>{1} : std::vector<double>{1, 2, 5};
  for (double power = first; power <= last; power += stride) {
    for (const double factor : factors) {
      const double value = factor * std::pow(10, power);
      if (value < low_ * (1 - 1e-9) || value > high_ * (1 + 1e-9)) continue;
      ticks_.push_back({value, tick_label(value)});
    }
  }
  if (ticks_.size() > 1) return;
  ticks_.clear();  // Within less than a decade, ticks are those of a linear axis.
  make_linear(axis, most, /*widen=*/false);
}

double AxisTicks::place(double value) const {
  if (!std::isfinite(value) || (log_ && value <= 0)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const double share =
      log_ ? std::log(value / low_) / std::log(high_ / low_) : (value - low_) / (high_ - low_);
  return margin_ + (1 - 2 * margin_) * share;
}

namespace {

// Margin for marks at the ends of an axis.
constexpr double kMargin = 0.03;

std::vector<double> shown(const XyPlot& plot, std::vector<double> Series::*of_series,
                          std::vector<double> Points::*of_points,
                          std::vector<double> Surface::*of_surface) {
  std::vector<double> values;
  const auto add = [&values](const std::vector<double>& more) {
    values.insert(values.end(), more.begin(), more.end());
  };
  for (const Series& series : plot.series) add(series.*of_series);
  for (const Points& points : plot.points) add(points.*of_points);
  if (plot.surface) add((*plot.surface).*of_surface);
  return values;
}

}  // namespace

AxisTicks x_ticks(const XyPlot& plot, int most) {
  std::vector<double> values = shown(plot, &Series::x, &Points::x, &Surface::x);
  for (const Mark& mark : plot.marks) values.push_back(mark.x);
  return {plot.x, values, most, /*widen=*/false, plot.points.empty() ? 0 : kMargin};
}

AxisTicks y_ticks(const XyPlot& plot, int most) {
  return {plot.y, shown(plot, &Series::y, &Points::y, &Surface::y), most,
          /*widen=*/!plot.surface, plot.points.empty() ? 0 : kMargin};
}

AxisTicks axis_ticks(const ParallelPlot& plot, size_t axis, int most) {
  std::vector<double> values;
  for (const auto& row : plot.rows) values.push_back(row[axis]);
  return {plot.axes[axis], values, most, /*widen=*/false};
}

}  // namespace gallop::plot
