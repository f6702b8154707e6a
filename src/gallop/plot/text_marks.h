#pragma once

#include <array>
#include <string>
#include <vector>

#include "gallop/plot/color_levels.h"
#include "gallop/plot/plot.h"

// Only for sources of plot/.
namespace gallop::plot {

constexpr int kFewestColumns = 30;

/// What a plot in text is drawn with, in either alphabet.
struct TextMarks {
  const char* side;
  const char* side_tick;
  const char* corner;
  const char* bottom;
  const char* bottom_tick;
  const char* mark;
  std::array<const char*, 4> series;
  const char* faint;
  const char* line;                   ///< Of a series below points.
  std::array<const char*, 3> shapes;  ///< Of points: dot, ring, cross.
  std::array<const char*, 2> arrows;  ///< Of what lies beyond the axis, above and below.
  std::vector<const char*> grades;    ///< Of points with values; the last one stands out.
  std::vector<const char*> shades;    ///< Of a surface, likewise.
  const char* bar;
  const char* ellipsis;

  static const TextMarks& of(bool unicode);
};

/// "accuracy: . 0.1 to 0.4   o to 0.7   @ to 1": which of the marks, one a level, says which
/// values.
std::vector<std::string> grade_items(const std::vector<const char*>& marks,
                                     const ColorLevels& levels);

/// Items three blanks apart in lines of at most so many characters; an item that is longer has a
/// line of its own.
std::string wrapped(const std::vector<std::string>& items, size_t columns);

}  // namespace gallop::plot
