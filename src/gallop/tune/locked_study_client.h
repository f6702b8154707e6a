#pragma once

#include <mutex>
#include <string>

#include "gallop/tune/study_client.h"

namespace gallop::tune {

/// Serializes the calls of several threads to a study client.
class LockedStudyClient final : public StudyClient {
 public:
  /// Each call locks `mutex`; others that use the client must lock it as well.
  LockedStudyClient(StudyClient& client, std::mutex& mutex) : client_(client), mutex_(mutex) {}

  const StudySettings& settings() const override { return client_.settings(); }
  Assignment ask(const std::string& worker) override {
    const std::lock_guard lock(mutex_);
    return client_.ask(worker);
  }
  void set_run_folder(const Trial& trial, const std::string& folder) override {
    const std::lock_guard lock(mutex_);
    client_.set_run_folder(trial, folder);
  }
  void share(const Trial& trial, int64_t other, int64_t steps) override {
    const std::lock_guard lock(mutex_);
    client_.share(trial, other, steps);
  }
  Verdict report(const Trial& trial, int64_t step, double value) override {
    const std::lock_guard lock(mutex_);
    return client_.report(trial, step, value);
  }
  Verdict heartbeat(const Trial& trial) override {
    const std::lock_guard lock(mutex_);
    return client_.heartbeat(trial);
  }
  bool tell(const Trial& trial, const Outcome& outcome) override {
    const std::lock_guard lock(mutex_);
    return client_.tell(trial, outcome);
  }
  void release(const Trial& trial) override {
    const std::lock_guard lock(mutex_);
    client_.release(trial);
  }
  void control(const Control& control) override {
    const std::lock_guard lock(mutex_);
    client_.control(control);
  }

 private:
  StudyClient& client_;
  std::mutex& mutex_;
};

}  // namespace gallop::tune
