#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace gallop::parallel {

/// A watchdog that finds the process of a group that hangs. Each process reports through the store
/// which collective it has reached, and whether it makes progress between two of them.
class StallMonitor {
 public:
  /// All processes must have constructed it before any calls stalled_rank(). `clock` returns
  /// seconds.
  StallMonitor(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
               std::function<double()> clock);

  /// Begins a long operation.
  void begin();
  /// Reports progress of this process, at most four times a second.
  void note_progress();
  /// Records that this process has reached a collective; from here on it observes the others.
  void enter_collective(int64_t call);

  struct Still {
    int rank = 0;
    double seconds = 0;
  };
  /// The rank, among those that have not reached the collective, without progress for longest since
  /// this process reached it. The time must exceed `seconds`, at least 1, and three times the
  /// longest interval between two progress reports of this process, as all processes do the same
  /// work.
  std::optional<Still> stalled_rank(int64_t call, double seconds);

  /// Begins work that this process may do alone and that may exceed the timeout of a step, such as
  /// compiling it for a new shape.
  void begin_long_work();
  /// Ends it; without effect if none has begun.
  void end_long_work();
  /// Whether a process does such work, or has begun or ended any since the last call.
  bool sees_long_work();

 private:
  struct Seen {
    std::string place;
    double at = 0;
  };

  void tell();
  std::string key_of(int rank) const;

  c10::intrusive_ptr<c10d::Store> store_;
  int rank_;
  std::function<double()> clock_;
  std::vector<Seen> seen_;  ///< By rank.
  int64_t call_ = 0, moves_ = 0;
  double moved_at_ = 0, reported_at_ = 0, longest_way_ = 0;
  bool is_in_long_work_ = false;
  int64_t begun_ = 0, ended_ = 0;  ///< By any process, at the last sees_long_work().
};

}  // namespace gallop::parallel
