#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace gallop::compile {

struct Graph;

struct TimingConfig {
  double seconds = 2;            ///< For each graph, about; one to warm up comes on top.
  int64_t least = 5, most = 99;  ///< Runs of each graph.
};

/// How long the nodes of a graph take.
struct GraphTimes {
  std::vector<double> seconds;  ///< Of each node: the median of its runs.
  int64_t runs = 0;
};

/// Runs the graphs in turn, so that what changes with the machine meets all of them alike. They
/// work on copies of the arguments and of the state, in which a run finds what the one before it
/// left: nothing has happened afterwards but that random numbers have been drawn.
std::vector<GraphTimes> time_graphs(const std::vector<const Graph*>& graphs,
                                    const std::vector<at::Tensor>& inputs,
                                    const TimingConfig& config = {});

}  // namespace gallop::compile
