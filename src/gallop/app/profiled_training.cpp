#include "gallop/app/profiled_training.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "gallop/app/profile_facts.h"
#include "gallop/app/step_recording.h"
#include "gallop/app/trainer_parts.h"
#include "gallop/base/error.h"
#include "gallop/base/temporary_folder.h"
#include "gallop/train/operator_spans.h"

namespace gallop::app {

namespace {

// Records the steps after the warm-up.
class Recording final : public train::Observer {
 public:
  Recording(int64_t first, int64_t steps, int processes)
      : first_(first), end_(first + steps), recording_(processes) {}

  void step_begins(int64_t step) override {
    if (step == first_) recording_.start();
    if (step >= end_) stop();
  }
  void finished(const train::Outcome& /*outcome*/) override { stop(); }

  RecordedSteps take() { return std::move(recorded_); }

 private:
  void stop() {
    if (recording_.is_running()) recorded_ = recording_.stop();
  }

  int64_t first_, end_;
  StepRecording recording_;
  RecordedSteps recorded_;
};

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

}  // namespace

ProfiledTraining profile_training(Session& session, int64_t warm_up, int64_t steps,
                                  const DistributedContext& context, const StopRequest& stop) {
  const TemporaryFolder folder(fs::temp_directory_path(), "gallop-profile-");
  train::CheckpointStore checkpoints(folder.path() / "checkpoints", {});
  Recording recording(warm_up, steps, context.local_size());
  train::TrainerParts parts = trainer_parts(session, checkpoints, stop);
  parts.observers = {&recording};
  parts.until = {.unit = train::Interval::Unit::kSteps,
                 .count = static_cast<double>(warm_up + steps)};
  train::Trainer trainer(parts, session.recipe().train, session.step_config(),
                         session.training_loader(), session.evaluate_config());
  ProfiledTraining result{.trace = {}, .graphs = {}, .facts = {}};
  std::optional<train::OperatorSpans> operators;
  if (!session.step_config().compile) operators.emplace();
  const train::Outcome outcome = trainer.run();
  operators.reset();
  if (stop.requested()) return result;
  if (outcome.step < warm_up + 1) {
    throw UsageError(fmt::format(
        "the training has {} steps, all of which belong to the warm-up; set train.epochs higher",
        outcome.steps));
  }
  RecordedSteps recorded = recording.take();
  const auto listings = trainer.compiled_graphs();
  result.graphs = graphs_of(listings);
  const profile::StepMemory memory = memory_of(session, listings);
  advise::Facts& facts = result.facts;
  facts = facts_of(session, result.graphs);
  facts.other_cores = recorded.other_cores;
  facts.peaks = measure_peaks();
  facts.profile = profile::profile_of(recorded.trace, result.graphs, facts.peaks);
  profile::add_counts(facts.profile, recorded.counts);
  facts.profile.samples = session.recipe().data.batch_size;
  facts.profile.memory = memory;
  if (result.graphs.empty()) {
    add_layers_of_eager_step(session, facts, result.graphs);
    facts.settings.has_convolutions = has_convolutions(session, result.graphs);
  }
  result.trace = std::move(recorded.trace);
  return result;
}

}  // namespace gallop::app
