#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gallop/launch/rendezvous/inquiry.h"
#include "gallop/launch/rendezvous/wire.h"

namespace gallop::launch {

/// Starts and stops the training of all members, including that on its own host.
///
/// It gathers hosts until there are enough, and starts when further hosts have had time to join,
/// and all other candidates have been asked since it was ready. If two coordinators are ready, one
/// finds the other, and the later one in the list hands over its members, as does one that finds a
/// running training. So two coordinators that can reach each other never both start. After a
/// failure it restarts with the remaining hosts, or gathers again if they are too few.
class Coordinator {
 public:
  /// The coordinator already listens at this candidate. `self` is the member of its own host.
  Coordinator(const JobOptions& options, int candidate, Join self, Wire& wire, Work& work);

  bool owns(Link link) const { return inquiry_.owns(link); }
  /// Handles an event of a link that others have opened, or that it owns.
  void take(const Event& event, double now);
  void advance(double now);
  /// Whether all members were sent the end of the group or redirected.
  bool is_over() const { return is_over_; }
  CoordinatorPhase coordinator_phase() const;

 private:
  enum class Phase { kGathering, kRunning, kStopping };
  // In ascending order of precedence.
  enum class Reason { kNone, kGrowth, kFailure, kUser };
  struct Worker {
    Link link = 0;
    Join about;
    std::string address;
    double heard = 0;
    bool is_chosen = false;  ///< Takes part in the attempt.
    bool works = false;      ///< Its processes have not ended.
  };

  void take_message(Link link, const Message& message, double now);
  void take_from(size_t index, const Message& message, double now);
  void join(Link link, const Join& join, double now);
  void adopt(const Join& join);
  void take_end(Worker& worker, const Ended& ended, double now);
  void take_leave(size_t index, double now);
  void take_run(const Worker& worker, const RunAt& run);
  void lose(size_t index, const std::string& why, double now);
  void drop_silent(double now);
  void drop_stuck(double now);
  void send_signs(double now);

  void gather(double now);
  void ask_others(double now);
  void hand_over(const std::string& where);
  void begin();
  void consider_growth(double now);
  void stop(Reason reason, double grace);
  void decide_when_all_ended(double now);
  void finish(ExitCode code, const std::string& text);

  int hosts() const { return static_cast<int>(workers_.size()); }
  int working() const;
  static std::string name_of(const Worker& worker);
  std::string describe(const Start& start);

  JobOptions options_;
  int candidate_;
  Join self_;
  Wire& wire_;
  Work& work_;
  Inquiry inquiry_;
  std::vector<Worker> workers_;  // In the order in which they joined.

  Phase phase_ = Phase::kGathering;
  bool is_over_ = false;
  double next_sign_ = 0, next_question_ = 0;
  std::optional<double> ready_since_;
  bool asked_when_ready_ = false, is_clear_ = false;

  int next_attempt_ = 0, restarts_ = 0, reported_restarts_ = 0;
  std::string run_;
  // State of the current attempt.
  int attempt_ = -1;
  Reason reason_ = Reason::kNone;
  bool is_undone_ = false;  // Some processes did not finish.
  Finish failure_;
  std::optional<double> grow_at_, stopping_since_;
};

}  // namespace gallop::launch
