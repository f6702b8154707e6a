#include "gallop/app/launch_hosts.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/app/data_sharing.h"
#include "gallop/app/launched_training.h"
#include "gallop/app/run_handoff.h"
#include "gallop/base/clock.h"
#include "gallop/base/hardware.h"
#include "gallop/base/memory.h"
#include "gallop/base/text.h"
#include "gallop/launch/group_thread.h"
#include "gallop/launch/rendezvous/launcher.h"
#include "gallop/parallel/store.h"
#include "gallop/track/run_folder.h"

namespace gallop::app {

namespace {

constexpr int kPollMilliseconds = 50;
// A file server may hold a dead host's lock for a while, and show new folders late.
constexpr double kLockSeconds = 120, kShownSeconds = 60, kSayAfterSeconds = 3;
constexpr double kFarewellSeconds = 5;

std::string trouble_with_run(const std::string& run) {
  if (track::RunFolder::is_run(run)) return {};
  return fmt::format(
      "{} does not exist: launchers on several hosts need the same runs folder on a "
      "shared file system (train --runs DIR)",
      printable(run));
}

/// Waits until a run can be resumed on this host.
class RunWait {
 public:
  RunWait(const std::string& run, bool is_first, const StopRequest& stop)
      : run_(run), is_first_(is_first), stop_(stop) {}

  /// The end of the group if the processes cannot be started.
  std::optional<launch::GroupEnd> end() {
    if (!until(kShownSeconds, [this] { return trouble_with_run(run_); })) {
      return ended(ExitCode::kUsage);
    }
    // The previous trainer received a request to stop, but may be unreachable.
    const auto trainer = [this] {
      const std::string other = is_first_ ? track::RunFolder::trained_by(run_) : "";
      return other.empty() ? other : fmt::format("{} still trains in {}", other, printable(run_));
    };
    if (!until(kLockSeconds, trainer)) return ended(ExitCode::kDevice);
    return std::nullopt;
  }

 private:
  template <typename Function>
  bool until(double seconds, const Function& trouble) {
    bool is_reported = false;
    for (const double begin = monotonic_seconds();;) {
      trouble_ = trouble();
      if (trouble_.empty()) return true;
      const double waited = monotonic_seconds() - begin;
      if (stop_.requested() || waited > seconds) return false;
      if (waited > kSayAfterSeconds && !is_reported) say_launcher("waiting: " + trouble_);
      is_reported = is_reported || waited > kSayAfterSeconds;
      std::this_thread::sleep_for(std::chrono::milliseconds(kPollMilliseconds));
    }
  }

  launch::GroupEnd ended(ExitCode code) const {
    if (stop_.requested()) return {.code = ExitCode::kStopped};
    return {.code = code, .first_failure = trouble_};
  }

  std::string run_;
  bool is_first_;
  const StopRequest& stop_;
  std::string trouble_;
};

class HostWork final : public launch::Work {
 public:
  HostWork(const HostsLaunch& launch, const launch::TcpWire& wire) : launch_(launch), wire_(wire) {}

  void start(const launch::Start& start) override {
    launch::GroupCommand command{.processes = launch_.processes,
                                 .first_rank = start.first_rank,
                                 .world_size = start.world_size,
                                 .host_index = start.host_index,
                                 .hosts = start.hosts,
                                 .host = start.address,
                                 .port = start.port,
                                 .restarts = start.attempt,
                                 .variables = note_.variables(),
                                 .grace_seconds = launch_.job.grace};
    set_command(command, launch_.command, start.run);
    has_first_ = start.first_rank == 0;
    killed_ = processes_killed_for_memory();
    command.variables.merge(sharing_.variables());
    if (!launch_.interface.empty()) command.variables["GLOO_SOCKET_IFNAME"] = launch_.interface;
    group_.emplace([command, run = start.run](const StopRequest& stop) {
      if (!run.empty()) {
        if (auto end = RunWait(run, command.first_rank == 0, stop).end()) return *end;
      }
      return launch::run_group(command, stop, print_line);
    });
  }

  void stop(double grace) override {
    if (group_) group_->stop(grace);
  }

  std::optional<launch::Ended> ended() override {
    const auto end = group_ ? group_->end() : std::nullopt;
    if (!end) return std::nullopt;
    if (processes_killed_for_memory() > killed_) say_launcher(kKilledForMemory);
    return launch::Ended{
        .code = end->code,
        .failure = end->first_failure + kept_calls(run_, "-" + host_name(), end->last_calls)};
  }

  void know_run(const std::string& run) override { run_ = run; }
  std::string run_folder() override { return has_first_ ? note_.read() : ""; }
  std::string trouble_with(const std::string& run) override { return trouble_with_run(run); }

  void serve_store(launch::Start& place) override {
    place.address = wire_.address().host();
    if (!store_) store_.emplace(place.address, 0);
    place.port = store_->port();
  }

  void say(const std::string& line) override { say_launcher(line); }

 private:
  const HostsLaunch& launch_;
  const launch::TcpWire& wire_;
  const RunHandoff note_;
  const DataSharing sharing_{1};
  bool has_first_ = false;  // Has rank 0, which reports the run.
  std::string run_;
  int64_t killed_ = 0;  // Killed by the OOM killer before the processes were started.
  std::optional<parallel::StoreServer> store_;
  std::optional<launch::GroupThread> group_;
};

void introduce(const SocketAddress& address, const launch::JobOptions& job) {
  say_launcher(fmt::format("waiting for {} at {} port {}", launch::describe_hosts(job),
                           address.host(), address.port()));
  if (address.is_loopback()) return;
  say_launcher(
      fmt::format("warning: {} requires no password: anyone who can reach it can join the "
                  "training, so use it only within a trusted network",
                  address.host()));
}

void warn_of_halves(const HostsLaunch& launch) {
  const auto& job = launch.job;
  if (launch.candidates.size() == 1 || 2 * job.min_hosts > job.max_hosts) return;
  say_launcher(fmt::format(
      "warning: after a network partition, two groups of {} hosts may both continue with --nnodes "
      "{}:{}; only the run's lock prevents a second training. With {}:{} or more there is only one "
      "group",
      job.max_hosts, job.min_hosts, job.max_hosts, job.max_hosts / 2 + 1, job.max_hosts));
}

// The options that must be equal on all hosts.
std::string common_args(const HostsLaunch& launch) {
  std::vector<std::string> places;
  for (const auto& one : launch.candidates) {
    places.push_back(fmt::format("{}:{}", one.host, one.port));
  }
  return fmt::format("--nnodes {}:{} --rdzv {} {}", launch.job.min_hosts, launch.job.max_hosts,
                     fmt::join(places, ","), fmt::join(launch.command, " "));
}

}  // namespace

ExitCode launch_on_hosts(const HostsLaunch& launch, const StopRequest& stop) {
  launch::TcpWire wire(launch.candidates, launch.interface);
  HostWork work(launch, wire);
  warn_of_halves(launch);
  const std::string host = host_name();
  const launch::Join self{.id = fmt::format("{} {} {}", host, getpid(), monotonic_seconds()),
                          .host = host,
                          .processes = launch.processes,
                          .command = common_args(launch)};
  launch::Launcher launcher(launch.job, self, wire, work);
  bool coordinated = false;
  while (!launcher.end()) {
    for (const launch::Event& event : wire.wait(kPollMilliseconds)) {
      launcher.take(event, monotonic_seconds());
    }
    launcher.advance(monotonic_seconds(), stop.requested());
    if (launcher.coordinates() && !coordinated) introduce(wire.address(), launch.job);
    coordinated = launcher.coordinates();
  }
  wire.finish(kFarewellSeconds);
  const launch::Finish end = *launcher.end();
  if (!end.text.empty()) say_launcher(printable(end.text));
  return end.code;
}

}  // namespace gallop::app
