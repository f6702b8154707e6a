#pragma once

#include <cstdint>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gallop/advise/advice.h"
#include "gallop/app/console.h"
#include "gallop/app/distributed_context.h"
#include "gallop/app/profile_facts.h"
#include "gallop/app/rank_reports.h"
#include "gallop/app/session.h"
#include "gallop/app/step_recording.h"
#include "gallop/base/file.h"
#include "gallop/train/operator_spans.h"
#include "gallop/train/trainer.h"

namespace gallop::app {

/// Throws UsageError if the recipe requests profiles and the run is not on a CPU, or their interval
/// has no more steps than a profile.
void require_profiled_steps(const Session& session);

/// Profiles steps of a run as its recipe's `profile:` section requests, and stores the profiles in
/// its folder (track/run_profiles.h). All processes of a run have one. Only recording is done
/// between two steps; a profile is evaluated and written in a background thread of low priority.
class RunProfiler final : public train::Observer {
 public:
  /// The run continues after `step`; profiles of later steps are removed. Measures this machine's
  /// peaks for half a second, and records a step if steps are eager. All arguments must outlive it.
  /// Throws DeviceError if the folder cannot be written.
  RunProfiler(Session& session, const train::Trainer& trainer, const DistributedContext& context,
              fs::path run, int64_t step);

  void step_begins(int64_t step) override;
  void evaluated(const train::EvaluationEvent& event) override;
  void went_back(int64_t step) override;
  /// Waits until the last profile is stored.
  void finished(const train::Outcome& outcome) override;

  /// The advice of the last profile, on rank 0; nothing if there is none.
  const std::optional<RunAdvice>& advice() const { return advice_; }
  /// Why a profile could not be stored; empty otherwise.
  const std::string& trouble() const { return trouble_; }

 private:
  // What the background thread derives from the spans.
  struct Evaluated {
    advise::Facts facts;
    RankReport report;
    std::string trouble;  // Why there is no profile; empty otherwise.
  };
  struct Stored {
    std::optional<RunAdvice> advice;
    std::string trouble;
  };

  void plan_after(int64_t step);
  void evaluate(RecordedSteps recorded);
  void collect(int64_t step);
  void take_stored();
  void remove_oldest() const;
  Evaluated evaluate_recorded(RecordedSteps recorded, advise::Facts facts) const;
  Stored store(Evaluated own, const std::vector<RankReport>& reports, int64_t step) const;

  Session& session_;
  const train::Trainer& trainer_;
  const DistributedContext& context_;
  fs::path run_;
  train::Interval every_;
  train::Length length_;
  int64_t first_step_;           // The first step of this process.
  int64_t begin_ = 0, end_ = 0;  // The next profile, in steps done.
  int64_t collected_step_ = -1;  // The last step of the profile that is evaluated; -1: none is.
  double started_ = 0, evaluation_seconds_ = 0;
  profile::MachinePeaks peaks_;
  std::map<int64_t, compile::GraphListing> listings_;
  profile::Graphs graphs_;
  std::optional<RecordedEagerStep> eager_;  // What eager steps compute.
  StepRecording recording_;
  std::optional<train::OperatorSpans> operators_;  // Spans of eager steps.
  std::optional<RunAdvice> advice_;
  std::string trouble_;
  std::future<Evaluated> evaluated_;
  std::future<Stored> stored_;  // Last, as their threads use the others.
};

}  // namespace gallop::app
