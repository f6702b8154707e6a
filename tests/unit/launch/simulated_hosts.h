#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gallop/launch/rendezvous/launcher.h"

namespace gallop::launch {

/// Launchers of several hosts without hosts: a clock, a network and trainings that are made up.
/// Candidate c is an address of host c. A training takes a step each second in which all its
/// processes can reach each other, and saves every step where all hosts find it.
class SimulatedHosts {
 public:
  static constexpr double kTick = 0.05;

  SimulatedHosts(const JobOptions& options, int hosts, int all_steps, unsigned seed = 1)
      : steps(all_steps), options_(options), random_(seed), hosts_(static_cast<size_t>(hosts)) {}

  /// Adds a launcher on a host that has none.
  void start(int host) {
    Host& one = at(host);
    one.wire = std::make_unique<SimulatedWire>(*this, host);
    one.work = std::make_unique<SimulatedWork>(*this, host);
    const Join self{.id = fmt::format("{}-{}", host, ++started_),
                    .host = fmt::format("h{}", host),
                    .processes = 1 + host,
                    .command = command};
    one.launcher = std::make_unique<Launcher>(options_, self, *one.wire, *one.work);
  }

  /// The launcher dies with its processes. Its system closes connections, unless it dies as well.
  void kill(int host, bool tells) {
    at(host).wire->is_dead = true;
    at(host).launcher.reset();
    at(host) = Host();
    for (auto& [id, line] : lines_) {
      if (line.ends[0].host != host && line.ends[1].host != host) continue;
      const int other = line.ends[0].host == host ? 1 : 0;
      line.ends[1 - other].is_open = false;
      if (tells) post(id, other, std::nullopt);
    }
  }

  void cut(int host) { cut_.insert(host); }
  void heal(int host) { cut_.erase(host); }
  void ask_to_stop(int host) { at(host).is_asked_to_stop = true; }
  /// Its processes end with this code, at once.
  void fail(int host, ExitCode code) { at(host).work->end(code, "rank 7 fails"); }

  /// Its processes ignore all requests.
  void get_stuck(int host) { at(host).work->is_stuck = true; }

  void run(double seconds) {
    for (const double until = now + seconds; now < until;) tick();
  }
  /// False if the condition does not become true within that many seconds.
  bool run_until(const std::function<bool()>& holds, double seconds) {
    for (const double until = now + seconds; !holds() && now < until;) tick();
    return holds();
  }

  bool is_there(int host) { return at(host).launcher != nullptr; }
  std::optional<Finish> end_of(int host) { return at(host).launcher->end(); }
  bool coordinates(int host) { return is_there(host) && at(host).launcher->coordinates(); }
  /// The processes that run there.
  std::optional<Start> work_of(int host) {
    return is_there(host) && at(host).work->is_running ? std::optional(at(host).work->start_)
                                                       : std::nullopt;
  }
  int coordinators() {
    int count = 0;
    for (int host = 0; host < hosts(); ++host) count += coordinates(host) ? 1 : 0;
    return count;
  }
  /// Number of hosts of the training that runs steps; 0 if there is none.
  int training_hosts() {
    const auto found = trainings();
    return found.empty() ? 0 : static_cast<int>(found.front().size());
  }
  int hosts() const { return static_cast<int>(hosts_.size()); }

  double now = 0;
  std::string command = "train my.yaml";
  int steps;  ///< Total steps of the training.
  int saved_steps = 0;
  std::string run_folder;     ///< The created folder.
  std::vector<Start> starts;  ///< Of host index 0.
  int most_trainings = 0;     ///< Maximum number of simultaneous trainings.
  std::vector<std::string> said;
  double latency = 0.01;  ///< Up to four times as much.

 private:
  struct End {
    int host = -1;
    Link link = -1;
    bool is_open = false;
  };
  struct Line {
    int candidate = 0;
    End ends[2];
    double last_arrival[2] = {0, 0};
    bool is_accepted = false;
  };
  struct Parcel {
    double arrives = 0;
    int line = 0, to = 0;  // To which end.
    bool connects = false;
    std::optional<Message> message;  // None: the connection closes.
  };

  class SimulatedWire final : public Wire {
   public:
    SimulatedWire(SimulatedHosts& world, int host) : world_(world), host_(host) {}
    void look_up() override {}
    Link connect(int candidate) override {
      const int id = world_.next_line_++;
      Line& line = world_.lines_[id];
      line.candidate = candidate;
      line.ends[0] = {.host = host_, .link = next_link_, .is_open = true};
      line.ends[1].host = candidate;
      links_[next_link_] = {id, 0};
      world_.post(id, 1, std::nullopt, true);
      return next_link_++;
    }
    void send(Link link, const Message& message) override {
      const auto found = links_.find(link);
      if (found == links_.end()) return;
      // As it goes over the wire.
      world_.post(found->second.first, 1 - found->second.second, parse_message(to_line(message)));
    }
    void close(Link link) override {
      const auto found = links_.find(link);
      if (is_dead || found == links_.end()) return;
      const auto [id, end] = found->second;
      world_.lines_[id].ends[end].is_open = false;
      world_.post(id, 1 - end, std::nullopt);
      links_.erase(found);
    }
    bool listen(int candidate) override {
      if (candidate != host_) return false;
      is_listening = true;
      return true;
    }
    void stop_listening() override { is_listening = false; }
    std::string address_of(Link) const override { return "somewhere"; }
    std::string describe(int candidate) const override { return fmt::format("h{}", candidate); }

    Link accept(int id) {
      links_[next_link_] = {id, 1};
      return next_link_++;
    }
    void forget(Link link) { links_.erase(link); }

    bool is_listening = false, is_dead = false;

   private:
    SimulatedHosts& world_;
    int host_;
    Link next_link_ = 0;
    std::map<Link, std::pair<int, int>> links_;  // To its line, and which end.
  };

  class SimulatedWork final : public Work {
   public:
    SimulatedWork(SimulatedHosts& world, int host) : world_(world), host_(host) {}
    void start(const Start& start) override {
      start_ = start;
      is_running = true;
      end_.reset();
      kill_at_ = kForever;
      is_asked_to_stop = false;
      if (start.host_index == 0) world_.starts.push_back(start);
    }
    void stop(double grace) override {
      is_asked_to_stop = true;
      kill_at_ = std::min(kill_at_, world_.now + grace);
    }
    std::optional<Ended> ended() override { return is_running ? std::nullopt : end_; }
    void know_run(const std::string&) override {}
    std::string run_folder() override {
      return is_running && start_.first_rank == 0 ? world_.run_folder : "";
    }
    std::string trouble_with(const std::string&) override { return world_.trouble_; }
    void serve_store(Start& place) override {
      place.address = "somewhere";
      // Distinguishes the stores of different launchers.
      if (port_ == 0) port_ = ++world_.ports_;
      place.port = port_;
    }
    void say(const std::string& line) override {
      world_.said.push_back(fmt::format("{:.1f} h{}: {}", world_.now, host_, line));
    }

    void end(ExitCode code, const std::string& failure) {
      if (!is_running) return;
      is_running = false;
      end_ = Ended{.code = code, .failure = failure};
    }
    void tick() {
      if (is_running && !is_stuck && world_.now >= kill_at_) end(ExitCode::kStopped, "");
    }

    Start start_;
    bool is_running = false, is_asked_to_stop = false, is_stuck = false;

   private:
    static constexpr double kForever = std::numeric_limits<double>::infinity();
    SimulatedHosts& world_;
    int host_;
    int port_ = 0;
    std::optional<Ended> end_;
    double kill_at_ = kForever;
  };

  struct Host {
    std::unique_ptr<SimulatedWire> wire;
    std::unique_ptr<SimulatedWork> work;
    std::unique_ptr<Launcher> launcher;
    bool is_asked_to_stop = false;
  };

  Host& at(int host) { return hosts_[static_cast<size_t>(host)]; }

  bool is_cut(const Line& line) const {
    const int a = line.ends[0].host, b = line.ends[1].host;
    return a != b && (cut_.contains(a) != cut_.contains(b));
  }

  void post(int id, int to, std::optional<Message> message, bool connects = false) {
    Line& line = lines_[id];
    const double delay = latency * std::uniform_real_distribution<>(1, 4)(random_);
    line.last_arrival[to] = std::max(line.last_arrival[to], now + delay);
    parcels_.push_back({line.last_arrival[to], id, to, connects, std::move(message)});
  }

  void deliver(const Parcel& parcel) {
    Line& line = lines_[parcel.line];
    End& end = line.ends[parcel.to];
    Host& host = at(end.host);
    if (parcel.connects) {
      if (host.launcher && host.wire->is_listening) {
        end.link = host.wire->accept(parcel.line);
        end.is_open = line.is_accepted = true;
      } else if (!dead_.contains(end.host)) {
        post(parcel.line, 0, std::nullopt);
      }
      return;
    }
    if (!end.is_open || !host.launcher) return;
    const bool closes = !parcel.message;
    if (closes) {
      end.is_open = false;
      host.wire->forget(end.link);
    }
    host.launcher->take({end.link, parcel.to == 1, parcel.message}, now);
  }

  void deliver_all() {
    // Undeliverable messages are retransmitted later, as by TCP.
    std::vector<Parcel> due;
    for (auto one = parcels_.begin(); one != parcels_.end();) {
      if (one->arrives > now || is_cut(lines_[one->line])) {
        ++one;
      } else {
        due.push_back(std::move(*one));
        one = parcels_.erase(one);
      }
    }
    std::stable_sort(due.begin(), due.end(),
                     [](const Parcel& a, const Parcel& b) { return a.arrives < b.arrives; });
    for (const Parcel& parcel : due) deliver(parcel);
  }

  // By attempt: all hosts with processes that can reach each other.
  std::vector<std::vector<int>> trainings() {
    std::map<std::pair<int, int>, std::vector<int>> attempts;
    for (int host = 0; host < hosts(); ++host) {
      if (const auto work = work_of(host)) {
        attempts[{work->port, work->attempt}].push_back(host);
      }
    }
    std::vector<std::vector<int>> whole;
    for (const auto& [name, members] : attempts) {
      const auto cut = std::count_if(members.begin(), members.end(),
                                     [&](int host) { return cut_.contains(host); });
      const bool is_reached = cut == 0 || cut == std::ssize(members);
      if (is_reached && std::ssize(members) == work_of(members.front())->hosts) {
        whole.push_back(members);
      }
    }
    return whole;
  }

  void train() {
    const auto whole = trainings();
    most_trainings = std::max(most_trainings, static_cast<int>(whole.size()));
    std::set<int> fine;
    for (const auto& members : whole) {
      fine.insert(members.begin(), members.end());
      run_folder = "/runs/one";
      const bool stops = std::any_of(members.begin(), members.end(),
                                     [&](int host) { return at(host).work->is_asked_to_stop; });
      step_ += kTick;
      saved_steps = std::min(steps, saved_steps + (step_ >= 1 ? 1 : 0));
      if (step_ >= 1) step_ = 0;
      for (const int host : members) {
        if (saved_steps >= steps) {
          at(host).work->end(ExitCode::kDone, "");
        } else if (stops && !at(host).work->is_stuck) {
          at(host).work->end(ExitCode::kStopped, "");
        }
      }
    }
    fail_those_left(fine);
  }

  // Those whose others have died while they were there notice; those who are cut off do not.
  void fail_those_left(const std::set<int>& fine) {
    for (int host = 0; host < hosts(); ++host) {
      const auto work = work_of(host);
      if (!work || fine.contains(host)) continue;
      Host& one = at(host);
      one.work->tick();
      if (starved_[host].first != std::pair(work->port, work->attempt)) {
        starved_[host] = {{work->port, work->attempt}, now};
      }
      const bool notices = cut_.empty() && dead_.empty() && !one.work->is_stuck;
      if (notices && now - starved_[host].second > 1) {
        one.work->end(ExitCode::kDevice, "rank 7 misses another");
      }
    }
  }

  void tick() {
    now += kTick;
    deliver_all();
    for (int host = 0; host < hosts(); ++host) {
      Host& one = at(host);
      if (one.launcher && !one.launcher->end()) one.launcher->advance(now, one.is_asked_to_stop);
    }
    train();
  }

 public:
  /// A dead host does not answer.
  void set_dead(int host, bool is_dead) {
    if (is_dead) {
      dead_.insert(host);
    } else {
      dead_.erase(host);
    }
  }
  void set_trouble(const std::string& trouble) { trouble_ = trouble; }

 private:
  JobOptions options_;
  std::mt19937 random_;
  std::vector<Host> hosts_;
  std::map<int, Line> lines_;
  std::deque<Parcel> parcels_;
  std::set<int> cut_, dead_;
  std::map<int, std::pair<std::pair<int, int>, double>> starved_;
  std::string trouble_;
  int next_line_ = 0, started_ = 0, ports_ = 0;
  double step_ = 0;
};

}  // namespace gallop::launch
