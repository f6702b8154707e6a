#pragma once

#include <optional>
#include <string>

#include "gallop/launch/rendezvous/inquiry.h"
#include "gallop/launch/rendezvous/wire.h"

namespace gallop::launch {

/// Starts and stops the processes of its host for the coordinator. Without a coordinator it asks
/// all candidates for one; if the connection is lost, it first stops its processes.
class Member {
 public:
  Member(const JobOptions& options, Join self, Wire& wire, Work& work);

  bool owns(Link link) const { return link == link_ || inquiry_.owns(link); }
  /// Handles an event of a link that it owns.
  void take(const Event& event, double now);
  void advance(double now, bool is_asked_to_stop);

  /// True once after each inquiry without a coordinator.
  bool found_no_coordinator();
  /// Logs that once.
  void log_no_coordinator();
  /// Joins the coordinator at this candidate, which is this launcher or another one.
  void join(int candidate, bool is_here, double now);
  const Join& self() const { return self_; }
  /// The result of the job, once it has ended.
  const std::optional<Finish>& end() const { return end_; }

 private:
  enum class Phase { kSeeking, kWaiting, kWorking, kStopping };

  void take_message(const Message& message, double now);
  void start(const Start& start, double now);
  void ask(double now);
  void seek(double now);
  void keep_link(double now, bool is_asked_to_stop);
  void watch_work(double now);
  void know_run(const std::string& run);
  void check_run(double now);
  void lose(const std::string& why, double now);
  void leave();
  std::string candidates() const;
  std::string timeout_reason() const;

  JobOptions options_;
  Join self_;
  Wire& wire_;
  Work& work_;
  Inquiry inquiry_;
  Phase phase_ = Phase::kSeeking;
  bool has_no_coordinator_ = false, has_reported_ = false;
  std::optional<Link> link_;
  int candidate_ = 0;  // The candidate it is linked to.
  bool is_here_ = false, has_heard_ = false, has_asked_to_leave_ = false;
  std::optional<Finish> finish_, end_;  // As received; and once its processes have ended.
  double heard_ = 0, next_sign_ = 0, next_question_ = 0;
  std::optional<double> idle_since_;  // Since when no training is running, to its knowledge.
  // If another host has the run: the deadline for it to be visible here.
  std::optional<double> check_run_until_;
  double next_check_ = 0;
  std::string trouble_;
};

}  // namespace gallop::launch
