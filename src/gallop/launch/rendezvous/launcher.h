#pragma once

#include <optional>

#include "gallop/launch/rendezvous/coordinator.h"
#include "gallop/launch/rendezvous/member.h"

namespace gallop::launch {

/// A launcher of a job on several hosts: a member, and the coordinator if there is no other one and
/// a candidate address belongs to its host. It has neither clock nor sockets: its owner passes in
/// the time and the events.
class Launcher {
 public:
  Launcher(const JobOptions& options, const Join& self, Wire& wire, Work& work)
      : options_(options), wire_(wire), work_(work), member_(options, self, wire, work) {}

  void take(const Event& event, double now);
  void advance(double now, bool is_asked_to_stop);
  /// The result of the job, once this launcher has finished.
  std::optional<Finish> end() const;
  bool coordinates() const { return coordinator_.has_value(); }

 private:
  void serve(double now);

  JobOptions options_;
  Wire& wire_;
  Work& work_;
  Member member_;
  std::optional<Coordinator> coordinator_;
};

}  // namespace gallop::launch
