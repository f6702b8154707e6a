#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace gallop::compile {

struct Graph;

struct TimingConfig {
  double seconds = 2;            ///< For each graph, approximately; a warm-up run is added.
  int64_t least = 5, most = 99;  ///< Runs of each graph; most = 0: it is not run, and has no times.
};

/// Times of the nodes of a graph.
struct GraphTimes {
  std::vector<double> seconds;  ///< Of each node: the median of its runs.
  int64_t runs = 0;
};

/// Runs the graphs alternately, so that changes of the machine's speed affect all of them alike.
/// They work on copies of the arguments and of the state, which a run leaves to the next one: the
/// only lasting effect is that random numbers have been drawn.
std::vector<GraphTimes> time_graphs(const std::vector<const Graph*>& graphs,
                                    const std::vector<at::Tensor>& inputs,
                                    const TimingConfig& config = {});

}  // namespace gallop::compile
