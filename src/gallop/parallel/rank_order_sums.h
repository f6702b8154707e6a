#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gallop/parallel/bucket_sums.h"

namespace gallop::parallel {

/// For each bucket the number of elements of each process, about equal.
std::vector<std::vector<int64_t>> equal_parts(const GradientBuckets& buckets, int processes);

/// A reduce-scatter whose sums do not depend on where in a bucket an element lies: each process
/// gets its part of a bucket from all (all-to-all) and adds it up in the order of ranks, in fp32
/// (fp64 for fp64). Sums of one gradient thus have the same bits for any buckets and parts, which
/// those of a ring have for two processes only. The bytes are those of a ring's reduce-scatter.
///
/// `sizes`: the elements of each process, by bucket. With `gathers`, each process gets the other
/// parts afterwards, so that buckets have the whole sums; otherwise the other parts are undefined.
std::unique_ptr<BucketSums> make_rank_order_sums(const GradientBuckets& buckets,
                                                 std::vector<std::vector<int64_t>> sizes, int rank,
                                                 bool gathers);

}  // namespace gallop::parallel
