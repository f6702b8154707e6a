#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace gallop::ui {

/// What a curve is drawn over.
enum class CurveAxis { kStep, kWall, kRelative, kSamples, kTokens };

/// "step", "wall", "relative", "samples", "tokens". Throws UsageError for any other.
CurveAxis parse_axis(const std::string& text);
const char* axis_name(CurveAxis axis);

/// TensorBoard's smoothing (classicSmoothing of its line chart): the mean of all values up to each,
/// by weights that fall by the factor `smoothing` (0 to 1) from one to the one before. Values that
/// are not finite stay as they are and count for nothing; so does a curve of one value throughout.
std::vector<double> smoothed(std::span<const double> values, double smoothing);

/// Which of the values a drawing of so many needs, in order: the first and the last, and the least
/// and the most of each of several parts of the same length, and one that is not finite, where a
/// part has any. All where they are no more than `most`, which is at least 8.
std::vector<size_t> reduced(std::span<const double> values, size_t most);

/// The same for what lies between two lines: parts keep the least of `low` and the most of `high`.
std::vector<size_t> reduced_band(std::span<const double> low, std::span<const double> high,
                                 size_t most);

/// A run's line: x rises, unless it is the time and a clock was set back.
struct Line {
  std::vector<double> x, y;
};

/// What several lines have at each x that any of them has a value at; that of a line lies on the
/// straight line between its neighbors, and there is none beyond its ends.
struct Band {
  std::vector<double> x, mean, low, high, least, most;
};

/// `low` and `high` are the mean less and plus one standard deviation (of a sample: divided by n -
/// 1; 0 for one line). Values that are not finite are left out.
Band band_of(const std::vector<Line>& lines);

}  // namespace gallop::ui
