#include "gallop/plot/ticks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace gallop::plot {

namespace {

// The smallest of 1, 2, 5, 10, 20, ... that is no smaller.
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

AxisTicks::AxisTicks(const Axis& axis, const std::vector<double>& values, int most, bool widen)
    : log_(axis.scale == Scale::kLog) {
  find_bounds(axis, values);
  if (log_) {
    make_log(std::max(2, most));
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
  if (low > high) {  // Nothing to show.
    low = log_ ? 1 : 0;
    high = log_ ? 10 : 1;
  }
  low_ = axis.min.value_or(low);
  high_ = axis.max.value_or(high);
  if (low_ < high_) return;
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
  const double step = round_step((high_ - low_) / most);
  if (widen && !axis.min) low_ = step * std::floor(low_ / step + 1e-9);
  if (widen && !axis.max) high_ = step * std::ceil(high_ / step - 1e-9);
  for (double i = std::ceil(low_ / step - 1e-9); i * step <= high_ + 1e-9 * step; ++i) {
    const double value = i * step + 0.0;  // Not -0.
    ticks_.push_back({value, tick_label(value)});
  }
}

void AxisTicks::make_log(int most) {
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
}

double AxisTicks::place(double value) const {
  if (!std::isfinite(value) || (log_ && value <= 0)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (log_) return std::log(value / low_) / std::log(high_ / low_);
  return (value - low_) / (high_ - low_);
}

AxisTicks x_ticks(const LinePlot& plot, int most) {
  std::vector<double> values;
  for (const Series& series : plot.series) {
    values.insert(values.end(), series.x.begin(), series.x.end());
  }
  for (const Mark& mark : plot.marks) values.push_back(mark.x);
  return {plot.x, values, most, /*widen=*/false};
}

AxisTicks y_ticks(const LinePlot& plot, int most) {
  std::vector<double> values;
  for (const Series& series : plot.series) {
    values.insert(values.end(), series.y.begin(), series.y.end());
  }
  return {plot.y, values, most, /*widen=*/true};
}

}  // namespace gallop::plot
