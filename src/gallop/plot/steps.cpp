#include <algorithm>
#include <utility>

#include "gallop/plot/plot.h"

namespace gallop::plot {

Series steps_of(std::string name, const std::vector<double>& edges,
                const std::vector<double>& heights) {
  Series series{.name = std::move(name), .x = {}, .y = {}, .filled = true};
  const auto add = [&series](double x, double y) {
    series.x.push_back(x);
    series.y.push_back(y);
  };
  if (edges.empty()) return series;
  add(edges.front(), 0);
  for (size_t i = 0; i + 1 < edges.size(); ++i) {
    add(edges[i], heights[i]);
    add(edges[i + 1], heights[i]);
  }
  add(edges.back(), 0);
  return series;
}

}  // namespace gallop::plot
