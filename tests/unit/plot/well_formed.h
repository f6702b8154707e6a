#pragma once

#include <regex>
#include <string>
#include <vector>

namespace gallop::plot {

// Every tag is closed, no text has a bare "<" or "&". Attributes are not checked.
inline bool is_well_formed(const std::string& svg) {
  std::vector<std::string> open;
  static const std::regex kTag("<(/?)([a-z]+)([^<>]*?)(/?)>");
  std::string rest;
  size_t end = 0;
  for (auto tag = std::sregex_iterator(svg.begin(), svg.end(), kTag); tag != std::sregex_iterator();
       ++tag) {
    rest += svg.substr(end, static_cast<size_t>(tag->position()) - end);
    end = static_cast<size_t>(tag->position() + tag->length());
    if ((*tag)[1].length() > 0) {
      if (open.empty() || open.back() != (*tag)[2]) return false;
      open.pop_back();
    } else if ((*tag)[4].length() == 0) {
      open.push_back((*tag)[2]);
    }
  }
  static const std::regex kBare("[<]|&(?!(amp|lt|gt|quot|apos|#[0-9]+);)");
  return open.empty() && !std::regex_search(rest, kBare);
}

}  // namespace gallop::plot
