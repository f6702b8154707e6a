#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace gallop::ui {

/// The horizontal axis of a curve.
enum class CurveAxis { kStep, kWall, kRelative, kSamples, kTokens };

/// Parses "step", "wall", "relative", "samples" or "tokens". Throws UsageError for anything else.
CurveAxis parse_axis(const std::string& text);
const char* axis_name(CurveAxis axis);

/// TensorBoard's smoothing (classicSmoothing of its line chart): the debiased exponential moving
/// average with factor `smoothing` (0 to 1). Non-finite values are kept and not averaged; a
/// constant curve is returned unchanged.
std::vector<double> smoothed(std::span<const double> values, double smoothing);

/// Downsampling: the indices of at most `most` (at least 8) values, in order: the first and the
/// last one, and the minimum, the maximum and one non-finite value of each bucket. All indices if
/// there are no more than `most`.
std::vector<size_t> reduced(std::span<const double> values, size_t most);

/// The same for the area between two lines: the minimum of `low` and the maximum of `high`.
std::vector<size_t> reduced_band(std::span<const double> low, std::span<const double> high,
                                 size_t most);

/// The line of a run; x is ascending unless it is the time and the clock was set back.
struct Line {
  std::vector<double> x, y;
};

/// The aggregate of several lines at each x of any of them; other lines are interpolated linearly
/// there, and not extrapolated.
struct Band {
  std::vector<double> x, mean, low, high, least, most;
};

/// `low` and `high` are the mean minus and plus one sample standard deviation (divisor n - 1; 0 for
/// one line). Non-finite values are ignored.
Band band_of(const std::vector<Line>& lines);

}  // namespace gallop::ui
