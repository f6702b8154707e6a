#include "gallop/app/tune/study_run.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "gallop/app/data_sharing.h"
#include "gallop/app/print.h"
#include "gallop/app/registries.h"
#include "gallop/app/tune/leader.h"
#include "gallop/app/tune/new_study.h"
#include "gallop/app/tune/worker_threads.h"
#include "gallop/base/affinity.h"
#include "gallop/base/clock.h"
#include "gallop/base/error.h"
#include "gallop/base/hardware.h"

namespace gallop::app {

namespace {

constexpr auto kPause = std::chrono::milliseconds(250);
constexpr double kPatienceSeconds = 300;  // Waiting for a leader.
constexpr double kKnockSeconds = 1;       // For one attempt to reach the leader.

using Worker = WorkerThreads::Worker;

// Containers may share the name of their host, and have equal process ids.
std::string name_of(const StudyRunConfig& config) {
  if (!config.name.empty()) return config.name;
  constexpr ino_t kNamespaceOfHost = 0xEFFFFFFC;
  struct stat space {};
  const bool is_within = stat("/proc/self/ns/pid", &space) == 0 && space.st_ino != kNamespaceOfHost;
  return fmt::format("{}:{}{}", host_name(), getpid(),
                     is_within ? fmt::format(":{}", space.st_ino) : "");
}

std::vector<Worker> workers_of(const tune::StudyPlace& place, const StudyRunConfig& config,
                               const DataSharing& sharing) {
  std::vector<int> cores = side_by_side(cores_given());
  if (config.cores > 0) {
    cores.resize(static_cast<size_t>(config.workers) * static_cast<size_t>(config.cores));
  }
  std::vector<Worker> workers;
  for (int i = 0; i < config.workers; ++i) {
    Worker worker{.name = fmt::format("{}/{}", name_of(config), i),
                  .place = {.study = fs::absolute(place.folder), .cores = {}}};
    if (config.workers > 1 || config.cores > 0) {
      worker.place.cores = part_of(cores, i, config.workers);
    }
    if (!config.gpus.empty()) {
      const auto number = static_cast<size_t>(config.first_worker) + static_cast<size_t>(i);
      worker.place.variables["CUDA_VISIBLE_DEVICES"] = config.gpus[number % config.gpus.size()];
    }
    worker.place.variables.merge(sharing.variables());
    worker.place.without = config.without;
    workers.push_back(std::move(worker));
  }
  return workers;
}

/// This process's part in a study: its workers and, if it leads, its output.
class Member {
 public:
  Member(const tune::TuneRegistries& registries, const tune::StudyPlace& place,
         const StudyRunConfig& config)
      : registries_(registries),
        place_(place),
        config_(config),
        sharing_(config.workers),
        view_(config.style, registries) {
    if (sharing_.trouble().empty()) return;
    print_error("gallop: data are not shared between trials: {}\n", sharing_.trouble());
  }

  std::vector<Worker> workers() const { return workers_of(place_, config_, sharing_); }
  bool leads() const { return leader_.has_value(); }
  Leader& leader() { return *leader_; }

  /// Leads; resumes a stopped study if `resumes`.
  void lead(std::unique_ptr<tune::Storage> storage, bool resumes) {
    leader_.emplace(std::move(storage), registries_, place_, config_.listen,
                    began_ + config_.seconds);
    if (resumes) leader_->resume();
    leader_->show(
        [this](const tune::Study& study) { view_.begin(study, place_, config_.workers); });
  }

  /// Leads unless another process does.
  void try_to_lead(bool resumes) {
    if (auto storage = place_.open_unless_led()) lead(std::move(storage), resumes);
  }

  /// Runs until the workers are done, or until they have released their trials after a `stop`.
  /// Tries to lead the study if `is_leader_missed`.
  StudyEnd run(WorkerThreads& workers, const std::function<bool()>& is_leader_missed,
               const StopRequest& stop) {
    bool has_said_so = false;
    while (!workers.are_done() || (leads() && leader_->has_running())) {
      if (stop.requested() && workers.are_done()) break;
      if (!leads() && is_leader_missed()) try_to_lead(/*resumes=*/false);
      if (leads()) {
        serve(stop);
        // The signal handler has already reported the stop.
        if (stop.requested() && !std::exchange(has_said_so, true)) view_.leave_table();
        leader_->show([this](const tune::Study& study) { view_.look(study); });
      } else {
        std::this_thread::sleep_for(kPause);
      }
    }
    if (leads()) {
      // Remote workers may be stopping as well, and must be able to release their trials.
      if (stop.requested() && leader_->has_running()) leader_->take_leave();
      leader_->show([this](const tune::Study& study) { view_.end(study); });
      if (!stop.requested()) leader_->take_leave();
    }
    return {.is_done = !stop.requested(), .has_led = leads()};
  }

 private:
  // A database that does not answer must not prevent a stop.
  void serve(const StopRequest& stop) {
    try {
      leader_->serve();
    } catch (const tune::StudyUnreachable& error) {
      if (!stop.requested()) throw;
      if (std::exchange(has_lost_study_, true)) return;
      view_.leave_table();
      print_error("gallop: {}; running trials resume with the study\n", error.what());
    }
  }

  const tune::TuneRegistries& registries_;
  const tune::StudyPlace& place_;
  const StudyRunConfig& config_;
  const double began_ = monotonic_seconds();
  DataSharing sharing_;
  StudyView view_;
  std::optional<Leader> leader_;
  bool has_lost_study_ = false;
};

bool never() { return false; }

std::function<bool()> unless_asked(const StopRequest& stop) {
  return [&stop] { return !stop.requested(); };
}

tune::Patience until_asked(const StopRequest& stop) {
  return {.seconds = kPatienceSeconds, .goes_on = unless_asked(stop)};
}

void say_taking_part(const tune::StudyPlace& place, const StudyRunConfig& config) {
  if (config.style != StudyView::Style::kText) return;
  fmt::print("worker     {} joined {}\n", name_of(config), place.folder.string());
  std::fflush(stdout);
}

void say_waiting(const tune::StudyPlace& place, const StudyRunConfig& config) {
  if (config.style != StudyView::Style::kText) return;
  fmt::print("waiting    {}\n", place.is_led()
                                    ? "its leader does not answer yet"
                                    : "no process leads it yet; run 'gallop tune SWEEP'");
  std::fflush(stdout);
}

bool needs_no_more(const tune::Study& study) {
  return study.is_stopped() || study.has_all_trials();
}

// The settings of the study from its leader; nothing if there is no answer.
std::optional<tune::StudySettings> knock(const tune::StudyPlace& place) {
  try {
    return place.open_remote({.seconds = kKnockSeconds})->settings();
  } catch (const Error&) {
    // No process, or the leader of another study that now uses this address.
    return std::nullopt;
  }
}

// Leads as soon as possible, or finds the leader. Nothing after `stop`.
std::optional<tune::StudySettings> find_leader(Member& member, const tune::StudyPlace& place,
                                               const JoinConfig& join, const StopRequest& stop) {
  const double began = monotonic_seconds();
  while (!stop.requested()) {
    const double waited = monotonic_seconds() - began;
    if (waited >= join.wait_seconds) member.try_to_lead(join.resumes);
    if (member.leads()) return member.leader().settings();
    if (auto settings = knock(place)) {
      require_same(place, *settings, join.settings);
      return settings;
    }
    if (waited > kPatienceSeconds) {
      throw DeviceError(
          fmt::format("{}: another process leads it, but does not answer", place.folder.string()));
    }
  }
  return std::nullopt;
}

}  // namespace

StudyEnd run_study(const Registries& registries, const tune::StudyPlace& place,
                   const StudyRunConfig& config, bool resumes, const StopRequest& stop) {
  Member member(registries.tune, place, config);
  member.lead(place.open_store({.goes_on = unless_asked(stop)})->open(place.name), resumes);
  WorkerThreads workers(
      registries, member.leader().settings(), member.workers(),
      [&] { return member.leader().client(); }, stop);
  return member.run(workers, never, stop);
}

StudyEnd help_study(const Registries& registries, const tune::StudyPlace& place,
                    const StudyRunConfig& config, const StopRequest& stop) {
  const WorkerThreads::OpenStudyClient open = [&] {
    return place.is_in_database() ? place.open_study_client(registries.tune, unless_asked(stop))
                                  : place.open_remote(until_asked(stop));
  };
  say_taking_part(place, config);
  std::optional<tune::StudySettings> settings;
  if (!place.is_in_database() && !(settings = knock(place))) {
    if (!place.is_led() && needs_no_more(place.read())) {
      if (config.style == StudyView::Style::kText) fmt::print("done       no trials left\n");
      return {.is_done = true};
    }
    say_waiting(place, config);
  }
  try {
    if (!settings) settings = open()->settings();
  } catch (const tune::StudyUnreachable&) {
    if (stop.requested()) return {};
    throw;
  }
  Member member(registries.tune, place, config);
  WorkerThreads workers(registries, *settings, member.workers(), open, stop);
  return member.run(workers, never, stop);
}

StudyEnd join_study(const Registries& registries, const tune::StudyPlace& place,
                    const StudyRunConfig& config, const JoinConfig& join, const StopRequest& stop) {
  Member member(registries.tune, place, config);
  const auto settings = find_leader(member, place, join, stop);
  if (!settings) return {};
  std::atomic<bool> is_missed{false};
  WorkerThreads::OpenStudyClient open = [&] {
    return place.open_remote(until_asked(stop), [&] { is_missed = true; });
  };
  if (member.leads()) {
    open = [&leader = member.leader()] { return leader.client(); };
  } else {
    say_taking_part(place, config);
  }
  WorkerThreads workers(registries, *settings, member.workers(), open, stop);
  return member.run(
      workers, [&] { return is_missed.exchange(false); }, stop);
}

}  // namespace gallop::app
