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
  Recording(const train::Trainer& trainer, int64_t first, int64_t steps, int processes)
      : trainer_(trainer), first_(first), end_(first + steps), recording_(processes) {}

  void step_begins(int64_t step) override {
    if (step == first_) {
      if (trainer_.why_eager()) operators_.emplace();
      recording_.start();
    }
    if (step >= end_) stop();
  }
  void finished(const train::Outcome& /*outcome*/) override { stop(); }

  RecordedSteps take() { return std::move(recorded_); }

 private:
  void stop() {
    if (recording_.is_running()) recorded_ = recording_.stop();
    operators_.reset();
  }

  const train::Trainer& trainer_;
  std::optional<train::OperatorSpans> operators_;
  int64_t first_, end_;
  StepRecording recording_;
  RecordedSteps recorded_;
};

}  // namespace

ProfiledTraining profile_training(Session& session, int64_t warm_up, int64_t steps,
                                  const DistributedContext& context, const StopRequest& stop) {
  const TemporaryFolder folder(fs::temp_directory_path(), "gallop-profile-");
  train::CheckpointStore checkpoints(folder.path() / "checkpoints", {});
  train::TrainerParts parts = trainer_parts(session, checkpoints, stop);
  parts.until = {.unit = train::Interval::Unit::kSteps,
                 .count = static_cast<double>(warm_up + steps)};
  train::Trainer trainer(parts, session.recipe().train, session.step_config(),
                         session.training_loader(), session.evaluate_config());
  Recording recording(trainer, warm_up, steps, context.local_size());
  trainer.observe({&recording});
  ProfiledTraining result{.trace = {}, .graphs = {}, .facts = {}};
  const train::Outcome outcome = trainer.run();
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
  std::optional<RecordedEagerStep> eager;
  if (result.graphs.empty()) eager = record_eager_step(session);
  const profile::MachinePeaks peaks = measure_peaks();
  profile::Profile profile = profile_of(recorded, result.graphs, eager, peaks);
  profile.samples = session.length().history.at(warm_up).batch;
  profile.memory = memory;
  result.facts = facts_of(session);
  advise::Facts& facts = result.facts;
  facts.profile = std::move(profile);
  facts.peaks = peaks;
  facts.other_cores = recorded.other_cores;
  if (eager) facts.settings.why_not_compiled = eager->refusal;
  result.trace = std::move(recorded.trace);
  return result;
}

}  // namespace gallop::app
