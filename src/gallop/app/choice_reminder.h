#pragma once

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gallop/app/session.h"
#include "gallop/train/observer.h"

namespace gallop::app {

/// Reminds the user after the first epoch that a choice was measured on a busy machine, with the
/// command that repeats the measurement. The run does not change the choice by itself, as that
/// could not be reproduced; a resume with other options is recorded.
class ChoiceReminder final : public train::Observer {
 public:
  /// `resume`: the command that resumes the run. The observers must outlive it.
  ChoiceReminder(const MadeChoice& choice, const std::string& resume,
                 std::vector<train::Observer*> observers)
      : text_(fmt::format("{} was measured while the machine was busy with other programs ({}); to "
                          "measure again, stop this run with Ctrl-C when it is idle, then: {} {}",
                          choice.options, choice.evidence, resume, choice.options)),
        observers_(std::move(observers)) {}

  void stepped(const train::StepEvent& event) override {
    if (event.epoch < 1 || event.step >= event.steps || std::exchange(has_said_, true)) return;
    for (train::Observer* observer : observers_) observer->noted(text_);
  }

 private:
  std::string text_;
  std::vector<train::Observer*> observers_;
  bool has_said_ = false;
};

}  // namespace gallop::app
