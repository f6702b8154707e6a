#include "gallop/app/start_run.h"

#include <functional>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/batch_finder.h"
#include "gallop/app/print.h"
#include "gallop/app/run_handoff.h"
#include "gallop/app/run_plan.h"
#include "gallop/base/error.h"

namespace gallop::app {

namespace {

// Searches a batch size for `batch_size: auto` in bounded time: the largest one that fits is not
// searched. Nothing after a stop request.
std::optional<FoundBatch> find_batch_for(const Recipe& recipe, BatchTrial trial,
                                         const DistributedContext& context,
                                         const StopRequest& stop) {
  constexpr double kStepSeconds = 5, kNoiseSeconds = 120;
  if (!has_noise_scale(recipe, context)) trial.noise.steps = 0;
  BatchQuestion question(std::move(trial), recipe);
  question.limits.largest = false;
  question.limits.step_seconds = kStepSeconds;
  question.noise_seconds = kNoiseSeconds;
  const auto say = [&context](const std::string& line) {
    if (context.is_first()) print_error("gallop: {}\n", line);
  };
  say(fmt::format("data.batch_size: auto: trying batch sizes, each in {} of {} own",
                  context.is_alone() ? "a process" : fmt::format("{} processes", context.size()),
                  context.is_alone() ? "its" : "their"));
  auto found = find_batch(question, context, stop, {});
  if (!found) say("stopped during the batch size search; nothing was created");
  return found;
}

// Nothing after a stop request.
using FindBatch = std::function<std::optional<FoundBatch>(const Recipe&)>;

std::optional<FoundBatch> resolve_batch(ResolvedRecipe& resolved, const FindBatch& find) {
  auto found = find(resolved.recipe);
  if (!found) return {};
  resolved.resolve("data.batch_size", std::to_string(found->suggested()));
  for (const Override& one : found->format) resolved.resolve(one.path, one.value);
  return found;
}

/// The part of rank 0's plan that all processes need.
struct SharedPlan {
  ResumedRun resumed{};  ///< Empty without a checkpoint.
  bool resumes = false;
  std::string recipe{};  ///< Serialized by to_text(); may be any bytes.
};

// A line of JSON, followed by the recipe.
std::string to_bytes(RunPlan& plan) {
  const std::string folder = plan.checkpoint ? plan.folder->path().string() : std::string();
  const nlohmann::json head{
      {"trainer", plan.trainer}, {"folder", folder}, {"resumes", plan.folder.has_value()}};
  return head.dump() + "\n" + to_text(plan.resolved);
}

SharedPlan from_bytes(const std::string& bytes) {
  const size_t end = bytes.find('\n');
  const auto head = nlohmann::json::parse(bytes.substr(0, end));
  return {.resumed = {.trainer = head.at("trainer").get<std::map<std::string, std::string>>(),
                      .folder = head.at("folder").get<std::string>()},
          .resumes = head.at("resumes").get<bool>(),
          .recipe = bytes.substr(end + 1)};
}

// Rank 0 makes the plan and owns the folder; the others follow. A resumed run is only modified
// after all checks have passed.
std::unique_ptr<Run> prepare_run(const Registries& registries, const RunOptions& options,
                                 const DistributedContext& context,
                                 const std::function<std::optional<RunPlan>()>& make_plan,
                                 const StopRequest& stop, const FindBatch& find = {}) {
  if (options.share && !context.is_alone()) {
    throw UsageError("--share requires a single process");
  }
  std::optional<RunPlan> plan;  // On rank 0.
  fs::path from;
  const std::string plan_bytes = context.run_on_rank0([&] {
    if (!options.from.empty()) from = track::RunFolder::find(options.runs, options.from);
    plan = make_plan();
    return plan ? to_bytes(*plan) : std::string();
  });
  if (plan_bytes.empty()) return nullptr;
  const SharedPlan shared = from_bytes(plan_bytes);
  ResolvedRecipe resolved = plan ? std::move(plan->resolved) : from_text(registries, shared.recipe);
  std::optional<FoundBatch> batch;
  if (find && resolved.is_auto("data", "batch_size")) {
    batch = resolve_batch(resolved, find);
    if (!batch) return nullptr;
  }
  auto run = std::make_unique<Run>(std::move(resolved), options, context, shared.resumed);
  context.run_on_rank0([&] {
    if (shared.resumes) run->check_against(*plan);
    if (!from.empty() && !plan->checkpoint) run->find_beginning(from);
  });
  if (shared.resumes) run->restore(plan, stop);
  if (!shared.resumes && run->is_to_be_proven()) {
    run->prove(stop);
    if (context.run_on_rank0([&] { return stop.requested(); })) return nullptr;
  }
  // Ensures that no process has failed before rank 0 writes.
  if (!context.is_alone()) parallel::any_of(*context.collectives(), false);
  const std::string path = context.run_on_rank0([&] {
    if (batch) run->take_batch(std::move(*batch));
    if (plan->folder) {
      run->commit(*plan);
    } else {
      run->create();
    }
    if (!context.is_alone()) {
      note_foreign_steps(run->path(), "some were trained by several processes");
    }
    if (!from.empty()) run->begin_from(from);
    if (options.share) run->share_with(plan->prefix_sources);
    return run->path().string();
  });
  if (!context.is_first()) run->look_at(path);
  if (!options.from.empty()) run->check_beginning(from, /*is_new=*/!shared.resumes, stop);
  context.run_on_rank0([&] { RunHandoff::tell(run->path()); });
  return run;
}

}  // namespace

std::unique_ptr<Run> start_run(const Registries& registries, const RunOptions& options,
                               const std::string& recipe, const std::vector<Override>& overrides,
                               const StopRequest& stop, const DistributedContext& context) {
  FindBatch find;
  if (options.can_probe) {
    find = [&](const Recipe& open) {
      return find_batch_for(
          open, {.probe = {}, .recipe = recipe, .runs = options.runs, .overrides = overrides},
          context, stop);
    };
  }
  return prepare_run(
      registries, options, context,
      [&] { return plan_start(registries, options, recipe, overrides); }, stop, find);
}

std::unique_ptr<Run> resume_run(const Registries& registries, const RunOptions& options,
                                const std::string& name, const std::vector<Override>& overrides,
                                const StopRequest& stop, const DistributedContext& context) {
  return prepare_run(
      registries, options, context,
      [&] { return plan_resume(registries, options, name, overrides); }, stop);
}

}  // namespace gallop::app
