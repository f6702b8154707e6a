#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gallop/base/process_counters.h"
#include "gallop/base/trace.h"

// What the steps of a training spend their time on, from a trace of its threads.
namespace gallop::profile {

/// A part of the work of a node: several layers may share one.
struct NodePart {
  std::string phase;  ///< "forward", "backward"; empty if unknown.
  std::string layer;  ///< Empty if unknown.
  double share = 1;   ///< Of the node's time.
};

/// Bytes by what they are for.
struct MemoryUse {
  int64_t activations = 0;  ///< Kept by forward for backward.
  int64_t gradients = 0;
  int64_t temporaries = 0;

  int64_t total() const { return activations + gradients + temporaries; }
  bool operator==(const MemoryUse&) const = default;
};

/// A node of a compiled step.
struct GraphNode {
  std::string op;      ///< "aten::mm"
  std::string call;    ///< With results and arguments, for people.
  std::string format;  ///< "bf16": of the factors, if there are FLOPs.
  std::vector<NodePart> parts;
  double flops = 0;         ///< Of GEMMs, convolutions and attention.
  double needed_flops = 0;  ///< Without those with padding and behind a causal mask.
  double bytes = 0;         ///< Read and written.
  bool communicates = false;
  MemoryUse memory{};  ///< In use while it runs.
};

/// The nodes of the graphs of a trace, by the graph's number.
using Graphs = std::map<int64_t, std::vector<GraphNode>>;

/// The number of the graph that was recorded from an eager step; see find_nodes().
inline constexpr int64_t kEagerGraph = -1;

/// The limits of a machine, for its roofline.
struct MachinePeaks {
  std::map<std::string, double> flops_per_second;  ///< By format: "fp32", "bf16".
  /// Bytes per second where so many bytes are worked on, in increasing order of size: small ones
  /// stay in caches.
  std::vector<std::pair<double, double>> bytes_per_second;

  /// The least seconds of this work, and whether FLOPs are what bounds it.
  struct Bound {
    double seconds = 0;
    bool by_flops = false;
  };
  Bound bound_of(double flops, const std::string& format, double bytes) const;
};

struct PhaseTime {
  std::string name;    ///< "data wait", "forward", ..., "host" for what is in no other.
  double seconds = 0;  ///< A step, on average.
};

/// The time of a layer in a step, on average.
struct LayerTime {
  std::string name;  ///< Empty: operators of no layer.
  double forward = 0, backward = 0, other = 0;
  double flops = 0, bytes = 0;
  double limit = 0;           ///< The least seconds by the machine's peaks.
  double limit_by_flops = 0;  ///< The part of it that FLOPs bound.

  double seconds() const { return forward + backward + other; }
};

/// A node of a compiled step, or an operator of eager steps, in a step on average.
struct OperatorTime {
  std::string op, call, layer;
  std::string format;  ///< As in GraphNode.
  double calls = 0, seconds = 0;
  double flops = 0, bytes = 0, limit = 0;
};

/// Work of the loader's threads.
struct LoaderTime {
  int64_t threads = 0;
  double busy = 0;                 ///< The share of their time in which they prepare samples.
  std::vector<PhaseTime> parts{};  ///< "read", "decode", "augment": seconds of all threads a step.
};

struct LayerMemory {
  std::string layer;
  MemoryUse use;
};

/// What is in use while a node runs.
struct NodeMemory {
  MemoryUse use;
  std::string phase, layer, op;
};

/// The memory of a compiled step.
struct StepMemory {
  int64_t parameters = 0, buffers = 0, optimizer = 0;  ///< In use all the time.
  MemoryUse peak;                                      ///< Of the others, when they are largest.
  std::string peak_phase, peak_layer, peak_call;       ///< What runs then.
  std::vector<LayerMemory> layers;                     ///< Of the peak, the largest first.
  int64_t graph = -1;                                  ///< The number of the step's graph.
  std::vector<NodeMemory> at_node;  ///< Its nodes in the order in which they run.
  int64_t planned = 0;              ///< Bytes of the block that holds them, with gaps.
  int64_t of_process = 0;           ///< Peak of the whole process: resident set size.
};

/// What a process spends its steps on, one of several that share them; seconds of a step, on
/// average.
struct RankTime {
  int rank = 0;
  std::string host;
  double seconds = 0;
  double compute = 0;  ///< The phases that compute, from forward to the optimizer.
  double data_wait = 0;
  double exposed_communication = 0;     ///< The step waits for it.
  double overlapped_communication = 0;  ///< It runs while the step does something else.
  /// Seconds of each wait for a collective; the same collectives in all processes.
  std::vector<double> waits{};
  /// The share of collectives into which this process came last; see compare_ranks().
  double last_into_collectives = 0;
  int64_t begin_ns = 0;       ///< Of its trace, by the clock of its host.
  double offset = 0;          ///< Seconds after the beginning of rank 0's trace.
  double first_wait_end = 0;  ///< Seconds from the beginning of its trace; 0: no wait.
};

struct Profile {
  int64_t first_step = 0, steps = 0;  ///< Steps are counted from 1.
  int64_t samples = 0;                ///< Of a step.
  double seconds = 0;                 ///< Of a step, on average.
  double median = 0, p95 = 0, slowest = 0;
  int64_t slowest_step = 0;
  double compilation = 0;  ///< Seconds of recording and compiling, which do not count as steps.
  std::vector<PhaseTime> phases;        ///< Their sum is the step.
  std::vector<LayerTime> layers;        ///< In the model's order.
  std::string why_no_layers;            ///< Empty if they are known.
  std::vector<OperatorTime> operators;  ///< The slowest first.
  LoaderTime loader;
  StepMemory memory;
  /// Seconds of each node of a graph, by the graph's number.
  std::map<int64_t, std::vector<double>> node_seconds;
  std::vector<RankTime> ranks;  ///< Of all processes, if there are several.
  ProcessCounts counts;         ///< In a step, on average; see add_counts().
  double flops = 0;             ///< Of a step's GEMMs, convolutions and attention.
  double limit = 0;             ///< Seconds of a step at the machine's peaks.
  /// FLOPs a second over the peak of the formats that the step computes in (Chowdhery et al.,
  /// "PaLM", 2022).
  double flops_utilization = 0;

  double share_of(double part) const { return seconds > 0 ? part / seconds : 0; }
};

/// Evaluates the complete steps of a trace; the memory is left empty. Throws UsageError if it has
/// none.
Profile profile_of(const Trace& trace, const Graphs& graphs, const MachinePeaks& peaks);

/// Adds what was counted while the profile's steps were recorded.
void add_counts(Profile& profile, const ProcessCounts& counts);

/// Quantities that are derived from the processor's counters; nothing where one is missing.
struct CounterRates {
  std::optional<double> instructions_per_cycle;
  /// The share of the cycles in which no instruction is dispatched, for want of decoded ones or of
  /// their operands.
  std::optional<double> stalled_frontend, stalled_backend;
  /// That misses of the last-level cache read, a cache line each, without what is prefetched.
  std::optional<double> llc_bytes_per_second;
};
CounterRates rates_of(const Profile& profile);

}  // namespace gallop::profile
