#include "gallop/app/distributed_context.h"

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/launch/call_log.h"
#include "gallop/launch/world.h"
#include "gallop/parallel/launched_group.h"

namespace gallop::app {

void require_alone(const char* command) {
  const launch::World world = launch::read_world(launch::process_environment());
  if (world.size == 1) return;
  throw UsageError(fmt::format(
      "'gallop {0}' runs in a single process, but {3} started this one as rank {1} of {2}; start "
      "it without a launcher",
      command, world.rank, world.size, world.starter));
}

DistributedContext DistributedContext::join() {
  DistributedContext context;
  context.world_ = launch::read_world(launch::process_environment());
  if (context.world_.size == 1) return context;
  context.collectives_ = parallel::join_launched_group(context.world_, {});
  return context;
}

std::map<std::string, std::string> DistributedContext::variables_of_children(
    const std::string& name) const {
  if (is_alone()) return {};
  return {{"RANK", std::to_string(world_.rank)},
          {"WORLD_SIZE", std::to_string(world_.size)},
          {"LOCAL_RANK", std::to_string(world_.local_rank)},
          {"LOCAL_WORLD_SIZE", std::to_string(world_.local_size)},
          {"MASTER_ADDR", world_.host},
          {"MASTER_PORT", std::to_string(world_.port)},
          {"TORCHELASTIC_USE_AGENT_STORE", "True"},
          {"TORCHELASTIC_RUN_ID", world_.attempt + "/" + name},
          // The log of this process, not of its children.
          {launch::kCallLogsVariable, ""}};
}

}  // namespace gallop::app
