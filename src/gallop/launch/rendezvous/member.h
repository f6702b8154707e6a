#pragma once

#include <optional>
#include <string>

#include "gallop/launch/rendezvous/inquiry.h"
#include "gallop/launch/rendezvous/wire.h"

namespace gallop::launch {

/// Starts and stops the processes of its host as the coordinator says. Where it has none it asks
/// all candidates for one; where it loses the one it has it stops its processes first.
class Member {
 public:
  Member(const JobOptions& options, Join self, Wire& wire, Work& work);

  bool owns(Link link) const { return link == link_ || inquiry_.owns(link); }
  /// Of links that it owns.
  void take(const Event& event, double now);
  void advance(double now, bool is_asked_to_stop);

  /// True once after each question that no candidate has answered.
  bool finds_nobody();
  /// Says so, once.
  void tell_nobody();
  /// Joins the one at this candidate, which is this launcher or another.
  void join(int candidate, bool is_here, double now);
  const Join& self() const { return self_; }
  /// How it ended, if it has.
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
  std::string why_nobody() const;

  JobOptions options_;
  Join self_;
  Wire& wire_;
  Work& work_;
  Inquiry inquiry_;
  Phase phase_ = Phase::kSeeking;
  bool finds_nobody_ = false, has_told_ = false;
  std::optional<Link> link_;
  int candidate_ = 0;  // That it is linked to.
  bool is_here_ = false, has_heard_ = false, has_asked_to_leave_ = false;
  std::optional<Finish> finish_, end_;  // As it was told; once its processes have ended.
  double heard_ = 0, next_sign_ = 0, next_question_ = 0;
  std::optional<double> idle_since_;  // Nothing is trained, as far as it knows.
  // Where another host has the run: until when it must be seen here, and why it is not.
  std::optional<double> check_run_until_;
  double next_check_ = 0;
  std::string trouble_;
};

}  // namespace gallop::launch
