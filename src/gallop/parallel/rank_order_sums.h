#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gallop/parallel/bucket_sums.h"

namespace gallop::parallel {

/// For each bucket the number of elements of each process, about equal.
std::vector<std::vector<int64_t>> equal_parts(const GradientBuckets& buckets, int processes);

/// A tensor for the sums of this process's part of each bucket: a view of the bucket if buckets are
/// kept, otherwise one of its own. `sizes`: the elements of each process, by bucket.
std::vector<at::Tensor> own_parts(const GradientBuckets& buckets,
                                  const std::vector<std::vector<int64_t>>& sizes, int rank);

/// `sum` becomes the sum of the equal parts of a tensor of one dimension, one for each rank, in the
/// order of ranks, in fp32 at least. It may be the first part.
void sum_in_rank_order(const at::Tensor& sum, const at::Tensor& parts);

/// A reduce-scatter whose sums do not depend on where in a bucket an element lies: each process
/// gets its part of a bucket from all (all-to-all) and adds it up in the order of ranks, in fp32
/// (fp64 for fp64). Sums of one gradient thus have the same bits for any buckets and parts, which
/// those of a ring have for two processes only. The bytes are those of a ring's reduce-scatter.
///
/// `own`: own_parts() of these sizes. With `gathers`, each process gets the other parts afterwards,
/// so that buckets have the whole sums; otherwise the other parts are undefined. Buckets that are
/// not kept are released as soon as they are summed.
std::unique_ptr<BucketSums> make_rank_order_sums(GradientBuckets& buckets,
                                                 std::vector<std::vector<int64_t>> sizes,
                                                 std::vector<at::Tensor> own, bool gathers);

}  // namespace gallop::parallel
