#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace gallop::parallel {

/// Where each process of a group has come to, as it tells the others by their store: which of the
/// calls that all make, and whether it goes ahead between two.
class StallMonitor {
 public:
  /// All processes make theirs before one asks.
  StallMonitor(c10::intrusive_ptr<c10d::Store> store, int rank, int size);

  /// Something long begins.
  void begin();
  /// This process goes ahead. Tells the others four times a second at most.
  void note_progress();
  /// This process has come to a call; from here on it looks at the others.
  void enter_collective(int64_t call);

  struct Still {
    int rank = 0;
    double seconds = 0;
  };
  /// Of those that have not come to the call, who has stood still for longest since this one came,
  /// where that is longer than `seconds`, which are 1 at least, and than three times the longest
  /// that this process itself has taken from one step to the next, as they do the same.
  std::optional<Still> stalled_rank(int64_t call, double seconds);

 private:
  struct Seen {
    std::string place;
    double at = 0;
  };

  void tell();
  std::string key_of(int rank) const;

  c10::intrusive_ptr<c10d::Store> store_;
  int rank_;
  std::vector<Seen> seen_;  ///< By rank.
  int64_t call_ = 0, moves_ = 0;
  double moved_at_ = 0, told_at_ = 0, longest_way_ = 0;
};

}  // namespace gallop::parallel
