#pragma once

#include <array>
#include <string>
#include <vector>

#include "gallop/plot/color_levels.h"
#include "gallop/plot/plot.h"

// Internal to plot/.
namespace gallop::plot {

constexpr int kFewestColumns = 30;

/// The characters of text plots, Unicode or ASCII.
struct TextMarks {
  const char* side;
  const char* side_tick;
  const char* corner;
  const char* bottom;
  const char* bottom_tick;
  const char* mark;
  std::array<const char*, 4> series;
  const char* faint;
  const char* line;                   ///< For a series below points.
  std::array<const char*, 3> shapes;  ///< For points: dot, ring, cross.
  std::array<const char*, 2> arrows;  ///< For points beyond the axis, above and below.
  std::vector<const char*> grades;    ///< For points with values; the last one stands out.
  std::vector<const char*> shades;    ///< For a surface, likewise.
  const char* bar;
  const char* ellipsis;

  static const TextMarks& of(bool unicode);
};

/// Legend items such as "accuracy: . 0.1 to 0.4   o to 0.7   @ to 1", one mark per level.
std::vector<std::string> grade_items(const std::vector<const char*>& marks,
                                     const ColorLevels& levels);

/// Wraps items, separated by three spaces, into lines of this many characters; a longer item gets
/// its own line.
std::string wrapped(const std::vector<std::string>& items, size_t columns);

}  // namespace gallop::plot
