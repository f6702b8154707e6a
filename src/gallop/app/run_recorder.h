#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gallop/app/choice_reminder.h"
#include "gallop/app/console.h"
#include "gallop/app/run_log.h"
#include "gallop/app/run_pusher.h"
#include "gallop/app/session.h"
#include "gallop/app/weight_histograms.h"
#include "gallop/base/file.h"
#include "gallop/track/identity.h"
#include "gallop/track/mlflow/push.h"

namespace gallop::app {

/// Records a run in its folder and shows it on the console while it trains. Rank 0 has one.
class RunRecorder {
 public:
  struct Options {
    fs::path run;                         ///< The folder.
    std::optional<int64_t> resumed_at{};  ///< The step of the checkpoint that it continues from.
    ConsoleStyle style = ConsoleStyle::kPlain;
    std::vector<std::string> notes{};   ///< For the log.
    std::vector<MadeChoice> choices{};  ///< How options were chosen that the recipe leaves open.
    std::string resume_command;
    std::optional<track::mlflow::Target> mlflow{};  ///< A server to push the run to.
    LatestAdvice advice{};                          ///< See make_console().
  };

  /// `session` and `log` must outlive it. Throws DeviceError if the folder cannot be written.
  RunRecorder(Session& session, RunLog& log, const Options& options);

  /// In the order in which they are to be called.
  std::vector<train::Observer*> observers() const { return observers_; }

  /// Completes what is done in the background, and prints what could not be. The identity of the
  /// data of a run that was stopped is recorded when it is resumed.
  void finish(const train::Outcome& outcome);

 private:
  void remind_of(const std::vector<MadeChoice>& choices, const std::string& resume_command);

  fs::path run_;
  ConsoleStyle style_;
  std::optional<track::mlflow::Target> mlflow_;
  track::IdentityRecorder identity_;
  std::optional<RunPusher> pusher_;
  std::unique_ptr<train::Observer> console_;
  std::optional<WeightHistograms> histograms_;
  std::vector<std::unique_ptr<ChoiceReminder>> reminders_;
  std::vector<train::Observer*> observers_;
};

}  // namespace gallop::app
