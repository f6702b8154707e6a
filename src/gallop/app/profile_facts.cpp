#include "gallop/app/profile_facts.h"

#include <algorithm>
#include <utility>

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/json_line.h"
#include "gallop/app/recipe_components.h"
#include "gallop/base/affinity.h"
#include "gallop/base/error.h"
#include "gallop/base/heap.h"
#include "gallop/base/memory.h"
#include "gallop/config/resolve.h"
#include "gallop/kernel/peak.h"
#include "gallop/profile/eager_steps.h"
#include "gallop/profile/profile_text.h"
#include "gallop/train/gradient_order.h"
#include "gallop/train/step/step.h"

namespace gallop::app {

namespace {

profile::MemoryUse use_of(const compile::MemoryUse& use) {
  return {
      .activations = use.activations, .gradients = use.gradients, .temporaries = use.temporaries};
}

int64_t bytes_of(const NamedTensors& tensors) {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += static_cast<int64_t>(tensor.nbytes());
  return bytes;
}

// The value of a component's option; empty if it has no such option.
std::string text_option(config::Component component, const std::string& key) {
  for (const config::FieldHelp& field : config::describe_fields(
           [&](config::Visitor& visitor) { component.visit_fields(visitor); }, "")) {
    if (field.key == key) return field.initial;
  }
  return {};
}

// Whether the session has chosen the option's value by timing steps.
bool is_measured(const Session& session, const std::string& option) {
  const auto& choices = session.choices();
  return std::any_of(choices.begin(), choices.end(), [&](const MadeChoice& choice) {
    return choice.options.find(option + "=auto") != std::string::npos;
  });
}

advise::Settings settings_of(Session& session) {
  const Recipe& recipe = session.recipe();
  const train::StepConfig step = session.step_config();
  return {.precision = precision::name_of(session.format().precision),
          .measured_precision = is_measured(session, "train.precision"),
          .measured_format = is_measured(session, "train.channels_last"),
          .channels_last = session.format().channels_last,
          .has_convolutions = session.has_convolutions(),
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
          .can_cache = session.has_images_without_masks() && recipe.data.in_memory == "no",
          .frozen = recipe.train.freeze,
          .strategy = recipe.strategy.name(),
          .measured_buckets = !session.buckets().empty(),
          .compresses_gradients = text_option(recipe.strategy, "compress") != "none",
          .evaluate_every = recipe.train.evaluate_every,
          .checkpoint_every = recipe.train.checkpoint_every,
          .checkpoint_in_background = recipe.train.checkpoint_in_background};
}

}  // namespace

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
    for (size_t i = 0; i < listing.nodes.size(); ++i) {
      nodes.push_back(node_of(listing.nodes[i]));
      if (listing.memory.peak >= 0) nodes.back().memory = use_of(listing.memory.at_node[i]);
    }
  }
  return graphs;
}

compile::GraphStages record_step(Session& session) {
  session.model().set_training(true);
  train::TrainStep step(session.model(), session.optimizer(), session.step_config());
  return step.graphs(session.first_part().by_role(), "recorded", {.most = 0});
}

RecordedEagerStep record_eager_step(Session& session) {
  const compile::GraphStages recorded = record_step(session);
  RecordedEagerStep eager{.nodes = {}, .refusal = recorded.refusal};
  if (!eager.refusal.empty()) return eager;
  for (const compile::ListedNode& node : recorded.stages.front().listing.nodes) {
    // Only a recording has barriers.
    if (node.op != "gallop::barrier") eager.nodes.push_back(node_of(node));
  }
  return eager;
}

profile::Profile profile_of(RecordedSteps& recorded, profile::Graphs& graphs,
                            const std::optional<RecordedEagerStep>& eager,
                            const profile::MachinePeaks& peaks) {
  std::string why_no_layers;
  if (eager) {
    why_no_layers = eager->refusal.empty() ? profile::find_nodes(recorded.trace, eager->nodes)
                                           : "a step cannot be recorded: " + eager->refusal;
    if (why_no_layers.empty()) graphs[profile::kEagerGraph] = eager->nodes;
  }
  profile::Profile profile = profile::profile_of(recorded.trace, graphs, peaks);
  profile::add_counts(profile, recorded.counts);
  profile.why_no_layers = std::move(why_no_layers);
  return profile;
}

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
    memory.graph = number;
    memory.planned = listing.planned_bytes;
    memory.peak_call = node_of(listing.nodes[peak]).call;
    memory.layers.clear();
    for (const auto& layer : timeline.at_peak) {
      memory.layers.push_back({layer.layer, use_of(layer.use)});
    }
    memory.at_node.clear();
    for (size_t i = 0; i < timeline.at_node.size(); ++i) {
      const profile::GraphNode node = node_of(listing.nodes[i]);
      memory.at_node.push_back({.use = use_of(timeline.at_node[i]), .op = node.op});
      if (node.parts.empty()) continue;
      memory.at_node.back().phase = node.parts.front().phase;
      memory.at_node.back().layer = node.parts.front().layer;
    }
    memory.peak_phase = memory.at_node[peak].phase;
    memory.peak_layer = memory.at_node[peak].layer;
  }
  return memory;
}

profile::MachinePeaks measure_peaks() {
  profile::MachinePeaks peaks;
  peaks.flops_per_second = {{"fp32", kernel::peak_flops_per_second(c10::kFloat)},
                            {"bf16", kernel::peak_flops_per_second(c10::kBFloat16)}};
  for (const double bytes : {64e3, 512e3, 4e6, 16e6, 64e6, 256e6}) {
    peaks.bytes_per_second.emplace_back(bytes, kernel::peak_bytes_per_second(bytes));
  }
  return peaks;
}

advise::Facts facts_of(Session& session) {
  advise::Facts facts{.settings = settings_of(session)};
  facts.cores = session.hardware().cores;
  facts.memory_bytes = session.hardware().memory_bytes;
  facts.numa_nodes = numa_nodes_of(cores_given());
  facts.huge_pages = transparent_huge_pages();
  facts.on_gpu = !session.device().is_cpu();
  return facts;
}

advise::GradientFacts gradient_facts_of(Session& session) {
  // As much of all gradients may come after the largest.
  constexpr double kRest = 0.1;
  const auto order = train::gradient_order(session.model(), session.first_part().by_role(),
                                           session.format().precision, *session.step_config().loss);
  const NamedTensors parameters = session.model().parameters();
  advise::GradientFacts facts;
  int64_t before = 0;
  for (const std::string& name : order) {
    const int64_t bytes = static_cast<int64_t>(find_tensor(parameters, name)->nbytes());
    facts.bytes += bytes;
    if (bytes < facts.late_bytes) continue;
    facts.late = name;
    facts.late_bytes = bytes;
    before = facts.bytes;
  }
  if (static_cast<double>(facts.bytes - before) > kRest * static_cast<double>(facts.bytes)) {
    facts.late.clear();
  }
  return facts;
}

std::string profile_document(const Session& session, const advise::Facts& facts,
                             const std::vector<advise::Advice>& advice) {
  using Json = nlohmann::ordered_json;
  Json object = {{"training", session.describe_training()},
                 {"items", samples_of(session.inputs())}};
  object.update(Json::parse(profile::profile_json(facts.profile, facts.peaks)));
  object["advice"] = Json::parse(advise::advice_json(advice));
  return json_line(object);
}

void require_profiled_device(const Session& session, const char* what) {
  if (session.device().is_cpu()) return;
  throw UsageError(fmt::format("{} supports only CPUs so far; set train.device=cpu", what));
}

}  // namespace gallop::app
