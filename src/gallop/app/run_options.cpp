#include "gallop/app/run_options.h"

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/track/run_folder.h"

namespace gallop::app {

void refuse_existing_run(const fs::path& run) {
  if (!track::RunFolder::is_run(run)) return;
  throw UsageError(fmt::format(
      "there is a run {} already; use another --name, or --continue to resume it", run.string()));
}

}  // namespace gallop::app
