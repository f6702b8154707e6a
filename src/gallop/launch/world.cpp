#include "gallop/launch/world.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "gallop/base/affinity.h"
#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/launch/host_list.h"

namespace gallop::launch {

namespace {

/// The environment variables of a launcher.
struct Starter {
  const char *name, *rank, *size, *local_rank, *local_size;  ///< local_size: null for Slurm.

  bool is_slurm() const { return local_size == nullptr; }
};

constexpr const char* kSlurm = "Slurm";
// Innermost first.
constexpr Starter kStarters[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {kSlurm, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", nullptr},
    {"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
};

class Variables {
 public:
  explicit Variables(const Environment& environment) : environment_(environment) {}

  std::optional<int> number(const std::string& name) const {
    const auto text = environment_(name);
    if (!text) return std::nullopt;
    if (const auto number = parse_number<int>(*text); number && *number >= 0) return number;
    throw UsageError(
        fmt::format("{} is '{}', but must be a number from 0", name, printable(*text)));
  }

  // Requires a variable, since `other` is set.
  int needed(const std::string& name, const std::string& other) const {
    if (const auto value = number(name)) return *value;
    throw UsageError(fmt::format("{} is set, but {} is not; set both or none", other, name));
  }

 private:
  const Environment& environment_;
};

void require_below(int rank, const char* rank_name, int size, const char* size_name) {
  if (rank < size) return;
  throw UsageError(fmt::format("{} is {}, but {} is {}: ranks must be in [0, world size)",
                               rank_name, rank, size_name, size));
}

// The number of tasks on this host, from Slurm's list for all hosts.
int slurm_local_size(const Environment& environment, const Variables& variables, int size) {
  const auto tasks = environment("SLURM_STEP_TASKS_PER_NODE");
  const auto node = variables.number("SLURM_NODEID");
  if (!tasks || !node) {
    throw UsageError(
        "SLURM_PROCID is set, but SLURM_STEP_TASKS_PER_NODE or SLURM_NODEID is not: start it by "
        "srun, or set RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE");
  }
  const std::vector<int> all = parse_tasks_per_node(*tasks);
  int64_t sum = 0;
  for (const int of_node : all) sum += of_node;
  if (sum != size || static_cast<size_t>(*node) >= all.size()) {
    throw UsageError(fmt::format(
        "SLURM_STEP_TASKS_PER_NODE is '{}', which does not match SLURM_STEP_NUM_TASKS={} "
        "and SLURM_NODEID={}",
        printable(*tasks), size, *node));
  }
  return all[static_cast<size_t>(*node)];
}

// A Slurm batch script has a rank as well, but is not a step started by srun.
const char* sign_of(const Starter& starter) {
  return starter.is_slurm() ? starter.size : starter.rank;
}

bool has_started(const Starter& starter, const Environment& environment) {
  const Variables variables(environment);
  if (variables.number(sign_of(starter))) return true;
  if (!starter.is_slurm() && variables.number(starter.size)) {
    variables.needed(starter.rank, starter.size);
  }
  return false;
}

void read_place_on_host(World& world, const Starter& starter, const Environment& environment) {
  const Variables variables(environment);
  const char* local_size = "SLURM_STEP_TASKS_PER_NODE";
  if (starter.is_slurm()) {
    world.local_rank = variables.needed(starter.local_rank, starter.size);
    world.local_size = slurm_local_size(environment, variables, world.size);
  } else {
    local_size = starter.local_size;
    // Kubernetes jobs have one process per host and set no local rank.
    if (!variables.number(starter.local_rank) && !variables.number(local_size)) return;
    world.local_rank = variables.needed(starter.local_rank, local_size);
    world.local_size = variables.needed(local_size, starter.local_rank);
  }
  require_below(world.local_rank, starter.local_rank, world.local_size, local_size);
  if (world.local_size > world.size) {
    throw UsageError(fmt::format("{} is {}, but {} is {}: a host cannot have more than all",
                                 local_size, world.local_size, starter.size, world.size));
  }
}

World read_starter(const Starter& starter, const Environment& environment) {
  const Variables variables(environment);
  const char* const sign = sign_of(starter);
  World world{.starter = starter.name};
  world.rank = variables.needed(starter.rank, sign);
  world.size = variables.needed(starter.size, sign);
  require_below(world.rank, starter.rank, world.size, starter.size);
  read_place_on_host(world, starter, environment);
  return world;
}

void find_store(World& world, const Environment& environment) {
  if (const auto port = Variables(environment).number("MASTER_PORT")) {
    if (*port < 1 || *port > 65535) {
      throw UsageError(fmt::format("MASTER_PORT is {}, but must be from 1 to 65535", *port));
    }
    world.port = *port;
  }
  if (const auto host = environment("MASTER_ADDR"); host && !host->empty()) {
    world.host = *host;
  } else if (world.local_size < world.size) {
    const auto hosts = world.starter == kSlurm ? environment("SLURM_STEP_NODELIST") : host;
    if (!hosts) {
      throw UsageError(fmt::format(
          "{} of {} processes are on other hosts, but MASTER_ADDR is not set: set it to "
          "the host of rank 0",
          world.size - world.local_size, world.size));
    }
    world.host = parse_host_list(*hosts).front();
  }
}

bool is_of_starter(std::string_view name) {
  static constexpr const char* kNames[] = {
      "RANK",           "WORLD_SIZE",       "LOCAL_RANK",  "LOCAL_WORLD_SIZE",
      "GROUP_RANK",     "GROUP_WORLD_SIZE", "ROLE_RANK",   "ROLE_WORLD_SIZE",
      "ROLE_NAME",      "MASTER_ADDR",      "MASTER_PORT", "MPI_LOCALRANKID",
      "MPI_LOCALNRANKS"};
  static constexpr const char* kPrefixes[] = {"TORCHELASTIC_", "OMPI_", "PMIX_",
                                              "PRTE_",         "PMI_",  "SLURM_"};
  const auto is_it = [name](const char* other) { return name == other; };
  const auto begins_it = [name](const char* prefix) { return name.starts_with(prefix); };
  // Slurm's own commands need it to find their cluster.
  if (name == "SLURM_CONF") return false;
  return std::any_of(std::begin(kNames), std::end(kNames), is_it) ||
         std::any_of(std::begin(kPrefixes), std::end(kPrefixes), begins_it);
}

}  // namespace

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* const value = std::getenv(name.c_str());
    return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
  };
}

std::vector<std::string> starter_variables() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    if (is_of_starter(name)) names.emplace_back(name);
  }
  return names;
}

World read_world(const Environment& environment) {
  World world;
  for (const Starter& starter : kStarters) {
    if (!has_started(starter, environment)) continue;
    if (world.starter.empty()) {
      world = read_starter(starter, environment);
      continue;
    }
    const int size = Variables(environment).number(starter.size).value_or(1);
    // An elastic job may have fewer processes than the one in which its launchers were started.
    const bool is_elastic = environment("TORCHELASTIC_RESTART_COUNT").has_value();
    if (size > world.size && !is_elastic) {
      throw UsageError(
          fmt::format("{} sets rank {} of {}, but {} started {} processes: unset the variables of "
                      "the launcher that did not start this process",
                      world.starter, world.rank, world.size, starter.name, size));
    }
  }
  find_store(world, environment);
  world.store_is_there = environment("TORCHELASTIC_USE_AGENT_STORE") == "True";
  world.attempt = environment("TORCHELASTIC_RUN_ID").value_or("") + "/" +
                  environment("TORCHELASTIC_RESTART_COUNT").value_or("0");
  return world;
}

void pin_to_local_cores(const World& world) {
  // A launcher that binds processes gives each at most its part.
  const auto given = static_cast<int>(cores_given().size());
  if (world.local_size == 1 || given <= cores_online() / world.local_size) return;
  set_cpu_affinity(part_of(side_by_side(cores_given()), world.local_rank, world.local_size));
}

int choose_gpu(const World& world, int gpus) {
  if (gpus == 1) return 0;
  if (world.local_rank < gpus && world.local_size <= gpus) return world.local_rank;
  throw DeviceError(fmt::format(
      "{} processes were started on this host, which has {} GPUs: each needs one of its own",
      world.local_size, gpus));
}

}  // namespace gallop::launch
