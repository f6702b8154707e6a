#pragma once

#include <map>
#include <optional>
#include <vector>

#include "gallop/launch/rendezvous/wire.h"

namespace gallop::launch {

/// Asks all candidates in parallel whether they coordinate.
class Inquiry {
 public:
  struct Answer {
    int candidate = 0;
    CoordinatorPhase coordinator_phase = CoordinatorPhase::kGathering;
  };

  Inquiry(Wire& wire, int candidates) : wire_(wire), candidates_(candidates) {}
  ~Inquiry() { end(); }
  Inquiry(const Inquiry&) = delete;
  Inquiry& operator=(const Inquiry&) = delete;

  bool is_open() const { return is_open_; }
  /// Cancels the last inquiry. Asks all candidates but `except`.
  void begin(std::optional<int> except, double now);
  bool owns(Link link) const { return asked_.contains(link); }
  void take(const Event& event);

  /// The replies to the current inquiry.
  const std::vector<Answer>& answers() const { return answers_; }
  double began() const { return began_; }
  /// Whether all candidates have replied, failed or timed out.
  bool is_complete(double now) const;
  void end();

 private:
  Wire& wire_;
  int candidates_;
  bool is_open_ = false;
  double began_ = 0;
  std::map<Link, int> asked_;  // Candidates without a reply.
  std::vector<Answer> answers_;
};

}  // namespace gallop::launch
