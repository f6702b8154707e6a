#pragma once

#include <mutex>
#include <string>

#include "gallop/tune/broker.h"

namespace gallop::tune {

/// A broker for several threads: one call at a time.
class LockedBroker final : public Broker {
 public:
  /// `mutex` is locked during each call, so that others may share the broker under it.
  LockedBroker(Broker& broker, std::mutex& mutex) : broker_(broker), mutex_(mutex) {}

  const StudySettings& settings() const override { return broker_.settings(); }
  Assignment ask(const std::string& worker) override {
    const std::lock_guard lock(mutex_);
    return broker_.ask(worker);
  }
  void place(const Trial& trial, const std::string& folder) override {
    const std::lock_guard lock(mutex_);
    broker_.place(trial, folder);
  }
  void share(const Trial& trial, int64_t other, int64_t steps) override {
    const std::lock_guard lock(mutex_);
    broker_.share(trial, other, steps);
  }
  Verdict report(const Trial& trial, int64_t step, double value) override {
    const std::lock_guard lock(mutex_);
    return broker_.report(trial, step, value);
  }
  Verdict beat(const Trial& trial) override {
    const std::lock_guard lock(mutex_);
    return broker_.beat(trial);
  }
  bool tell(const Trial& trial, const Outcome& outcome) override {
    const std::lock_guard lock(mutex_);
    return broker_.tell(trial, outcome);
  }
  void give_back(const Trial& trial) override {
    const std::lock_guard lock(mutex_);
    broker_.give_back(trial);
  }
  void steer(const Steer& steer) override {
    const std::lock_guard lock(mutex_);
    broker_.steer(steer);
  }

 private:
  Broker& broker_;
  std::mutex& mutex_;
};

}  // namespace gallop::tune
