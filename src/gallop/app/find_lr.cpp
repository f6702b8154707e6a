#include <cstdio>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/app/command.h"
#include "gallop/app/distributed_context.h"
#include "gallop/app/lr_curve.h"
#include "gallop/app/output_file.h"
#include "gallop/app/session.h"
#include "gallop/app/signals.h"
#include "gallop/app/terminal.h"
#include "gallop/base/text.h"
#include "gallop/plot/plot.h"
#include "gallop/schedule/lr_suggestion.h"
#include "gallop/train/lr_range_test.h"

namespace gallop::app {

namespace {

struct Arguments {
  std::string recipe;
  train::LrRangeTestConfig test;
  std::string rule;
  std::string svg;
  bool json = false;
  std::vector<Override> overrides;
};

std::string list_of_rules() {
  std::string text;
  for (const auto& rule : schedule::lr_rules()) {
    text += fmt::format("  {:<12}{}\n", rule.name, rule.help);
  }
  return text;
}

const schedule::LrRule& find_rule(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& rule : schedule::lr_rules()) {
    if (name == rule.name) return rule;
    names.emplace_back(rule.name);
  }
  throw UsageError(
      fmt::format("--rule is one of {}, not '{}'", join_names(names, "and"), printable(name)));
}

void check(const train::LrRangeTestConfig& test) {
  if (!(test.min > 0 && test.max > test.min)) {
    throw UsageError(
        fmt::format("rates from {:g} to {:g}: --min must be above 0, and --max above --min",
                    test.min, test.max));
  }
  if (test.rates < 20) throw UsageError("--rates must be at least 20");
  if (!(test.memory >= 0 && test.memory < 1)) {
    throw UsageError(fmt::format("--smooth must be in [0, 1), not {:g}", test.memory));
  }
  if (!(test.divergence > 1)) throw UsageError("--divergence must be above 1");
}

bool parse(const std::vector<std::string>& args, Arguments& arguments) {
  CLI::App parser(
      "Find a learning rate for a recipe (LR range test): train briefly at increasing rates and\n"
      "read the rate off the loss curve. Nothing is stored, and no run folder is created.\n\n"
      "Example: gallop find-lr fashion-mnist optimizer.momentum=0.95\n\n"
      "Rules for reading the curve; the first one is the default:\n" +
          list_of_rules(),
      "gallop find-lr");
  auto& test = arguments.test;
  parser.add_option("RECIPE", arguments.recipe, "a recipe's name or file")->required();
  parser.add_option("--min", test.min, "lowest learning rate; 1e-7 by default");
  parser.add_option("--max", test.max, "highest learning rate; 10 by default");
  parser.add_option("--rates", test.rates, "number of learning rates; 100 by default");
  parser.add_flag("--linear", test.linear, "increase the rate linearly instead of exponentially");
  parser.add_option("--reset", test.steps_each,
                    "STEPS: train each rate for this many steps from the same weights and samples");
  parser.add_option("--smooth", test.memory,
                    "smoothing factor of the loss; 0.98 by default, 0 with --reset");
  parser.add_option("--divergence", test.divergence,
                    "stop when the smoothed loss exceeds its minimum by this factor; 4 by default");
  parser.add_option("--rule", arguments.rule, "rule for reading the curve");
  parser.add_option("--svg", arguments.svg, "write the curve to this SVG file");
  parser.add_flag("--json", arguments.json, "print JSON");
  std::vector<std::string> rest = args;
  arguments.overrides = take_overrides(rest);
  if (!parse_arguments(parser, rest)) return false;
  // With --reset all rates see the same samples and weights, so that smoothing is unnecessary.
  if (test.steps_each > 0 && parser.count("--smooth") == 0) test.memory = 0;
  if (parser.count("--reset") > 0 && test.steps_each < 1) {
    throw UsageError("--reset needs a number of steps, at least 1");
  }
  check(test);
  arguments.rule =
      find_rule(arguments.rule.empty() ? schedule::lr_rules().front().name : arguments.rule).name;
  return true;
}

void print_table(const Arguments& arguments, const train::LrRangeTest& test) {
  const auto found = suggested_lrs(test);
  for (size_t i = 0; i < found.size(); ++i) {
    const auto& rule = schedule::lr_rules()[i];
    fmt::print("{:<12} {:>8}  {}{}\n", rule.name, found[i] ? fmt::format("{:.2g}", *found[i]) : "-",
               rule.help, rule.name == arguments.rule ? "  <- suggested" : "");
  }
  if (const auto range = schedule::range_of_fall(test.points)) {
    fmt::print("{:<12} {:>8}  to {:.2g}: where the loss falls, bounds for a cyclic schedule\n",
               "range", fmt::format("{:.2g}", range->min), range->max);
  }
}

}  // namespace

ExitCode run_find_lr(const CommandContext& command, const std::vector<std::string>& arguments) {
  StopRequest stop;
  const SignalGuard signals(stop);
  Arguments parsed;
  if (!parse(arguments, parsed)) return ExitCode::kDone;

  const Registries& registries = command.registries();
  const DistributedContext context = DistributedContext::join();
  ResolvedRecipe resolved =
      load_recipe(registries, context.collectives(), parsed.recipe, parsed.overrides);
  Session session(std::move(resolved), "runs", context.collectives());
  if (!parsed.json && context.is_first()) {
    fmt::print("{}: {}{}; {} rates from {:g} to {:g}\n", session.resolved().name,
               session.describe_training(),
               context.is_alone() ? std::string() : fmt::format(", {} processes", context.size()),
               parsed.test.rates, parsed.test.min, parsed.test.max);
    std::fflush(stdout);
  }
  const train::LrRangeTest test =
      train::test_lr_range({session.model(), session.optimizer(), *session.data().train, stop},
                           parsed.test, session.step_config(), session.training_loader());
  if (test.stopped) return ExitCode::kStopped;
  if (!context.is_first()) return ExitCode::kDone;
  const plot::XyPlot plot = lr_curve(session.resolved().name, parsed.test, test);
  if (!parsed.svg.empty()) write_output(parsed.svg, plot::to_svg({plot}));
  if (parsed.json) {
    fmt::print("{}\n", lr_curve_json(parsed.recipe, parsed.rule, test));
  } else {
    plot::XyPlot terse = plot;
    terse.series.resize(1);
    print_plot(terse);
    fmt::print("\n");
    print_table(parsed, test);
    if (const auto& recipe = session.recipe(); recipe.lr_scaling.scales()) {
      fmt::print("These are for a batch size of {}: use them with optimizer.lr_batch={}\n",
                 format_count(recipe.data.batch_size), recipe.data.batch_size);
    }
    suggested_lr(parsed.rule, parsed.test, test);
  }
  return ExitCode::kDone;
}

}  // namespace gallop::app
