#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

#include "gallop/schedule/schedule.h"

// Only for sources of schedule/: what several schedules are made of.
namespace gallop::schedule {

// Progress and the shares it is compared with are quotients of their own, each rounded. Far less
// than one sample of any run.
inline constexpr double kRounding = 1e-12;

/// Whether progress has come to `share`.
inline bool has_reached(double progress, double share) { return progress >= share - kRounding; }

/// Where progress stands in periods of equal length.
struct Cycle {
  double number;  ///< Periods that are over.
  double share;   ///< Of the present one, in [0, 1].
};

inline Cycle cycle_at(double progress, double period) {
  const double passed = progress / period;
  const double number = std::floor(passed + kRounding * std::fmax(1, passed));
  return {number, std::fmax(0, passed - number)};
}

/// An option that several schedules have.
inline const config::Field kFinal{.name = "final", .help = "final factor", .min = 0, .max = 1};

/// The way from `from` to `to`, at `share` of it in [0, 1].
using Blend = double (*)(double from, double to, double share);

inline double blend_linear(double from, double to, double share) {
  return std::lerp(from, to, share);
}

/// Along half a cosine.
inline double blend_cosine(double from, double to, double share) {
  return to + (from - to) * (1 + std::cos(std::numbers::pi * share)) / 2;
}

/// Steep at first and ever flatter.
inline double blend_square_root(double from, double to, double share) {
  return std::lerp(from, to, std::sqrt(share));
}

/// "linear", "cosine" or "1-sqrt".
inline Blend blend_of(const std::string& shape) {
  if (shape == "cosine") return blend_cosine;
  return shape == "1-sqrt" ? blend_square_root : blend_linear;
}

/// Where `progress` stands between `begin` and `end`, in [0, 1].
inline double share_between(double begin, double end, double progress) {
  return std::fmin(1, std::fmax(0, (progress - begin) / (end - begin)));
}

/// A schedule without state from its function of progress.
std::unique_ptr<Schedule> make_curve(std::function<double(double progress)> factor);

/// Milestones as shares of a run. Throws UsageError unless there is one and each comes after the
/// one before, the first after the beginning.
std::vector<double> rising_shares(const char* schedule, const std::vector<std::string>& milestones,
                                  const RunLength& length);

/// Throws UsageError for a period of 0.
double period_share(const char* schedule, const char* option, const std::string& period,
                    const RunLength& length);

}  // namespace gallop::schedule
