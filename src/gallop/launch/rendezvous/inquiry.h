#pragma once

#include <map>
#include <optional>
#include <vector>

#include "gallop/launch/rendezvous/wire.h"

namespace gallop::launch {

/// Asks candidates, all at once, whether they coordinate.
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
  /// Drops the last one. Asks all but `except`.
  void begin(std::optional<int> except, double now);
  bool owns(Link link) const { return asked_.contains(link); }
  void take(const Event& event);

  /// Of the question that is open.
  const std::vector<Answer>& answers() const { return answers_; }
  double began() const { return began_; }
  /// Whether all have answered or failed or had their time.
  bool is_complete(double now) const;
  void end();

 private:
  Wire& wire_;
  int candidates_;
  bool is_open_ = false;
  double began_ = 0;
  std::map<Link, int> asked_;  // Those who have not answered.
  std::vector<Answer> answers_;
};

}  // namespace gallop::launch
