#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gallop/config/visitor.h"
#include "gallop/parallel/bucket_sums.h"
#include "gallop/parallel/strategy.h"

namespace gallop::parallel {

struct DdpConfig {
  std::string bucket = "25 MiB";        ///< Of gradients that are summed at once.
  std::string batch_norm = "averaged";  ///< Or "synchronized": see make_ddp().
  CompressionConfig compression;
};

void visit(config::Visitor& visitor, DdpConfig& config);

/// Distributed data parallelism (Li et al., "PyTorch distributed: experiences on accelerating data
/// parallel training", VLDB 2020): gradients are copied into buckets as the backward pass makes
/// them, last parameters first, and a bucket is summed over all processes as soon as it is full,
/// while the pass goes on. From then on they are views of the buckets. Statistics of batch norm are
/// taken by each process of its own samples, and what is kept of them for evaluation is the mean
/// over all processes, after every step; or, synchronized, of the whole batch, which costs a sum
/// over all processes in each layer, forward and backward.
std::unique_ptr<Strategy> make_ddp(const DdpConfig& config, Collectives& collectives,
                                   const ModelTensors& model);

}  // namespace gallop::parallel
