#include "gallop/app/distributed_context.h"

#include <fmt/format.h>

#include "gallop/base/affinity.h"
#include "gallop/base/error.h"
#include "gallop/launch/call_log.h"
#include "gallop/launch/world.h"

namespace gallop::app {

namespace {

fs::path call_logs() {
  return launch::process_environment()(launch::kCallLogsVariable).value_or("");
}

}  // namespace

void pin_to_local_cores(const launch::World& world) {
  // A launcher that binds processes gives each at most its part.
  const auto given = static_cast<int>(cores_given().size());
  if (world.local_size == 1 || given <= cores_online() / world.local_size) return;
  set_cpu_affinity(part_of(side_by_side(cores_given()), world.local_rank, world.local_size));
}

void require_alone(const char* command) {
  const launch::World world = launch::read_world(launch::process_environment());
  if (world.size == 1) return;
  throw UsageError(fmt::format(
      "'gallop {0}' needs a single process, but {3} started this as process {1} of {2}; only "
      "'gallop train' supports several",
      command, world.rank, world.size, world.starter));
}

DistributedContext DistributedContext::join() {
  DistributedContext context;
  context.world_ = launch::read_world(launch::process_environment());
  const launch::World& world = context.world_;
  if (world.size == 1) return context;
  pin_to_local_cores(world);
  context.collectives_ = parallel::init_process_group({.rank = world.rank,
                                                       .size = world.size,
                                                       .host = world.host,
                                                       .port = world.port,
                                                       .store_is_there = world.store_is_there,
                                                       .name = world.attempt,
                                                       .call_logs = call_logs()});
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
