#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gallop/config/visitor.h"
#include "gallop/parallel/bucket_sums.h"
#include "gallop/parallel/strategy.h"

namespace gallop::parallel {

/// The bucket size if it is neither given nor measured, as in PyTorch.
inline constexpr const char* kDefaultBucket = "25 MiB";
inline constexpr const char* kAutoBucket = "auto";

struct DdpConfig {
  std::string bucket = kDefaultBucket;  ///< Bytes of gradients in one all-reduce.
  std::string batch_norm = "averaged";  ///< Or "synchronized": see make_ddp().
  std::string sum_order = "any";        ///< Or "rank": see make_rank_order_sums().
  CompressionConfig compression;
};

void visit(config::Visitor& visitor, DdpConfig& config);
/// The option of DdpConfig::bucket for strategies that do not measure it.
void visit_bucket_bytes(config::Visitor& visitor, std::string& bucket);

/// Distributed data parallelism (Li et al., "PyTorch distributed: experiences on accelerating data
/// parallel training", VLDB 2020). Gradients are copied into buckets in the order in which the
/// backward pass produces them, and a bucket is all-reduced as soon as it is full, while the pass
/// continues. After the copy they are views of the buckets, in which further micro-batches
/// accumulate. Each process computes the statistics of batch norm from its own samples, and the
/// running statistics are the mean over all processes, after every step; with "synchronized" they
/// are those of the whole batch, at the cost of an all-reduce in each layer, forward and backward.
std::unique_ptr<Strategy> make_ddp(const DdpConfig& config, Collectives& collectives,
                                   const ModelTensors& model);

}  // namespace gallop::parallel
