#pragma once

#include <utility>

#include "gallop/app/signals.h"
#include "gallop/train/observer.h"

namespace gallop::app {

/// Ends start-up with the first step: from then on signals request a checkpoint.
class EndOfStartUp final : public train::Observer {
 public:
  explicit EndOfStartUp(SignalGuard& signals) : signals_(signals) {}
  void stepped(const train::StepEvent& /*event*/) override {
    if (!std::exchange(has_stepped_, true)) signals_.started();
  }

 private:
  SignalGuard& signals_;
  bool has_stepped_ = false;
};

}  // namespace gallop::app
