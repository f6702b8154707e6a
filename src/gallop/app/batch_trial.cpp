#include "gallop/app/batch_trial.h"

#include <algorithm>
#include <map>
#include <optional>

#include <c10/core/CachingDeviceAllocator.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/device.h"
#include "gallop/app/distributed_context.h"
#include "gallop/app/probe_child.h"
#include "gallop/app/session.h"
#include "gallop/base/hardware.h"
#include "gallop/base/memory.h"
#include "gallop/base/text.h"
#include "gallop/train/out_of_memory.h"
#include "gallop/train/recompute_choice.h"

namespace gallop::app {

namespace {

using Json = nlohmann::ordered_json;

Json probe_format(Session& session) {
  const train::TrainConfig& train = session.recipe().train;
  Json result = {
      {"format",
       {{"train.precision", train.precision}, {"train.channels_last", train.channels_last}}}};
  for (const MadeChoice& choice : session.choices()) {
    result["choices"].push_back({{"options", choice.options},
                                 {"evidence", choice.evidence},
                                 {"is_uncertain", choice.is_uncertain}});
  }
  return result;
}

// The maximum over all processes of the host.
int64_t bytes_of_host(const DistributedContext& context, int64_t own) {
  if (context.is_alone()) return own;
  const auto bytes = parallel::gather(*context.collectives(), static_cast<uint64_t>(own));
  const auto hosts = parallel::gather(*context.collectives(), host_name());
  std::map<std::string, int64_t> of_hosts;
  int64_t most = 0;
  for (size_t rank = 0; rank < bytes.size(); ++rank) {
    int64_t& sum = of_hosts[hosts[rank]];
    sum += static_cast<int64_t>(bytes[rank]);
    most = std::max(most, sum);
  }
  return most;
}

Json probe_speed(Session& session, const DistributedContext& context, const StopRequest& stop) {
  const data::Batch samples = session.first_part();
  const auto speed =
      train::time_batch(session.model(), session.optimizer(), session.step_config(), samples, stop);
  if (!speed) return {};
  if (speed->splits > 1) tell_no_memory("micro-batches had to be split");
  const auto count = static_cast<double>(samples.whole_size);
  Json result = {{"batch", samples.whole_size},
                 {"samples", session.data().train->size()},
                 {"samples_per_second", count / speed->step_seconds},
                 {"busy", speed->busy}};
  if (session.device().is_cpu()) {
    result["bytes"] = bytes_of_host(context, peak_resident_bytes());
  } else {
    auto* const allocator = at::getDeviceAllocator(session.device().type());
    const c10::DeviceIndex index = session.device().index();
    result["bytes"] =
        allocator->getDeviceStats(index).reserved_bytes[0].peak;  // Blocks of all kinds.
    result["device_bytes"] = allocator->getMemoryInfo(index).second;
  }
  return result;
}

Json probe_noise(Session& session, train::NoiseConfig config, const StopRequest& stop) {
  config.small = session.recipe().data.batch_size;
  const int64_t big = config.small * config.parts;
  config.lr_factor = session.recipe().lr_scaling.factor(big);
  if (big > session.data().train->size()) return {{"too_few", true}};
  const auto noise =
      train::measure_noise({session.model(), session.optimizer(), *session.data().train, stop},
                           config, session.step_config(), session.training_loader());
  if (stop.requested()) return {};
  Json result = {{"small", config.small}, {"big", big}};
  if (noise && noise->batch()) result["batch"] = *noise->batch();
  return result;
}

Json result_of(const BatchTrial& trial, Session& session, const DistributedContext& context,
               const StopRequest& stop) {
  if (trial.probe == "format") return probe_format(session);
  if (trial.probe == "speed") return probe_speed(session, context, stop);
  return probe_noise(session, trial.noise, stop);
}

}  // namespace

std::vector<std::string> args_of(const BatchTrial& trial) {
  std::vector<std::string> args = {"find-batch",     trial.recipe,
                                   "--probe",        trial.probe,
                                   "--runs",         trial.runs,
                                   "--memory",       fmt::format("{} bytes", trial.limit_bytes),
                                   "--noise-steps",  fmt::format("{}", trial.noise.steps),
                                   "--warmup-steps", fmt::format("{}", trial.noise.warm_up)};
  for (const Override& one : trial.overrides) {
    args.push_back(fmt::format("{}={}", one.path, one.value));
  }
  return args;
}

ExitCode run_batch_trial(const Registries& registries, const BatchTrial& trial,
                         const StopRequest& stop) {
  become_probe();
  const DistributedContext context = DistributedContext::join();
  ResolvedRecipe resolved =
      read_recipe(registries, context.collectives(), trial.recipe, trial.overrides);
  std::optional<MemoryWatch> watch;
  if (choose_device(resolved.recipe.train.device).device.is_cpu()) {
    watch.emplace(trial.limit_bytes, [&] {
      tell_no_memory(fmt::format("more than {}", format_bytes(trial.limit_bytes)));
    });
  }
  Json result;
  try {
    const auto full = train::run_in_memory([&] {
      Session session(std::move(resolved), trial.runs, context.collectives());
      result = result_of(trial, session, context, stop);
    });
    if (full) tell_no_memory(*full);
  } catch (const train::BlocksDoNotFit& full) {
    tell_no_memory(full.what());
  }
  if (result.is_null()) return ExitCode::kStopped;
  tell_result(result.dump());
  return ExitCode::kDone;
}

}  // namespace gallop::app
