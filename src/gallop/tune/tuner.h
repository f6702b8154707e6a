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
#include "gallop/tune/warm_start.h"

namespace gallop::tune {

/// Leads a study: hands out trials as its sampler and its pruner say, and has its storage keep what
/// came of them. All that it knows follows from the storage's events, so that another one goes on
/// where this one ends, and several may lead a study at once whose storage several may write.
class Tuner final : public StudyClient {
 public:
  using Clock = std::function<double()>;

  /// Reads what is kept of the study. Throws UsageError where its sampler or its pruner cannot be
  /// made, and what the storage throws, as all calls do.
  Tuner(std::unique_ptr<Storage> storage, const TuneRegistries& registries,
        Clock clock = seconds_since_1970);
  /// The same with the samplers and pruners that come with Gallop.
  explicit Tuner(std::unique_ptr<Storage> storage, Clock clock = seconds_since_1970)
      : Tuner(std::move(storage), TuneRegistries(), std::move(clock)) {}

  const StudySettings& settings() const override { return study_.settings(); }
  /// Waiting trials come first, then those that the pruner promotes, then new ones. Throws
  /// UsageError where the sampler finds no point that the constraints allow.
  Assignment ask(const std::string& worker) override;
  void set_run_folder(const Trial& trial, const std::string& folder) override;
  /// What cannot be, as another trial that there is not, is dropped.
  void share(const Trial& trial, int64_t other, int64_t steps) override;
  Verdict report(const Trial& trial, int64_t step, double value) override;
  Verdict heartbeat(const Trial& trial) override;
  /// A trial is taken for failed, with a message that says why, whose values are not one finite
  /// number for each objective and each limit.
  bool tell(const Trial& trial, const Outcome& outcome) override;
  void release(const Trial& trial) override;
  void control(const Control& control) override;

  /// What is known of the study since the last call, whichever it was.
  const Study& study() const { return study_; }
  /// Reads what others have written.
  void refresh();
  /// The study's history (Storage::events()).
  std::vector<Event> events(int64_t from, int64_t most) { return storage_->events(from, most); }
  /// Trials whose workers have given no sign of life for two heartbeats wait for another worker, or
  /// fail after as many as the settings say. ask() does this as well.
  void requeue_silent();

  /// Queues points to be tried before what the sampler chooses; they count as wanted trials. Throws
  /// UsageError where one is not in the space or not allowed by its constraints.
  void enqueue(const std::vector<Point>& points);
  /// Takes over the finished trials of an earlier study, as warm_start() does; what it returns.
  WarmStart take_over(const Study& earlier);
  /// No trial is started any more; those that run go on.
  void stop(const std::string& reason);
  /// They are started again, so many more than were wanted.
  void resume(int64_t more_trials = 0);
  /// Queues the failed trials again, and returns how many.
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
