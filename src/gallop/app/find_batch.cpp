#include <algorithm>
#include <cstdio>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/app/batch_curve.h"
#include "gallop/app/batch_finder.h"
#include "gallop/app/batch_trial.h"
#include "gallop/app/command.h"
#include "gallop/app/distributed_context.h"
#include "gallop/app/output_file.h"
#include "gallop/app/recipe.h"
#include "gallop/app/signals.h"
#include "gallop/app/terminal.h"
#include "gallop/base/text.h"
#include "gallop/plot/plot.h"

namespace gallop::app {

namespace {

struct Arguments {
  BatchTrial trial;
  std::string memory;
  int64_t first = 8;
  int64_t most = 0;
  double step_seconds = 20;
  bool no_largest = false;
  std::string svg;
  bool json = false;

  BatchQuestion question(const Recipe& recipe) const {
    BatchQuestion question(trial, recipe);
    question.limits.first = first;
    if (most > 0) question.limits.most = most;
    question.limits.step_seconds = step_seconds;
    question.limits.largest = !no_largest;
    return question;
  }
};

void check(const Arguments& arguments) {
  if (arguments.first < 1) throw UsageError("--min must be at least 1");
  if (arguments.most != 0 && arguments.most < arguments.first) {
    throw UsageError(fmt::format("batches from {} to {}: --max must not be below --min",
                                 arguments.first, arguments.most));
  }
  if (arguments.trial.noise.steps < 0 || arguments.trial.noise.warm_up < 0) {
    throw UsageError("--noise-steps and --warmup-steps must be at least 0");
  }
  const std::vector<std::string> probes = {"", "format", "speed", "noise"};
  if (std::find(probes.begin(), probes.end(), arguments.trial.probe) == probes.end()) {
    throw UsageError(fmt::format("--probe is one of format, speed and noise, not '{}'",
                                 printable(arguments.trial.probe)));
  }
  if (!(arguments.step_seconds > 0)) throw UsageError("--step-seconds must be above 0");
}

bool parse(const std::vector<std::string>& args, Arguments& arguments) {
  CLI::App parser(
      "Find a batch size for a recipe: the largest that fits into memory, the smallest with\n"
      "nearly the maximum throughput, and the critical batch size, beyond which larger batches\n"
      "gain little (the gradient noise scale). Each size is tried in its own process; nothing\n"
      "is stored.\n\n"
      "Example: gallop find-batch fashion-mnist --memory '4 GiB'",
      "gallop find-batch");
  parser.add_option("RECIPE", arguments.trial.recipe, "a recipe's name or file")->required();
  parser.add_option("--memory", arguments.memory,
                    "memory limit of all processes of a run on a machine, such as '2 GiB'; by "
                    "default the free memory of the machine or GPU");
  parser.add_option("--min", arguments.first, "smallest batch size; 8 by default");
  parser.add_option("--max", arguments.most, "largest batch size; by default all samples");
  parser.add_option("--step-seconds", arguments.step_seconds,
                    "maximum step time in seconds; 20 by default");
  parser.add_flag("--no-largest", arguments.no_largest,
                  "stop where throughput stops growing, as data.batch_size: auto does");
  parser.add_option("--noise-steps", arguments.trial.noise.steps,
                    "steps for measuring the gradient noise scale; 20 by default, 0: off");
  parser.add_option("--warmup-steps", arguments.trial.noise.warm_up,
                    "training steps before the gradient noise scale is measured; 100 by default");
  parser.add_option("--svg", arguments.svg, "write the curves to this SVG file");
  parser.add_flag("--json", arguments.json, "print JSON");
  parser.add_option("--runs", arguments.trial.runs,
                    "folder of the runs, for train.distill.teacher");
  parser.add_option("--probe", arguments.trial.probe)->group("");
  std::vector<std::string> rest = args;
  arguments.trial.overrides = take_overrides(rest);
  if (!parse_arguments(parser, rest)) return false;
  if (!arguments.memory.empty()) {
    const auto bytes = parse_bytes(arguments.memory);
    if (!bytes) {
      throw UsageError(fmt::format("--memory is an amount such as '2 GiB' or '512 MiB', not '{}'",
                                   printable(arguments.memory)));
    }
    arguments.trial.limit_bytes = *bytes;
  }
  check(arguments);
  return true;
}

std::string describe(const schedule::BatchPoint& point) {
  return fmt::format("{:>9} {:>13} {:>12}", format_count(point.batch),
                     format_count(static_cast<int64_t>(point.samples_per_second)),
                     format_bytes(point.bytes));
}

std::string why_largest(const FoundBatch& found, int64_t most) {
  if (found.search.too_large) {
    return fmt::format("that fits; {} does not: {}", format_count(*found.search.too_large),
                       found.why_too_large);
  }
  if (found.search.largest() >= most) return "and larger ones are not allowed";
  return found.search.cut_short ? "that was tried and fits; steps of larger ones take long"
                                : "that was tried and fits";
}

void print_table(const FoundBatch& found, int64_t most) {
  const auto line = [](const char* name, const std::string& value, const std::string& text) {
    fmt::print("{:<10} {:>9}  {}\n", name, value, text);
  };
  line("largest", format_count(found.search.largest()), why_largest(found, most));
  line("fastest", format_count(found.fastest()),
       "the smallest with 95 % of the maximum throughput");
  if (found.critical) {
    line("critical", format_count(static_cast<int64_t>(*found.critical)),
         fmt::format("gradient noise scale, from batches of {} and {}: larger batches gain less",
                     found.small, found.big));
  } else if (found.small > 0) {
    line("critical", "-",
         "the gradients are dominated by noise, or not finite; try another "
         "--warmup-steps or more --noise-steps");
  }
  line("suggested", format_count(found.suggested()),
       "the fastest up to the critical one  <- data.batch_size, or data.batch_size: auto");
}

}  // namespace

ExitCode run_find_batch(const CommandContext& command, const std::vector<std::string>& arguments) {
  StopRequest stop;
  const SignalGuard signals(stop);
  Arguments parsed;
  if (!parse(arguments, parsed)) return ExitCode::kDone;
  if (!parsed.trial.probe.empty()) return run_batch_trial(command.registries(), parsed.trial, stop);

  const Registries& registries = command.registries();
  const DistributedContext context = DistributedContext::join();
  const ResolvedRecipe resolved =
      load_recipe(registries, context.collectives(), parsed.trial.recipe, parsed.trial.overrides);
  if (parsed.trial.noise.steps > 0 && !has_noise_scale(resolved.recipe, context)) {
    throw UsageError(fmt::format(
        "parallel.name={}: the gradient noise scale is measured from gradients that are summed "
        "over all processes; set --noise-steps 0, or measure it with parallel.name=ddp",
        resolved.recipe.strategy.name()));
  }
  const bool prints_table = !parsed.json && context.is_first();
  if (prints_table) {
    fmt::print("{}\n{:>9} {:>13} {:>12}\n", resolved.name, "batch", "samples/s", "memory");
    std::fflush(stdout);
  }
  const BatchQuestion question = parsed.question(resolved.recipe);
  const auto found = find_batch(question, context, stop, [&](const schedule::BatchPoint& point) {
    if (!prints_table) return;
    fmt::print("{}\n", describe(point));
    std::fflush(stdout);
  });
  if (!found) return ExitCode::kStopped;
  if (!context.is_first()) return ExitCode::kDone;
  const auto plots = batch_curves(resolved.name, *found);
  if (!parsed.svg.empty()) write_output(parsed.svg, plot::to_svg(plots, 2));
  if (parsed.json) {
    fmt::print("{}\n", batch_curve_json(parsed.trial.recipe, *found));
  } else {
    fmt::print("\n");
    for (const auto& plot : plots) print_plot(plot);
    fmt::print("\n");
    print_table(*found, std::min(question.limits.most, found->samples));
  }
  return ExitCode::kDone;
}

}  // namespace gallop::app
