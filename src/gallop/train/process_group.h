#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gallop/parallel/strategy.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop::train {

/// Communication of a trainer with the processes that share its steps. Without a strategy there is
/// a single process, and the functions have no effect.
class ProcessGroup {
 public:
  explicit ProcessGroup(parallel::Strategy* strategy)
      : strategy_(strategy),
        collectives_(strategy != nullptr ? &strategy->collectives() : nullptr) {}

  parallel::Strategy* strategy() const { return strategy_; }
  bool is_alone() const { return collectives_ == nullptr; }
  int rank() const { return is_alone() ? 0 : collectives_->rank(); }
  int size() const { return is_alone() ? 1 : collectives_->size(); }
  bool is_first() const { return rank() == 0; }
  parallel::Collectives* collectives() const { return collectives_; }
  /// Whether other processes have the same weights now.
  bool has_same_weights() const;
  /// See parallel::Strategy.
  parallel::ModelAverager* averager() const { return is_alone() ? nullptr : strategy_->averager(); }
  /// See parallel::Strategy::unused().
  std::vector<std::string> unused() const {
    return strategy_ != nullptr ? strategy_->unused() : std::vector<std::string>();
  }

  parallel::Limits limits() const;
  void begin(parallel::Section section, int64_t step) const;
  void note_progress() const;
  /// See parallel::Strategy.
  void gather_parameters() const;
  void release_parameters() const;
  void parameters_replaced() const;
  std::vector<LogicalTensor> parameters_in_parts() const;

  /// Broadcasts the tensors of rank 0, except for parameters of which processes have only parts.
  /// Throws UsageError if another process has different names or shapes.
  void broadcast_parameters(const NamedTensors& tensors) const;

  /// See parallel::any_of() and parallel::run_on_rank0().
  bool any(bool one) const;
  template <typename F>
  auto run_on_rank0(const F& function) const {
    return parallel::run_on_rank0(collectives_, function);
  }

  /// The value of each process, by rank.
  std::vector<uint64_t> gather(uint64_t number) const;
  std::vector<std::string> gather(const std::string& text) const;

  /// Broadcasts the values of rank 0.
  void broadcast(const NamedTensors& tensors) const;
  void broadcast(std::map<std::string, std::string>& texts) const;

  /// The state of this rank alone, by rank_state_name().
  NamedTensors rank_state() const;
  /// Restores the rank state of all processes from `saved`, which rank 0 has read.
  void load_rank_state(const NamedTensors& saved) const;

 private:
  parallel::Strategy* strategy_;
  parallel::Collectives* collectives_;
};

}  // namespace gallop::train
