#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gallop/app/command.h"
#include "gallop/app/distributed_context.h"
#include "gallop/app/registries.h"
#include "gallop/app/run.h"
#include "gallop/app/run_options.h"
#include "gallop/base/stop.h"

namespace gallop::app {

/// Creates a run from a recipe: builds its session, for which it finds a batch size if the recipe
/// leaves that open, then its folder; nothing is created if the recipe or the data are wrong. With
/// `resume_if_there` it may do what resume_run() does. Returns null if a stop is requested before.
/// Throws UsageError if the name is taken. All processes of a group call it; the arguments of rank
/// 0 count.
std::unique_ptr<Run> start_run(const Registries& registries, const RunOptions& options,
                               const std::string& recipe, const std::vector<Override>& overrides,
                               const StopRequest& stop, const DistributedContext& context);

/// Continues a run from its newest checkpoint, or from the beginning if it has none. A damaged
/// checkpoint is a DataError that names the file and the checkpoint before it. Returns null, after
/// a message, if the run is finished. If it throws, nothing in the run's folder was changed.
std::unique_ptr<Run> resume_run(const Registries& registries, const RunOptions& options,
                                const std::string& name, const std::vector<Override>& overrides,
                                const StopRequest& stop, const DistributedContext& context);

}  // namespace gallop::app
