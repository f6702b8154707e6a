#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gallop/base/clock.h"
#include "gallop/tune/registries.h"
#include "gallop/tune/storage.h"
#include "gallop/tune/study_client.h"

namespace gallop::tune {

struct WarmStart;

/// Leads a study: assigns the trials that its sampler and pruner choose, and stores the results.
/// Its state is a function of the storage's events, so that a new Tuner continues where this one
/// ends, and several can lead a study concurrently if its storage supports several writers.
class Tuner final : public StudyClient {
 public:
  using Clock = std::function<double()>;

  /// Reads the stored study. Throws UsageError if its sampler or pruner cannot be created, and,
  /// like all calls, the errors of the storage.
  Tuner(std::unique_ptr<Storage> storage, const TuneRegistries& registries,
        Clock clock = seconds_since_1970);
  /// Uses the built-in samplers and pruners.
  explicit Tuner(std::unique_ptr<Storage> storage, Clock clock = seconds_since_1970)
      : Tuner(std::move(storage), TuneRegistries(), std::move(clock)) {}

  const StudySettings& settings() const override { return study_.settings(); }
  /// Waiting trials come first, then those that the pruner promotes, then new ones. Throws
  /// UsageError if the sampler finds no point that satisfies the constraints.
  Assignment ask(const std::string& worker) override;
  void set_run_folder(const Trial& trial, const std::string& folder) override;
  /// Ignores impossible requests, such as for an unknown trial.
  void share(const Trial& trial, int64_t other, int64_t steps) override;
  Verdict report(const Trial& trial, int64_t step, double value) override;
  Verdict heartbeat(const Trial& trial) override;
  /// A complete trial fails, with a message, unless it has one finite value per objective and per
  /// limit.
  bool tell(const Trial& trial, const Outcome& outcome) override;
  void release(const Trial& trial) override;
  void control(const Control& control) override;

  /// The state of the study as of the last call.
  const Study& study() const { return study_; }
  /// Reads the events that others have written.
  void refresh();
  /// The study's history (Storage::events()).
  std::vector<Event> events(int64_t from, int64_t most) { return storage_->events(from, most); }
  /// Requeues trials whose workers sent no heartbeat for two intervals, or fails them after the
  /// maximum number of attempts. ask() does this as well.
  void requeue_silent();
  /// Makes sure that all results are on the disk if the last time was over a second ago.
  void flush() { storage_->flush(); }

  /// Queues points to try before those of the sampler; they count as requested trials. Throws
  /// UsageError if one is not in the space or violates its constraints.
  void enqueue(const std::vector<Point>& points);
  /// Takes over the finished trials of an earlier study; returns the result of warm_start().
  WarmStart take_over(const Study& earlier);
  /// Stops the study: no further trial is started; running ones continue.
  void stop(const std::string& reason);
  /// Resumes the study, with so many more trials than requested before.
  void resume(int64_t more_trials = 0);
  /// Queues the failed trials again, and returns their number.
  int64_t retry_failed();

 private:
  void update(const Storage::Answer& answer);
  bool is_known(int64_t number) const;
  bool is_running(const Attempt& attempt) const;
  const Trial& at(int64_t number) const { return study_.trials()[static_cast<size_t>(number)]; }
  Event event(Event::Kind kind, int64_t trial) const;
  Event start(const Trial& trial, const std::string& worker) const;
  bool finished_segment(int64_t number) const;
  Event end(const Trial& trial, const Outcome& outcome) const;
  Event lose(const Trial& trial) const;
  Event resumed(int64_t more_trials) const;
  Event queue(int64_t number, int32_t bracket, const Proposal& proposal) const;
  void stop_after_failures(std::vector<Event>& events) const;
  void stop_at_targets(std::vector<Event>& events) const;
  std::optional<int64_t> held_by(const std::string& worker) const;
  std::vector<Event> next_trial(const std::string& worker);

  std::unique_ptr<Storage> storage_;
  Clock clock_;
  Study study_;
  std::unique_ptr<Sampler> sampler_;
  std::unique_ptr<Pruner> pruner_;
};

}  // namespace gallop::tune
