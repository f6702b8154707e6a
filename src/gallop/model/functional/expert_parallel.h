#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/model/functional/experts.h"
#include "gallop/tensor/tensor_group.h"

// The way of tokens' copies to the processes that have their experts, and back (Lepikhin et al.,
// "GShard: scaling giant models with conditional computation and automatic sharding", 2021). Each
// process has an equal range of the experts and tokens of its own. All processes of the group call
// the functions together, also those without tokens, and the group must outlive the backward pass.
namespace gallop::model::functional {

/// Which copies go where. The processes send only the copies that are computed.
struct ExpertRoute {
  /// int64 [S]: the rows of the order of this process that it sends; undefined: all of them.
  at::Tensor sent;
  int64_t rows = 0;  ///< Of the order of this process.
  /// Rows to and from each process, in the order of ranks.
  std::vector<int64_t> send{}, receive{};
  /// int64 [R]: the received row that is in each row of the order here, and the reverse; undefined
  /// if they are the same.
  at::Tensor by_expert{}, by_process{};
  /// The order of the experts of this process: `ranges` alone. Copies of one expert are in the
  /// order of ranks, and among those of one rank in that of its tokens, as in a batch of all
  /// processes.
  ExpertOrder here{};
};

/// The processes tell each other how many copies they send to each expert.
ExpertRoute route_to_experts(const ExpertOrder& order, const TensorGroup& group);

/// From rows in the order of this process, [T k, C], to those of its experts, [R, C].
at::Tensor send_to_experts(const at::Tensor& rows, const ExpertRoute& route,
                           const TensorGroup& group);
/// The reverse; rows that no expert computes are 0.
at::Tensor send_from_experts(const at::Tensor& rows, const ExpertRoute& route,
                             const TensorGroup& group);

}  // namespace gallop::model::functional
