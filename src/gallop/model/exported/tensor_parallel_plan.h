#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gallop/model/exported/schema.h"

namespace gallop::model::exported {

/// The parameters that processes divide, by their names in the model; tied ones by one of them.
using TensorParallelPlan = std::map<std::string, Shard>;

/// For names of parameters that have several: another name of the same one, for all of them.
using TiedNames = std::map<std::string, std::string>;

/// What divides a program.
struct TensorParallelOptions {
  /// "PATTERN=colwise", "PATTERN=rowwise" or "PATTERN=replicate" for modules, such as
  /// "layers.*.q_proj"; the first that matches counts. If none is colwise or rowwise, all layers
  /// are divided for which it is possible.
  std::vector<std::string> entries{};
  int processes = 1;
  std::string file{};    ///< For messages.
  std::string logits{};  ///< The tensor that the loss reads.
  TiedNames tied{};
};

/// The names in the model of the graph's parameters, by the names of their values; of tied ones the
/// same.
std::map<std::string, std::string> parameters_of(const Program& program,
                                                 const TensorParallelOptions& options);

/// Divides the linear layers of a program among processes: those by outputs (colwise) whose results
/// reach only linear layers that can be divided by inputs (rowwise), and by classes the one that
/// computes the logits; and by rows the tables of large embeddings. Throws UsageError for entries
/// that name no such layer or cannot be followed, and if nothing can be divided.
TensorParallelPlan plan_tensor_parallel(const Program& program,
                                        const TensorParallelOptions& options);

}  // namespace gallop::model::exported
