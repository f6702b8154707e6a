#include "gallop/parallel/launched_group.h"

#include "gallop/launch/call_log.h"

namespace gallop::parallel {

std::unique_ptr<Collectives> join_launched_group(const launch::World& world, const Limits& limits) {
  launch::pin_to_local_cores(world);
  return init_process_group(
      {.rank = world.rank,
       .size = world.size,
       .host = world.host,
       .port = world.port,
       .store_is_there = world.store_is_there,
       .name = world.attempt,
       .call_logs = launch::process_environment()(launch::kCallLogsVariable).value_or(""),
       .limits = limits});
}

}  // namespace gallop::parallel
