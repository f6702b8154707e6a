#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gallop/config/visitor.h"
#include "gallop/parallel/bucket_sums.h"
#include "gallop/parallel/strategy.h"

namespace gallop::parallel {

/// Where it is neither given nor measured. PyTorch's, too.
inline constexpr const char* kDefaultBucket = "25 MiB";
inline constexpr const char* kAutoBucket = "auto";

struct DdpConfig {
  std::string bucket = kDefaultBucket;  ///< Bytes of gradients that are summed at once.
  std::string batch_norm = "averaged";  ///< Or "synchronized": see make_ddp().
  CompressionConfig compression;
};

void visit(config::Visitor& visitor, DdpConfig& config);

/// Distributed data parallelism (Li et al., "PyTorch distributed: experiences on accelerating data
/// parallel training", VLDB 2020): gradients are copied into buckets as the backward pass makes
/// them, in the order in which it does, and a bucket is summed over all processes as soon as it is
/// full, while the pass goes on. From the copy on they are views of the buckets, to which further
/// micro-batches add. Statistics of batch norm are
/// taken by each process of its own samples, and what is kept of them for evaluation is the mean
/// over all processes, after every step; or, synchronized, of the whole batch, which costs a sum
/// over all processes in each layer, forward and backward.
std::unique_ptr<Strategy> make_ddp(const DdpConfig& config, Collectives& collectives,
                                   const ModelTensors& model);

}  // namespace gallop::parallel
