#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "gallop/parallel/strategy.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop::train {

/// What a trainer does together with the processes that share its steps. Alone, without a strategy,
/// there is no process to ask and nothing to do.
class ProcessGroup {
 public:
  explicit ProcessGroup(parallel::Strategy* strategy)
      : strategy_(strategy),
        collectives_(strategy != nullptr ? &strategy->collectives() : nullptr) {}

  bool is_alone() const { return collectives_ == nullptr; }
  int rank() const { return is_alone() ? 0 : collectives_->rank(); }
  int size() const { return is_alone() ? 1 : collectives_->size(); }
  bool is_first() const { return rank() == 0; }
  parallel::Collectives* collectives() const { return collectives_; }
  /// See parallel::Strategy::unused().
  std::vector<std::string> unused() const {
    return strategy_ != nullptr ? strategy_->unused() : std::vector<std::string>();
  }

  parallel::Limits limits() const;
  void begin(parallel::Section section, int64_t step) const;
  void note_progress() const;

  /// Gives all the tensors of the first process. Throws UsageError where another has others.
  void broadcast_parameters(const NamedTensors& tensors) const;

  /// See parallel::any_of() and parallel::run_on_rank0().
  bool any(bool one) const;
  std::string run_on_rank0(const std::function<std::string()>& function) const;

  /// What each process has, by rank.
  std::vector<uint64_t> gather(uint64_t number) const;
  std::vector<std::string> gather(const std::string& text) const;

  /// Gives all what the first process has.
  void broadcast(const NamedTensors& tensors) const;
  void broadcast(std::map<std::string, std::string>& texts) const;

  /// What this process has for itself, by rank_state_name().
  NamedTensors rank_state() const;
  /// Gives all back what they had; `saved`, of all, is what the first process has read.
  void load_rank_state(const NamedTensors& saved) const;

 private:
  parallel::Strategy* strategy_;
  parallel::Collectives* collectives_;
};

}  // namespace gallop::train
