#include "gallop/app/run_profiler.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <memory>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "gallop/app/profile_facts.h"
#include "gallop/base/clock.h"
#include "gallop/base/error.h"
#include "gallop/base/memory.h"
#include "gallop/base/text.h"
#include "gallop/profile/profile.h"
#include "gallop/track/run_profiles.h"

namespace gallop::app {

namespace {

// Two steps of a process are recorded for the compiled one, and the next still fills caches.
constexpr int64_t kWarmUp = 3;

// Calls the function in a thread that leaves the cores to the training; where no thread can be
// started, when its result is needed.
template <typename Function>
auto in_background(Function function) {
  const auto shared = std::make_shared<Function>(std::move(function));
  try {
    return std::async(std::launch::async, [shared] {
      prctl(PR_SET_NAME, "profile");
      setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 19);
      return (*shared)();
    });
  } catch (const std::system_error&) {
    return std::async(std::launch::deferred, [shared] { return (*shared)(); });
  }
}

bool has_unknown_graph(const Trace& trace, const profile::Graphs& graphs) {
  for (const ThreadTrace& thread : trace.threads) {
    for (const TraceEvent& event : thread.events) {
      if (event.kind == SpanKind::kPhase && event.name == kGraphSpan &&
          !graphs.contains(event.number)) {
        return true;
      }
    }
  }
  return false;
}

// A training that can be profiled in part continues.
RecordedEagerStep try_to_record(Session& session) {
  try {
    return record_eager_step(session);
  } catch (const std::exception& error) {
    return {.nodes = {}, .refusal = printable(error.what())};
  }
}

}  // namespace

void require_profiled_steps(const Session& session) {
  const ProfileConfig& config = session.recipe().profile;
  const auto every = train::Interval::parse(config.every);
  if (every.unit == train::Interval::Unit::kNever) return;
  require_profiled_device(session, "profile.every");
  if (session.length().step_of(every) > config.steps) return;
  throw UsageError(
      fmt::format("profile.every is '{}', which has no more steps than a profile; set "
                  "profile.steps below {}, or profile.every higher",
                  config.every, config.steps));
}

RunProfiler::RunProfiler(Session& session, const train::Trainer& trainer,
                         const DistributedContext& context, fs::path run, int64_t step)
    : session_(session),
      trainer_(trainer),
      context_(context),
      run_(std::move(run)),
      every_(train::Interval::parse(session.recipe().profile.every)),
      length_(session.length()),
      first_step_(step),
      recording_(context.local_size()) {
  if (context_.is_first()) {
    track::remove_run_profiles_after(run_, step);
    remove_oldest();
  }
  if (!session_.step_config().compile) eager_ = try_to_record(session_);
  peaks_ = measure_peaks();
  started_ = monotonic_seconds();
  plan_after(step);
}

// The next interval whose last steps are neither begun nor among the first ones of this process.
void RunProfiler::plan_after(int64_t step) {
  const int64_t least = std::max(step, first_step_ + kWarmUp);
  const int64_t steps = session_.recipe().profile.steps;
  const bool by_steps = every_.unit == train::Interval::Unit::kSteps;
  const double done = by_steps ? static_cast<double>(step) : length_.epochs_after(step);
  for (double multiple = std::max(1.0, std::floor(done / every_.count));; multiple += 1) {
    end_ = length_.step_of({.unit = every_.unit, .count = multiple * every_.count});
    begin_ = end_ - steps;
    if (begin_ >= least) return;
  }
}

void RunProfiler::step_begins(int64_t step) {
  if (collected_step_ >= 0 && step >= collected_step_ + session_.recipe().profile.steps) {
    collect(step);
  }
  if (step == begin_) {
    if (const auto reason = trainer_.why_eager()) {
      operators_.emplace();
      if (!eager_) eager_ = RecordedEagerStep{.nodes = {}, .refusal = *reason};
    }
    recording_.start();
  }
  if (step != end_ || !recording_.is_running()) return;
  RecordedSteps recorded = recording_.stop();
  operators_.reset();
  evaluate(std::move(recorded));
  plan_after(step);
}

void RunProfiler::evaluate(RecordedSteps recorded) {
  if (collected_step_ >= 0) collect(end_);
  take_stored();
  if (has_unknown_graph(recorded.trace, graphs_)) {
    listings_ = trainer_.compiled_graphs();
    graphs_ = graphs_of(listings_);
  }
  advise::Facts facts = facts_of(session_);
  if (eager_) facts.settings.why_not_compiled = eager_->refusal;
  facts.peaks = peaks_;
  facts.other_cores = recorded.other_cores;
  facts.evaluation_share_of_run = evaluation_seconds_ / (monotonic_seconds() - started_);
  facts.profile.samples = session_.length().history.at(end_).batch;
  facts.profile.memory = memory_of(session_, listings_);
  facts.profile.memory.of_process = resident_bytes();  // The peak includes the measurement's.
  auto evaluate_it = [this, recorded = std::move(recorded), facts = std::move(facts)]() mutable {
    return evaluate_recorded(std::move(recorded), std::move(facts));
  };
  if (!context_.is_alone()) {
    collected_step_ = end_;
    evaluated_ = in_background(std::move(evaluate_it));
    return;
  }
  stored_ = in_background([this, evaluate_it = std::move(evaluate_it), step = end_]() mutable {
    Evaluated own = evaluate_it();
    const std::vector<RankReport> reports = {own.report};
    return store(std::move(own), reports, step);
  });
}

// Does not throw: the other processes wait for the report.
RunProfiler::Evaluated RunProfiler::evaluate_recorded(RecordedSteps recorded,
                                                      advise::Facts facts) const {
  const std::string& host = session_.hardware().host;
  try {
    profile::Graphs graphs = graphs_;
    profile::Profile profile = profile_of(recorded, graphs, eager_, facts.peaks);
    profile.samples = facts.profile.samples;
    profile.memory = std::move(facts.profile.memory);
    facts.profile = std::move(profile);
    RankReport report = report_of(context_, host, std::move(recorded.trace), graphs, facts.profile);
    return {.facts = std::move(facts), .report = std::move(report)};
  } catch (const std::exception& error) {
    return {.report = {.time = {.rank = context_.rank(), .host = host}},
            .trouble = printable(error.what())};
  }
}

// All processes do this after the same step.
void RunProfiler::collect(int64_t step) {
  Evaluated own = evaluated_.get();
  const int64_t of_step = std::exchange(collected_step_, -1);
  std::vector<RankReport> reports = gather_reports(context_, own.report, step);
  if (!context_.is_first()) return;
  take_stored();
  stored_ = in_background([this, own = std::move(own), reports = std::move(reports),
                           of_step]() mutable { return store(std::move(own), reports, of_step); });
}

RunProfiler::Stored RunProfiler::store(Evaluated own, const std::vector<RankReport>& reports,
                                       int64_t step) const {
  Stored stored{.trouble = own.trouble};
  if (!own.trouble.empty()) return stored;
  try {
    profile::Profile& profile = own.facts.profile;
    profile.ranks = times_of(reports);
    std::vector<std::string> traces;
    for (const RankReport& report : reports) traces.push_back(report.trace);
    std::vector<advise::Advice> advice = advise::advise(own.facts);
    track::write_run_profile(run_, step, profile_document(session_, own.facts, advice) + "\n",
                             traces);
    stored.advice = {.first_step = profile.first_step,
                     .last_step = profile.first_step + profile.steps - 1,
                     .advice = std::move(advice)};
    remove_oldest();
  } catch (const std::exception& error) {
    stored.trouble = printable(error.what());
  }
  return stored;
}

void RunProfiler::remove_oldest() const {
  if (const auto most = session_.recipe().profile.most()) track::keep_run_profiles(run_, *most);
}

void RunProfiler::take_stored() {
  if (!stored_.valid()) return;
  Stored stored = stored_.get();
  if (stored.advice) advice_ = std::move(stored.advice);
  if (!stored.trouble.empty()) trouble_ = std::move(stored.trouble);
}

void RunProfiler::evaluated(const train::EvaluationEvent& event) {
  evaluation_seconds_ += event.evaluation.seconds;
}

void RunProfiler::went_back(int64_t step) {
  recording_.stop();
  operators_.reset();
  if (collected_step_ >= 0) evaluated_.get();
  collected_step_ = -1;
  take_stored();
  try {
    if (context_.is_first()) track::remove_run_profiles_after(run_, step);
  } catch (const Error& error) {
    trouble_ = error.what();
  }
  plan_after(step);
}

void RunProfiler::finished(const train::Outcome& outcome) {
  recording_.stop();
  operators_.reset();
  if (collected_step_ >= 0) collect(outcome.step);
  take_stored();
}

}  // namespace gallop::app
