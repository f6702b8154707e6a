#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gallop/data/npy.h"

// Arrays whose samples have several views, each with its own embedding: pairs and triplets.
namespace gallop::data {

/// The task for which arrays have views.
inline constexpr const char* kPairEmbedding = "pair-embedding";

using NamedArrays = std::vector<std::pair<std::string, const NpyArray*>>;

struct ArrayViews {
  int64_t count = 0;
  std::vector<int64_t> sizes;  ///< Of one view.
};

/// The views of one array whose rows are [views, ...], or of several with equal rows, each of which
/// is a view. Throws DataError that names `file` if they are neither.
ArrayViews views_of(const std::string& file, const NamedArrays& inputs);

/// Throws DataError unless there is one target for each pair, 1 or -1.
void check_pair_targets(const std::string& file, const std::string& name, const NpyArray& target);

}  // namespace gallop::data
