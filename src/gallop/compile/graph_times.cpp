#include "gallop/compile/graph_times.h"

#include <algorithm>
#include <map>
#include <memory>

#include "gallop/base/clock.h"
#include "gallop/compile/executor.h"
#include "gallop/compile/tensor_in.h"

namespace gallop::compile {

namespace {

// Copies of memory: each storage is copied once, however many tensors share it.
class Copies {
 public:
  at::Tensor of(const at::Tensor& tensor) {
    const auto* storage = tensor.storage().unsafeGetStorageImpl();
    at::Tensor& copy = copies_[storage];
    if (!copy.defined()) {
      const auto bytes = static_cast<int64_t>(storage->nbytes());
      copy = tensor_in(tensor, c10::kByte, {bytes}, {1}, /*offset=*/0).clone();
    }
    return tensor_in(copy, tensor.scalar_type(), tensor.sizes(), tensor.strides(),
                     tensor.storage_offset());
  }

 private:
  std::map<const c10::StorageImpl*, at::Tensor> copies_;
};

// A graph with a copy of its state, and the times of its runs.
struct Trial {
  std::unique_ptr<Executor> executor;
  std::vector<std::vector<double>> runs;

  Trial(Graph graph, Copies& copies, std::shared_ptr<Arena> arena) {
    for (Buffer& buffer : graph.buffers) {
      if (buffer.kind == Buffer::Kind::kState) buffer.state = copies.of(buffer.state);
    }
    executor = std::make_unique<Executor>(std::move(graph), std::move(arena));
  }

  GraphTimes medians() const {
    GraphTimes times{.seconds = {}, .runs = static_cast<int64_t>(runs.size())};
    std::vector<double> of_node(runs.size());
    for (size_t node = 0; node < executor->graph().nodes.size(); ++node) {
      for (size_t run = 0; run < runs.size(); ++run) of_node[run] = runs[run][node];
      const auto middle = of_node.begin() + static_cast<std::ptrdiff_t>(of_node.size() / 2);
      std::nth_element(of_node.begin(), middle, of_node.end());
      times.seconds.push_back(*middle);
    }
    return times;
  }
};

}  // namespace

std::vector<GraphTimes> time_graphs(const std::vector<const Graph*>& graphs,
                                    const std::vector<at::Tensor>& inputs,
                                    const TimingConfig& config) {
  if (config.most == 0) {
    std::vector<GraphTimes> none;
    for (const Graph* graph : graphs)
      none.push_back({.seconds = std::vector<double>(graph->nodes.size())});
    return none;
  }
  Copies copies;
  std::vector<at::Tensor> arguments;
  for (const at::Tensor& input : inputs) arguments.push_back(copies.of(input));
  const std::shared_ptr<Arena> arena = Arena::reserve();
  std::vector<Trial> trials;
  for (const Graph* graph : graphs) trials.emplace_back(*graph, copies, arena);
  for (Trial& trial : trials) trial.executor->run(arguments);
  const double end = monotonic_seconds() + config.seconds * static_cast<double>(graphs.size());
  for (int64_t run = 0; run < config.most; ++run) {
    if (run >= config.least && monotonic_seconds() > end) break;
    for (Trial& trial : trials) trial.runs.push_back(trial.executor->time(arguments));
  }
  std::vector<GraphTimes> times;
  for (const Trial& trial : trials) times.push_back(trial.medians());
  return times;
}

}  // namespace gallop::compile
