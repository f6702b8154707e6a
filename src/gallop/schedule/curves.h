#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

#include "gallop/schedule/schedule.h"

// Internal to schedule/: building blocks of several schedules.
namespace gallop::schedule {

// Tolerance for comparing progress with fractions, which are rounded quotients. Far less than one
// sample of any run.
inline constexpr double kRounding = 1e-12;

/// Whether progress has reached a fraction of the run.
inline bool has_reached(double progress, double share) { return progress >= share - kRounding; }

/// The position of progress in periods of equal length.
struct Cycle {
  double number;  ///< Completed periods.
  double share;   ///< Fraction of the current period, in [0, 1).
};

inline Cycle cycle_at(double progress, double period) {
  const double passed = progress / period;
  const double number = std::floor(passed + kRounding * std::fmax(1, passed));
  return {number, std::fmax(0, passed - number)};
}

/// An option common to several schedules.
inline const config::Field kFinal{.name = "final", .help = "final factor", .min = 0, .max = 1};

/// Interpolation between `from` and `to` at `share` in [0, 1].
using Blend = double (*)(double from, double to, double share);

inline double blend_linear(double from, double to, double share) {
  return std::lerp(from, to, share);
}

/// Cosine interpolation.
inline double blend_cosine(double from, double to, double share) {
  return to + (from - to) * (1 + std::cos(std::numbers::pi * share)) / 2;
}

/// Steep at first, then flattening.
inline double blend_square_root(double from, double to, double share) {
  return std::lerp(from, to, std::sqrt(share));
}

/// "linear", "cosine" or "1-sqrt".
inline Blend blend_of(const std::string& shape) {
  if (shape == "cosine") return blend_cosine;
  return shape == "1-sqrt" ? blend_square_root : blend_linear;
}

/// The position of `progress` between `begin` and `end`, clamped to [0, 1].
inline double share_between(double begin, double end, double progress) {
  return std::fmin(1, std::fmax(0, (progress - begin) / (end - begin)));
}

/// A stateless schedule from a function of progress.
std::unique_ptr<Schedule> make_curve(std::function<double(double progress)> factor);

/// Milestones as fractions of a run. Throws UsageError unless there is at least one, and they
/// ascend from above 0.
std::vector<double> rising_shares(const char* schedule, const std::vector<std::string>& milestones,
                                  const RunLength& length);

/// Throws UsageError for a period of 0.
double period_share(const char* schedule, const char* option, const std::string& period,
                    const RunLength& length);

}  // namespace gallop::schedule
