#include <cstdio>
#include <map>
#include <optional>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/app/command.h"
#include "gallop/app/distributed_context.h"
#include "gallop/app/output_file.h"
#include "gallop/app/print.h"
#include "gallop/app/recipe_components.h"
#include "gallop/app/session.h"
#include "gallop/app/signals.h"
#include "gallop/base/memory.h"
#include "gallop/base/temporary_folder.h"
#include "gallop/kernel/peak.h"
#include "gallop/profile/chrome_trace.h"
#include "gallop/profile/profile_text.h"
#include "gallop/train/operator_spans.h"

namespace gallop::app {

namespace {

// Two steps are recorded for the compiled one, and later ones still fill caches.
constexpr int64_t kLeastWarmUp = 3;

struct Arguments {
  std::string recipe;
  int64_t steps = 20, warm_up = 5;
  std::string trace;
  bool json = false;
  std::vector<Override> overrides;
};

bool parse(const std::vector<std::string>& args, Arguments& arguments) {
  CLI::App parser(
      "Train some steps of a recipe and show what they spend their time on: waiting for data,\n"
      "forward, backward, the optimizer, each layer and operator, next to the limits of this\n"
      "machine. Nothing is stored, and no run folder is created.\n\n"
      "Example: gallop profile cifar10 data.path=pictures --trace step.json",
      "gallop profile");
  parser.add_option("RECIPE", arguments.recipe, "a recipe's name or file")->required();
  parser.add_option("--steps", arguments.steps, "number of steps to profile; 20 by default");
  parser.add_option("--warmup", arguments.warm_up,
                    "number of steps before them, which are not profiled; 5 by default");
  parser.add_option("--trace", arguments.trace,
                    "write a trace to this file, for ui.perfetto.dev or chrome://tracing");
  parser.add_flag("--json", arguments.json, "print JSON");
  std::vector<std::string> rest = args;
  arguments.overrides = take_overrides(rest);
  if (!parse_arguments(parser, rest)) return false;
  if (arguments.steps < 1) throw UsageError("--steps must be at least 1");
  if (arguments.warm_up < kLeastWarmUp) {
    throw UsageError(fmt::format(
        "--warmup must be at least {}: the first steps are recorded and compiled", kLeastWarmUp));
  }
  return true;
}

// Records the steps after the warm-up.
class Recording final : public train::Observer {
 public:
  Recording(int64_t first, int64_t steps) : first_(first), end_(first + steps) {}

  void step_begins(int64_t step) override {
    if (step == first_) recorder_.emplace();
    if (step >= end_) stop();
  }
  void finished(const train::Outcome& /*outcome*/) override { stop(); }

  Trace take() { return std::move(trace_); }

 private:
  void stop() {
    if (!recorder_) return;
    trace_ = recorder_->stop();
    recorder_.reset();
  }

  int64_t first_, end_;
  std::optional<TraceRecorder> recorder_;
  Trace trace_;
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
void add_layers_of_eager_step(Session& session, const profile::MachinePeaks& peaks,
                              profile::Profile& profile) {
  const data::Batch batch = session.first_part();
  train::TrainStep step(session.model(), session.optimizer(), session.step_config());
  const compile::GraphStages graphs = step.graphs(batch.by_role(), "recorded");
  if (!graphs.refusal.empty()) {
    print_error("gallop: the layers of the step are not known: {}\n", graphs.refusal);
    return;
  }
  std::vector<profile::GraphNode> nodes;
  std::vector<double> seconds;
  for (const compile::ListedNode& node : graphs.stages.front().listing.nodes) {
    nodes.push_back(node_of(node));
    seconds.push_back(node.seconds);
  }
  profile::add_nodes(profile, nodes, seconds, peaks);
}

}  // namespace

ExitCode run_profile(const CommandContext& command, const std::vector<std::string>& arguments) {
  StopRequest stop;
  const SignalGuard signals(stop);
  Arguments parsed;
  if (!parse(arguments, parsed)) return ExitCode::kDone;
  require_alone("profile");

  Session session(load_recipe(command.registries(), parsed.recipe, parsed.overrides));
  const TemporaryFolder folder(fs::temp_directory_path(), "gallop-profile-");
  train::CheckpointStore checkpoints(folder.path() / "checkpoints", {});
  Recording recording(parsed.warm_up, parsed.steps);
  const int64_t last = parsed.warm_up + parsed.steps;
  train::Trainer trainer(
      {.model = session.model(),
       .optimizer = session.optimizer(),
       .schedule = session.schedule(),
       .lr_factor = session.lr_factor(),
       .scheduled = session.scheduled(),
       .train_samples = *session.data().train,
       .evaluation_samples = session.data().evaluation(),
       .checkpoints = checkpoints,
       .observers = {&recording},
       .stop = stop,
       .until = {.unit = train::Interval::Unit::kSteps, .count = static_cast<double>(last)},
       .teacher = session.teacher()},
      session.recipe().train, session.step_config(), session.training_loader(),
      session.evaluate_config());
  const bool is_eager = !session.step_config().compile;
  std::optional<train::OperatorSpans> operators;
  if (is_eager) operators.emplace();
  const train::Outcome outcome = trainer.run();
  operators.reset();
  if (stop.requested()) return ExitCode::kStopped;
  if (outcome.step < parsed.warm_up + 1) {
    throw UsageError(fmt::format(
        "the training has {} steps, all of which belong to the warm-up; set train.epochs higher",
        outcome.steps));
  }

  const Trace trace = recording.take();
  const auto listings = trainer.compiled_graphs();
  const profile::Graphs graphs = graphs_of(listings);
  const profile::MachinePeaks peaks = measure_peaks();
  profile::Profile result = profile::profile_of(trace, graphs, peaks);
  if (is_eager) add_layers_of_eager_step(session, peaks, result);
  result.samples = session.recipe().data.batch_size;
  result.memory = memory_of(session, listings);
  if (!parsed.trace.empty()) {
    write_output(parsed.trace,
                 profile::chrome_trace(trace, graphs, {.host = session.hardware().host}));
  }
  if (parsed.json) {
    fmt::print("{}\n", profile::profile_json(result));
    return ExitCode::kDone;
  }
  const data::Signature& inputs = session.inputs();
  fmt::print("{}: steps {} to {} of {}; {}\n", session.resolved().name, result.first_step,
             result.first_step + result.steps - 1, samples_text(inputs, result.samples),
             session.describe_training());
  fmt::print("{}", profile::profile_text(result, {.items = samples_of(inputs)}));
  return ExitCode::kDone;
}

}  // namespace gallop::app
