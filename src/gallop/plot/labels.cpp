#include "gallop/plot/labels.h"

#include <algorithm>

#include "gallop/base/text.h"

namespace gallop::plot {

static bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
}

size_t width_of(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string shortened(std::string_view text, size_t most, std::string_view ellipsis) {
  std::string shown = printable(text);
  if (width_of(shown) <= most) return shown;
  const size_t tail = width_of(ellipsis), kept = most > tail ? most - tail : most;
  size_t end = 0;
  for (size_t characters = 0; end < shown.size(); ++end) {
    if (begins_character(shown[end]) && characters++ == kept) break;
  }
  shown.resize(end);
  return most > tail ? shown.append(ellipsis) : shown;
}

std::string padded(std::string text, size_t width) {
  const size_t used = width_of(text);
  if (used < width) text.append(width - used, ' ');
  return text;
}

}  // namespace gallop::plot
