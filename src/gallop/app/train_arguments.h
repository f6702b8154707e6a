#pragma once

#include <string>
#include <vector>

#include "gallop/app/command.h"
#include "gallop/app/console.h"
#include "gallop/app/run_options.h"

namespace gallop::app {

/// Arguments of 'gallop train': a recipe or a run to resume, one of both.
struct TrainArguments {
  std::string recipe, resume;
  RunOptions options;
  bool show_config = false;
  bool quiet = false;
  bool json = false;
  std::vector<Override> overrides;

  ConsoleStyle style() const;
};

/// Parses the arguments. False if help was requested and printed. Throws UsageError for wrong use.
bool parse_train(const std::vector<std::string>& args, TrainArguments& arguments);

}  // namespace gallop::app
