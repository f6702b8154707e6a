#include "gallop/app/profiled_training.h"

#include <algorithm>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "gallop/app/print.h"
#include "gallop/app/trainer_parts.h"
#include "gallop/base/memory.h"
#include "gallop/base/temporary_folder.h"
#include "gallop/kernel/peak.h"
#include "gallop/track/system/system_meter.h"
#include "gallop/train/operator_spans.h"

namespace gallop::app {

namespace {

// In shorter times, the kernel's counters of the machine's load are too coarse.
constexpr double kLeastSecondsOfLoad = 0.5;

// Records the steps after the warm-up.
class Recording final : public train::Observer {
 public:
  Recording(int64_t first, int64_t steps) : first_(first), end_(first + steps) {}

  void step_begins(int64_t step) override {
    if (step == first_) {
      meter_.read();
      recorder_.emplace();
    }
    if (step >= end_) stop();
  }
  void finished(const train::Outcome& /*outcome*/) override { stop(); }

  Trace take() { return std::move(trace_); }

  // Cores that other programs kept busy meanwhile, on average; 0 if it was too short.
  double other_cores() const { return other_cores_; }

 private:
  void stop() {
    if (!recorder_) return;
    trace_ = recorder_->stop();
    recorder_.reset();
    const auto load = meter_.read().values;
    const auto own = load.find("cpu"), all = load.find("machine_cpu");
    const double seconds = 1e-9 * static_cast<double>(trace_.end_ns - trace_.begin_ns);
    if (seconds < kLeastSecondsOfLoad || own == load.end() || all == load.end()) return;
    const auto cores = static_cast<double>(std::thread::hardware_concurrency());
    other_cores_ = std::max(0.0, all->second * cores - own->second);
  }

  int64_t first_, end_;
  std::optional<TraceRecorder> recorder_;
  track::SystemMeter meter_{1};
  Trace trace_;
  double other_cores_ = 0;
};

profile::GraphNode node_of(const compile::ListedNode& listed) {
  profile::GraphNode node{.op = listed.op,
                          .call = listed.text_of_operator(),
                          .format = listed.work_format,
                          .parts = {},
                          .flops = listed.work.flops,
                          .needed_flops = listed.work.needed_flops,
                          .bytes = listed.work.bytes,
                          .communicates = listed.communicates};
  node.call += " " + listed.text_of_formats();
  for (const compile::NodePlace& place : listed.places) {
    node.parts.push_back({.phase = place.phase, .layer = place.layer, .share = place.share});
  }
  return node;
}

profile::Graphs graphs_of(const std::map<int64_t, compile::GraphListing>& listings) {
  profile::Graphs graphs;
  for (const auto& [number, listing] : listings) {
    auto& nodes = graphs[number];
    for (const compile::ListedNode& node : listing.nodes) nodes.push_back(node_of(node));
  }
  return graphs;
}

profile::MemoryUse use_of(const compile::MemoryUse& use) {
  return {
      .activations = use.activations, .gradients = use.gradients, .temporaries = use.temporaries};
}

int64_t bytes_of(const NamedTensors& tensors) {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += static_cast<int64_t>(tensor.nbytes());
  return bytes;
}

// Of the graph with the highest peak, if there is one.
profile::StepMemory memory_of(Session& session,
                              const std::map<int64_t, compile::GraphListing>& listings) {
  profile::StepMemory memory{.parameters = bytes_of(session.model().parameters()),
                             .buffers = bytes_of(session.model().buffers()),
                             .optimizer = bytes_of(session.optimizer().state()),
                             .of_process = peak_resident_bytes()};
  for (const auto& [number, listing] : listings) {
    const compile::MemoryTimeline& timeline = listing.memory;
    if (timeline.peak < 0) continue;
    const auto peak = static_cast<size_t>(timeline.peak);
    if (timeline.at_node[peak].total() <= memory.peak.total()) continue;
    memory.peak = use_of(timeline.at_node[peak]);
    memory.planned = listing.planned_bytes;
    const profile::GraphNode node = node_of(listing.nodes[peak]);
    memory.peak_call = node.call;
    if (!node.parts.empty()) {
      memory.peak_phase = node.parts.front().phase;
      memory.peak_layer = node.parts.front().layer;
    }
    memory.layers.clear();
    for (const auto& layer : timeline.at_peak) {
      memory.layers.push_back({layer.layer, use_of(layer.use)});
    }
    memory.at_node.clear();
    for (const auto& use : timeline.at_node) memory.at_node.push_back(use_of(use));
  }
  return memory;
}

// Of the CPU.
profile::MachinePeaks measure_peaks() {
  profile::MachinePeaks peaks;
  peaks.flops_per_second = {{"fp32", kernel::peak_flops_per_second(c10::kFloat)},
                            {"bf16", kernel::peak_flops_per_second(c10::kBFloat16)}};
  for (const double bytes : {64e3, 512e3, 4e6, 16e6, 64e6, 256e6}) {
    peaks.bytes_per_second.emplace_back(bytes, kernel::peak_bytes_per_second(bytes));
  }
  return peaks;
}

// Eager steps have no nodes: the operators of a step are timed one after the other.
void add_layers_of_eager_step(Session& session, advise::Facts& facts, profile::Graphs& graphs) {
  const data::Batch batch = session.first_part();
  train::TrainStep step(session.model(), session.optimizer(), session.step_config());
  const compile::GraphStages recorded = step.graphs(batch.by_role(), "recorded");
  if (!recorded.refusal.empty()) {
    facts.settings.why_not_compiled = recorded.refusal;
    return;
  }
  std::vector<profile::GraphNode>& nodes = graphs[0];
  std::vector<double> seconds;
  for (const compile::ListedNode& node : recorded.stages.front().listing.nodes) {
    nodes.push_back(node_of(node));
    seconds.push_back(node.seconds);
  }
  profile::add_nodes(facts.profile, nodes, seconds, facts.peaks);
}

bool has_convolutions(const profile::Graphs& graphs) {
  return std::any_of(graphs.begin(), graphs.end(), [](const auto& graph) {
    return std::any_of(graph.second.begin(), graph.second.end(),
                       [](const auto& node) { return node.op.find("conv") != std::string::npos; });
  });
}

advise::Settings settings_of(Session& session) {
  const Recipe& recipe = session.recipe();
  const train::StepConfig step = session.step_config();
  return {.precision = precision::name_of(session.format().precision),
          .channels_last = session.format().channels_last,
          .compiled = step.compile.has_value(),
          .why_not_compiled = {},
          .verifies = recipe.train.compile == "verify",
          .samples = session.data().train->size(),
          .batch_size = recipe.data.batch_size,
          .micro_batches = recipe.train.gradient_accumulation,
          .recomputes = recipe.train.activation_checkpointing.every > 0 ||
                        recipe.train.activation_checkpointing.memory != "none",
          .optimizer = recipe.optimizer.name(),
          .scales_lr = recipe.lr_scaling.scales(),
          .threads = at::get_num_threads(),
          .data_threads = session.training_loader().threads,
          .evaluate_every = recipe.train.evaluate_every,
          .checkpoint_every = recipe.train.checkpoint_every,
          .checkpoint_in_background = recipe.train.checkpoint_in_background};
}

}  // namespace

ProfiledTraining profile_training(Session& session, int64_t warm_up, int64_t steps,
                                  const StopRequest& stop) {
  const TemporaryFolder folder(fs::temp_directory_path(), "gallop-profile-");
  train::CheckpointStore checkpoints(folder.path() / "checkpoints", {});
  Recording recording(warm_up, steps);
  train::TrainerParts parts = trainer_parts(session, checkpoints, stop);
  parts.observers = {&recording};
  parts.until = {.unit = train::Interval::Unit::kSteps,
                 .count = static_cast<double>(warm_up + steps)};
  train::Trainer trainer(parts, session.recipe().train, session.step_config(),
                         session.training_loader(), session.evaluate_config());
  ProfiledTraining result{.trace = {}, .graphs = {}, .facts = {}};
  advise::Facts& facts = result.facts;
  facts.settings = settings_of(session);
  std::optional<train::OperatorSpans> operators;
  if (!facts.settings.compiled) operators.emplace();
  const train::Outcome outcome = trainer.run();
  operators.reset();
  if (stop.requested()) return result;
  if (outcome.step < warm_up + 1) {
    throw UsageError(fmt::format(
        "the training has {} steps, all of which belong to the warm-up; set train.epochs higher",
        outcome.steps));
  }
  const auto listings = trainer.compiled_graphs();
  result.trace = recording.take();
  result.graphs = graphs_of(listings);
  facts.peaks = measure_peaks();
  facts.profile = profile::profile_of(result.trace, result.graphs, facts.peaks);
  facts.profile.samples = session.recipe().data.batch_size;
  facts.profile.memory = memory_of(session, listings);
  if (result.graphs.empty()) add_layers_of_eager_step(session, facts, result.graphs);
  facts.settings.has_convolutions = session.inputs().is_images() && has_convolutions(result.graphs);
  facts.cores = session.hardware().cores;
  facts.memory_bytes = session.hardware().memory_bytes;
  facts.on_gpu = !session.device().is_cpu();
  facts.other_cores = recording.other_cores();
  return result;
}

}  // namespace gallop::app
