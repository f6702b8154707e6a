#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "gallop/data/data_module.h"

namespace gallop::data {

/// A value of each epoch, computed when it is first needed. Thread-safe.
template <typename Value>
class PerEpoch {
 public:
  template <typename Make>
  std::shared_ptr<const Value> get(int64_t epoch, const Make& make) const {
    const std::lock_guard lock(mutex_);
    Kept& kept = kept_[static_cast<size_t>(epoch % 2)];
    if (kept.epoch != epoch) kept = {epoch, std::make_shared<const Value>(make(epoch))};
    return kept.value;
  }

 private:
  struct Kept {
    int64_t epoch = -1;
    std::shared_ptr<const Value> value;
  };
  // The end of an epoch and the beginning of the next are loaded at the same time.
  mutable std::array<Kept, 2> kept_;
  mutable std::mutex mutex_;
};

/// An order of the samples of each epoch that depends on properties of the samples. Thread-safe.
class EpochOrder {
 public:
  virtual ~EpochOrder() = default;

  /// The sample at a position of an epoch. Computes the order of an epoch when it is first used.
  int64_t index(int64_t epoch, int64_t position) const;

 protected:
  using Order = std::vector<int64_t>;
  virtual Order make(int64_t epoch) const = 0;

 private:
  PerEpoch<Order> orders_;
};

/// Replaces the training samples by the same in an order of their own (Samples::has_own_order()).
void put_in_order(DataModule& module, std::shared_ptr<const EpochOrder> order);

}  // namespace gallop::data
