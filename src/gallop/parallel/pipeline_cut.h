#pragma once

#include <cstdint>
#include <vector>

namespace gallop::parallel {

/// The consecutive blocks [begin, end) of a pipeline's stage.
struct StageBlocks {
  int64_t begin = 0, end = 0;

  bool operator==(const StageBlocks&) const = default;
};

/// Cuts blocks of these costs into so many stages, each of at least one block, such that the most
/// expensive stage costs as little as possible; among such cuts, earlier stages get fewer blocks.
/// There must be at least as many blocks as stages.
std::vector<StageBlocks> cut_blocks(const std::vector<double>& costs, int stages);

}  // namespace gallop::parallel
