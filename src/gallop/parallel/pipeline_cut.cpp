#include "gallop/parallel/pipeline_cut.h"

#include <algorithm>
#include <limits>

#include "gallop/base/error.h"

namespace gallop::parallel {

// least[k][i]: the cost of the most expensive of k stages that have the blocks from i on.
std::vector<StageBlocks> cut_blocks(const std::vector<double>& costs, int stages) {
  const size_t blocks = costs.size(), count = static_cast<size_t>(std::max(stages, 0));
  if (count < 1 || blocks < count) throw InternalError("pipeline: fewer blocks than stages");
  constexpr double kNone = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> least(count + 1, std::vector<double>(blocks + 1, kNone));
  least[0][blocks] = 0;
  for (size_t k = 1; k <= count; ++k) {
    for (size_t begin = 0; begin < blocks; ++begin) {
      double cost = 0;
      for (size_t end = begin + 1; end <= blocks; ++end) {
        cost += costs[end - 1];
        least[k][begin] = std::min(least[k][begin], std::max(cost, least[k - 1][end]));
      }
    }
  }
  std::vector<StageBlocks> cut;
  const double most = least[count][0];
  size_t begin = 0;
  for (size_t k = count; k > 0; --k) {
    double cost = costs[begin];
    size_t end = begin + 1;
    // As few blocks as leave the rest to the other stages.
    while (least[k - 1][end] > most) cost += costs[end++];
    if (cost > most) throw InternalError("pipeline: no cut has the least cost");
    cut.push_back({static_cast<int64_t>(begin), static_cast<int64_t>(end)});
    begin = end;
  }
  return cut;
}

}  // namespace gallop::parallel
