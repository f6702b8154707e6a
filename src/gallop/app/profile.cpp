#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/advise/advice.h"
#include "gallop/app/command.h"
#include "gallop/app/distributed_context.h"
#include "gallop/app/model_facts.h"
#include "gallop/app/output_file.h"
#include "gallop/app/pinned_options.h"
#include "gallop/app/profile_facts.h"
#include "gallop/app/profiled_training.h"
#include "gallop/app/rank_reports.h"
#include "gallop/app/recipe_components.h"
#include "gallop/app/session.h"
#include "gallop/app/signals.h"
#include "gallop/app/step_trials.h"
#include "gallop/profile/chrome_trace.h"
#include "gallop/profile/profile_text.h"

namespace gallop::app {

namespace {

// Two steps are recorded for the compiled one, and later ones still fill caches.
constexpr int64_t kLeastWarmUp = 3;

struct Arguments {
  std::string recipe;
  int64_t steps = 20, warm_up = 5;
  std::string trace;
  bool json = false;
  std::vector<Override> overrides;
};

bool parse(const std::vector<std::string>& args, Arguments& arguments) {
  CLI::App parser(
      "Train some steps of a recipe and show where their time goes: waiting for data, forward,\n"
      "backward, the optimizer, each layer and operator, compared with the limits of this\n"
      "machine. Then list changes to the recipe with the speedup to expect from each. Nothing is\n"
      "stored, and no run folder is created.\n\n"
      "Example: gallop profile cifar10 data.path=pictures --trace step.json",
      "gallop profile");
  parser.add_option("RECIPE", arguments.recipe, "a recipe's name or file")->required();
  parser.add_option("--steps", arguments.steps, "number of steps to profile; 20 by default");
  parser.add_option("--warmup", arguments.warm_up,
                    "number of warm-up steps, which are not profiled; 5 by default");
  parser.add_option("--trace", arguments.trace,
                    "write a trace to this file, for ui.perfetto.dev or chrome://tracing");
  parser.add_flag("--json", arguments.json, "print JSON");
  std::vector<std::string> rest = args;
  arguments.overrides = take_overrides(rest);
  if (!parse_arguments(parser, rest)) return false;
  if (arguments.steps < 1) throw UsageError("--steps must be at least 1");
  if (arguments.warm_up < kLeastWarmUp) {
    throw UsageError(fmt::format(
        "--warmup must be at least {}: the first steps are recorded and compiled", kLeastWarmUp));
  }
  return true;
}

// The overrides, and the values of what the recipe leaves open.
std::vector<Override> resolved_overrides(Session& session, const ResolvedRecipe& open,
                                         const std::vector<Override>& given) {
  std::vector<std::string> pinned =
      pinned_options(open, options_of(given),
                     {.precision = precision::name_of(session.format().precision),
                      .channels_last = session.format().channels_last,
                      .batch_size = session.recipe().data.batch_size,
                      .lr = session.optimizer().base_lr()});
  return take_overrides(pinned);
}

// The trace of a process that is one of several has its rank in its name.
void write_trace(const std::string& file, const Session& session, const ProfiledTraining& training,
                 const DistributedContext& context) {
  fs::path path = file;
  if (!context.is_alone()) {
    path.replace_filename(fmt::format("{}.rank-{}{}", path.stem().string(), context.rank(),
                                      path.extension().string()));
  }
  write_output(path.string(),
               profile::chrome_trace(training.trace, training.graphs, training.facts.profile.memory,
                                     origin_of(context, session.hardware().host)));
}

void print_profile(Session& session, const advise::Facts& facts, bool as_json) {
  const std::vector<advise::Advice> advice = advise::advise(facts);
  if (as_json) {
    fmt::print("{}\n", profile_document(session, facts, advice));
    return;
  }
  const profile::Profile& steps = facts.profile;
  const data::Signature& inputs = session.inputs();
  fmt::print("{}: steps {} to {} of {}; {}\n", session.resolved().name, steps.first_step,
             steps.first_step + steps.steps - 1, samples_text(inputs, steps.samples),
             session.describe_training());
  fmt::print("{}", profile::profile_text(steps, {.items = samples_of(inputs)}));
  fmt::print("\nadvice\n{}", advise::advice_text(advice));
}

}  // namespace

ExitCode run_profile(const CommandContext& command, const std::vector<std::string>& arguments) {
  StopRequest stop;
  const SignalGuard signals(stop);
  Arguments parsed;
  if (!parse(arguments, parsed)) return ExitCode::kDone;
  const DistributedContext context = DistributedContext::join();
  const Registries& registries = command.registries();
  const ResolvedRecipe open =
      load_recipe(registries, context.collectives(), parsed.recipe, parsed.overrides);
  Session session(open, "runs", context.collectives());
  require_profiled_device(session, "gallop profile");
  ProfiledTraining training =
      profile_training(session, parsed.warm_up, parsed.steps, context, stop);
  if (context.run_on_rank0([&] { return stop.requested(); })) return ExitCode::kStopped;
  advise::Facts& facts = training.facts;
  if (!parsed.trace.empty()) write_trace(parsed.trace, session, training, context);
  const std::vector<RankReport> reports = gather_reports(
      context,
      report_of(context, session.hardware().host, training.trace, training.graphs, facts.profile),
      facts.profile.first_step + facts.profile.steps);
  if (!context.is_first()) return ExitCode::kDone;
  facts.profile.ranks = times_of(reports);
  if (!context.is_alone() && facts.settings.strategy == "ddp") {
    facts.gradients = gradient_facts_of(session);
  }
  if (context.is_alone()) {
    facts.model = find_model_facts(session, facts.profile);
    const auto resolved = resolved_overrides(session, open, parsed.overrides);
    time_options(registries, parsed.recipe, resolved, facts, stop);
    time_loader_options(parsed.recipe, resolved, facts, stop);
  }
  if (stop.requested()) return ExitCode::kStopped;
  print_profile(session, facts, parsed.json);
  return ExitCode::kDone;
}

}  // namespace gallop::app
