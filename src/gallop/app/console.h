#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gallop/advise/advice.h"
#include "gallop/train/observer.h"

namespace gallop::app {

/// Terms in the lines of a run.
struct ConsoleLabels {
  std::string part = "test";      ///< The evaluated split.
  std::string item = "images";    ///< Unit of throughput: "images" or "tokens".
  int64_t items_per_sample = 1;   ///< Tokens in a sample of text.
  int64_t evaluated_samples = 0;  ///< Of the evaluated split.
  bool classifies = true;         ///< Accuracy is shown beside the loss.
  std::string run_folder;
};

enum class ConsoleStyle {
  kLive,   ///< One line that is rewritten; for a terminal.
  kPlain,  ///< A line every ten seconds and at each evaluation; for a file.
  kJson,   ///< One JSON object a line, on standard output; for machines.
  kQuiet,  ///< Only the table at the end.
};

/// kLive if standard output is a terminal that can rewrite a line, otherwise kPlain.
ConsoleStyle default_console_style();

/// What a profile of a run's steps suggests.
struct RunAdvice {
  int64_t first_step = 0, last_step = 0;  ///< That were profiled.
  std::vector<advise::Advice> advice;
};
/// The latest advice; nothing if no steps were profiled.
using LatestAdvice = std::function<std::optional<RunAdvice>()>;

/// An observer that shows a run on standard output, at its end with the advice.
std::unique_ptr<train::Observer> make_console(ConsoleStyle style, const ConsoleLabels& labels,
                                              LatestAdvice advice = {});

}  // namespace gallop::app
