#include "gallop/app/tune/study_run.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/data_sharing.h"
#include "gallop/app/terminal.h"
#include "gallop/app/tune/study_text.h"
#include "gallop/app/tune/worker.h"
#include "gallop/base/clock.h"
#include "gallop/base/error.h"
#include "gallop/base/hardware.h"
#include "gallop/base/text.h"
#include "gallop/tune/locked_broker.h"
#include "gallop/tune/remote/coordinator.h"
#include "gallop/tune/tuner.h"

namespace gallop::app {

namespace {

constexpr int kLookMilliseconds = 250;
constexpr double kPatienceSeconds = 300;  // Until there is somebody who leads the study.
constexpr size_t kShownTrials = 12;

/// What is seen of a study while it runs.
class View {
 public:
  explicit View(const StudyRunConfig& config) : config_(config) {
    is_live_ = !config.json && !config.quiet && isatty(STDOUT_FILENO) == 1;
  }

  void begin(const tune::Study& study, const StudyPlace& place) {
    told_ = study.finished().size();
    if (config_.json || config_.quiet) return;
    const auto& settings = study.settings();
    fmt::print("study      {}, seed {}: {} parameters, sampler {}, pruner {}\n",
               place.folder.string(), settings.seed, settings.space.size(),
               name_in(settings.sampler), name_in(settings.pruner));
    fmt::print("workers    {} on this machine\n", config_.workers);
    if (told_ > 0) fmt::print("goes on    {}\n", progress_text(study));
    std::fflush(stdout);
  }

  void look(const tune::Study& study) {
    for (; told_ < study.finished().size(); ++told_) tell(study, study.finished()[told_]);
    if (is_live_) draw(study);
  }

  void end(const tune::Study& study) {
    look(study);
    if (config_.json) {
      print(study_json(study, /*indent=*/-1), "end");
    } else {
      fmt::print("{}\n", progress_text(study));
    }
    std::fflush(stdout);
  }

 private:
  static std::string name_in(const std::string& component) {
    return nlohmann::json::parse(component).value("name", "");
  }

  // Adds a word to an object, at its beginning.
  static void print(const std::string& json, const char* event) {
    fmt::print("{{\"event\":\"{}\",{}\n", event, std::string_view(json).substr(1));
  }

  void tell(const tune::Study& study, int64_t number) {
    const tune::Trial& trial = trial_at(study, number);
    if (config_.json) {
      print(trial_json(study, trial), "trial");
    } else if (!config_.quiet && !is_live_) {
      const bool is_best = study.objectives() == 1 && study.best() == number;
      fmt::print("trial {:<5} {:<8}  {}{}  {}\n", number, tune::state_name(trial.state),
                 trial.message.empty() ? values_text(study, trial) : printable(trial.message),
                 is_best ? "  best so far" : "", point_text(study, trial, 4));
    }
    std::fflush(stdout);
  }

  void draw(const tune::Study& study) {
    const auto columns = static_cast<size_t>(terminal_columns());
    const std::string table =
        progress_text(study) + "\n" + trials_table(study, kShownTrials, columns);
    if (table == drawn_) return;
    // Over the table that stands there.
    const auto lines = std::count(drawn_.begin(), drawn_.end(), '\n');
    if (lines > 0) fmt::print("\x1b[{}A\x1b[J", lines);
    std::fputs(table.c_str(), stdout);
    std::fflush(stdout);
    drawn_ = table;
  }

  const StudyRunConfig& config_;
  bool is_live_;
  size_t told_ = 0;
  std::string drawn_;
};

/// The threads that run trials, each in turn.
class Workers {
 public:
  /// Each asks the broker that `broker_of` gives for its number. Their names begin with `name`.
  Workers(const tune::StudySettings& settings, const StudyPlace& place,
          const StudyRunConfig& config, const std::string& name,
          const std::function<tune::Broker&(int)>& broker_of)
      : spec_(tune::parse_run_spec(settings.run)),
        unit_(report_unit(settings, spec_)),
        sharing_(config.workers) {
    if (spec_.recipe.empty() && spec_.command.empty()) {
      throw UsageError(
          "the sweep has neither 'recipe' nor 'command', so there is nothing to run here; other "
          "programs take its trials by 'gallop tune ask'");
    }
    if (!sharing_.trouble().empty()) {
      fmt::print(stderr, "gallop: data are not shared between trials: {}\n", sharing_.trouble());
    }
    for (int i = 0; i < config.workers; ++i) {
      TrialPlace trials = place_of(place.folder, i, config.workers, config.gpus);
      trials.variables.merge(sharing_.variables());
      threads_.emplace_back([this, &broker = broker_of(i), name, i, trials] {
        run(broker, fmt::format("{}/{}", name, i), trials);
      });
    }
  }
  ~Workers() {
    stop_.request(-1);
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void stop() { stop_.request(-1); }
  /// Whether none is left. Throws what ended one.
  bool are_done() {
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
    return done_ == threads_.size();
  }

 private:
  void run(tune::Broker& broker, const std::string& name, const TrialPlace& place) {
    std::exception_ptr error;
    try {
      work(broker, name, spec_, place, unit_, stop_);
    } catch (const std::exception&) {
      error = std::current_exception();
      stop_.request(-1);
    }
    const std::lock_guard lock(mutex_);
    if (error && !error_) error_ = error;
    ++done_;
  }

  tune::RunSpec spec_;
  ReportUnit unit_;
  DataSharing sharing_;
  StopRequest stop_;
  std::mutex mutex_;
  std::exception_ptr error_;
  size_t done_ = 0;
  std::vector<std::thread> threads_;
};

// Whether workers elsewhere have trials that are to end.
bool has_others(std::mutex& mutex, const tune::Tuner& tuner) {
  const std::lock_guard lock(mutex);
  return !tuner.study().running().empty();
}

}  // namespace

bool run_study(const StudyPlace& place, const StudyRunConfig& config, const StopRequest& stop) {
  tune::Tuner tuner(place.open_store()->open(place.name));
  if (tuner.study().is_stopped()) tuner.resume();
  std::optional<tune::Coordinator> coordinator;
  if (!place.is_in_database()) {
    coordinator.emplace(tuner, tune::Coordinator::Options{.host = config.listen,
                                                          .address_file = place.address_file()});
  }
  std::mutex mutex;
  tune::LockedBroker broker(tuner, mutex);
  View view(config);
  view.begin(tuner.study(), place);
  const double began = monotonic_seconds();
  // The same names after a restart, so that each takes up the trial that it had.
  Workers workers(tuner.settings(), place, config, host_name(),
                  [&](int) -> tune::Broker& { return broker; });
  while (!workers.are_done() || (coordinator && has_others(mutex, tuner))) {
    if (stop.requested()) {
      workers.stop();
      if (workers.are_done()) break;
    }
    if (coordinator) {
      coordinator->wait(kLookMilliseconds);
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(kLookMilliseconds));
    }
    const std::lock_guard lock(mutex);
    if (coordinator) {
      coordinator->serve(0);
    } else {
      tuner.refresh();
    }
    if (!tuner.study().is_stopped() && monotonic_seconds() - began > config.seconds) {
      tuner.stop("its time is over");
    }
    view.look(tuner.study());
  }
  view.end(tuner.study());
  return !stop.requested();
}

bool help_study(const StudyPlace& place, const StudyRunConfig& config, const StopRequest& stop) {
  std::vector<std::unique_ptr<tune::Broker>> brokers;
  for (int i = 0; i < config.workers; ++i) {
    brokers.push_back(place.is_in_database() ? place.open_broker()
                                             : place.open_remote(kPatienceSeconds));
  }
  const std::string name = fmt::format("{}:{}", host_name(), getpid());
  Workers workers(brokers.front()->settings(), place, config, name,
                  [&](int i) -> tune::Broker& { return *brokers[static_cast<size_t>(i)]; });
  while (!workers.are_done()) {
    if (stop.requested()) workers.stop();
    std::this_thread::sleep_for(std::chrono::milliseconds(kLookMilliseconds));
  }
  return !stop.requested();
}

}  // namespace gallop::app
