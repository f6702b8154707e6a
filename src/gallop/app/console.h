#pragma once

#include <memory>
#include <string>

#include "gallop/train/observer.h"

namespace gallop::app {

/// Terms in the lines of a run.
struct ConsoleLabels {
  std::string part = "test";     ///< The evaluated split.
  std::string item = "images";   ///< Unit of throughput: "images" or "tokens".
  int64_t items_per_sample = 1;  ///< Tokens in a sample of text.
  bool classifies = true;        ///< Accuracy is shown beside the loss.
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

/// An observer that shows a run on standard output.
std::unique_ptr<train::Observer> make_console(ConsoleStyle style, const ConsoleLabels& labels);

}  // namespace gallop::app
