#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <fmt/format.h>

#include "gallop/app/command.h"
#include "gallop/app/distributed_context.h"
#include "gallop/app/optimize/child_experiments.h"
#include "gallop/app/optimize/measured_training.h"
#include "gallop/app/pinned_options.h"
#include "gallop/app/print.h"
#include "gallop/app/recipe.h"
#include "gallop/app/report_page.h"
#include "gallop/app/signals.h"
#include "gallop/base/shell.h"
#include "gallop/base/text.h"
#include "gallop/optimize/journal.h"
#include "gallop/optimize/search.h"
#include "gallop/track/run_folder.h"

namespace gallop::app {

namespace {

struct Arguments {
  std::string recipe, goal = "time-to-accuracy", folder, measure;
  double budget_seconds = 0;
  int64_t seeds = 3;
  double price = 0;
  bool no_ablation = false, json = false;
  std::vector<Override> overrides;
};

double parse_budget(const std::string& text) {
  std::optional<train::Interval> budget;
  try {
    budget = train::Interval::parse(text);
  } catch (const UsageError&) {
    // What an interval may be otherwise does not matter here.
  }
  if (!budget || budget->unit != train::Interval::Unit::kSeconds || budget->count <= 0) {
    throw UsageError(
        fmt::format("--budget is a time such as '20 min' or '2 h', not '{}'", printable(text)));
  }
  return budget->count;
}

bool parse(const std::vector<std::string>& args, Arguments& arguments) {
  CLI::App parser(
      "Make a recipe faster: try one change at a time, measure it in trainings that run "
      "alternately\n"
      "with and without it, keep it if it is significantly better at the same quality, and report\n"
      "the gain of each change. The recipe and its runs are not modified.\n\n"
      "Example: gallop optimize cifar10 data.path=pictures --budget '20 min'",
      "gallop optimize");
  std::string budget = "20 min";
  parser.add_option("RECIPE", arguments.recipe, "a recipe's name or file")->required();
  parser.add_option("--budget", budget, "time for the search; '20 min' by default");
  parser.add_option(
      "--goal", arguments.goal,
      "time-to-accuracy (default): less time to the recipe's final metric; "
      "throughput: more samples per second with the same mathematics; memory; energy");
  parser
      .add_option("--seeds", arguments.seeds,
                  "maximum number of seeds with which final metrics are compared; 3 by default")
      ->check(CLI::Range(1, 100));
  parser.add_option("--folder", arguments.folder,
                    "folder of the search; an interrupted search in it is continued; "
                    "optimize/RECIPE-GOAL by default");
  parser.add_option("--price", arguments.price, "price of one hour of the machine")
      ->envname("GALLOP_PRICE");
  parser.add_flag("--no-ablation", arguments.no_ablation,
                  "do not measure the best recipe without each of its changes");
  parser.add_flag("--json", arguments.json, "print the report as JSON");
  parser.add_option("--measure", arguments.measure)->group("");
  std::vector<std::string> rest = args;
  arguments.overrides = take_overrides(rest);
  if (!parse_arguments(parser, rest)) return false;
  if (!(arguments.price >= 0)) {
    throw UsageError(fmt::format("--price is {}, but must be at least 0", arguments.price));
  }
  arguments.budget_seconds = parse_budget(budget);
  return true;
}

optimize::Goal parse_goal(const std::string& name) {
  if (const auto goal = optimize::goal_of(name)) return *goal;
  throw UsageError(fmt::format("--goal is time-to-accuracy, throughput, memory or energy, not '{}'",
                               printable(name)));
}

PinnedValues values_of(const optimize::Settings& settings) {
  return {.precision = settings.precision,
          .channels_last = settings.channels_last,
          .loss = settings.loss,
          .batch_size = settings.batch_size,
          .lr = settings.lr};
}

void print_plain(const std::string& name, const Arguments& arguments,
                 const optimize::Settings& plain) {
  fmt::print("{}: goal {}, budget {}; batch size {}, {}{}, {} {}\n", name, arguments.goal,
             format_duration(arguments.budget_seconds), plain.batch_size, plain.precision,
             plain.compiles ? ", compiled" : ", eager", plain.data_threads,
             plain.data_threads == 1 ? "loader thread" : "loader threads");
}

void print_header() {
  fmt::print("{:>7}  {:<44} {:<15} {:<23} {}\n", "", "change", "predicted", "gain", "verdict");
  std::fflush(stdout);
}

void print_trial(const optimize::Trial& trial, double seconds) {
  fmt::print("{:>7}  {:<44} {:<15} {:<23} {}\n", format_duration(seconds), trial.change.name,
             predicted_text(trial), gain_text(trial), verdict_text(trial));
  std::fflush(stdout);
}

std::string page_of(const optimize::Report& report) {
  ReportPage page{.title = optimize::report_headline(report),
                  .facts = {{"goal", name_of(report.goal)},
                            {"search", fmt::format("{} of {}", format_duration(report.seconds),
                                                   format_duration(report.budget_seconds))}},
                  .metrics = {},
                  .svgs = {report_svg(report)}};
  for (const optimize::ReportTable& table : optimize::report_tables(report)) {
    page.tables.push_back({.title = table.title, .rows = table.rows, .note = table.note});
  }
  return to_html(page);
}

void write_report(const optimize::Report& report, const fs::path& folder) {
  write_file_atomically(folder / "report.json", report_json(report) + "\n");
  write_file_atomically(folder / "report.md", report_markdown(report));
  write_file_atomically(folder / "report.svg", report_svg(report));
  write_file_atomically(folder / "report.html", page_of(report));
}

FileLock lock_folder(const fs::path& folder) {
  auto lock = FileLock::try_lock(folder / "lock", "gallop optimize");
  // A page that looks whether it is locked holds it for a moment.
  while (!lock && !track::RunFolder::is_trained(folder)) {
    lock = FileLock::try_lock(folder / "lock", "gallop optimize");
  }
  if (lock) return std::move(*lock);
  throw UsageError(fmt::format("another process is searching in {}; name another --folder",
                               printable(folder.string())));
}

ExitCode measure(const Registries& registries, const Arguments& arguments,
                 const StopRequest& stop) {
  const DistributedContext context = DistributedContext::join();
  measure_training(
      read_recipe(registries, context.collectives(), arguments.recipe, arguments.overrides),
      arguments.measure == "steps", context, stop);
  return ExitCode::kDone;
}

// What identifies a search besides its folder.
std::string question_of(ResolvedRecipe resolved, const Arguments& arguments) {
  return fmt::format("Gallop {}\ngoal: {}\nseeds: {}\n{}", GALLOP_VERSION, arguments.goal,
                     arguments.seeds, resolved.to_yaml(false));
}

}  // namespace

ExitCode run_optimize(const CommandContext& command, const std::vector<std::string>& arguments) {
  StopRequest stop;
  SignalGuard signals(stop, SignalGuard::Says::kNothing);
  Arguments parsed;
  if (!parse(arguments, parsed)) return ExitCode::kDone;
  const Registries& registries = command.registries();
  if (!parsed.measure.empty()) return measure(registries, parsed, stop);
  require_alone("optimize");
  signals.started();

  const optimize::Goal goal = parse_goal(parsed.goal);
  ResolvedRecipe resolved = load_recipe(registries, parsed.recipe, parsed.overrides);
  const std::vector<std::string> given = options_of(parsed.overrides);
  const fs::path folder = parsed.folder.empty()
                              ? fs::path("optimize") / (resolved.name + "-" + parsed.goal)
                              : fs::path(parsed.folder);
  make_folders(folder);
  const FileLock lock = lock_folder(folder);
  ChildExperiments children(
      {.recipe = parsed.recipe, .options = given, .metric = {}, .folder = folder, .goal = goal},
      stop, [](const std::string& line) { print_error("gallop: {}\n", line); });
  optimize::Journal journal(children, folder / "journal.jsonl", question_of(resolved, parsed));
  // For the page of 'gallop ui', until there is a report.
  const fs::path progress = folder / "progress.json";
  try {
    const optimize::Settings plain = journal.settings(given);
    const auto pinned = pinned_options(resolved, given, values_of(plain));
    children.set(pinned, plain.metric);
    if (!parsed.json) {
      print_plain(resolved.name, parsed, plain);
      if (journal.known() > 0) {
        fmt::print("continues with {} results of {}\n", journal.known(),
                   printable(folder.string()));
      }
      print_header();
    }
    const optimize::Report report =
        optimize::search(journal,
                         {.goal = goal,
                          .recipe = parsed.recipe,
                          .given = given,
                          .budget_seconds = parsed.budget_seconds,
                          .seeds = parsed.seeds,
                          .ablate = !parsed.no_ablation,
                          .price_per_hour = parsed.price},
                         [&](const optimize::Report& so_far) {
                           if (!parsed.json) print_trial(so_far.trials.back(), so_far.seconds);
                           write_file_atomically(progress, report_json(so_far) + "\n");
                         });
    const std::vector<std::string> options = optimize::with(pinned, report.options);
    std::vector<std::string> best = optimize::recipe_options(options);
    ResolvedRecipe best_recipe = read_recipe(registries, parsed.recipe, take_overrides(best));
    best_recipe.make_data_path_absolute();
    write_file_atomically(folder / "best.yaml", best_recipe.to_yaml(false));
    write_report(report, folder);
    fs::remove(progress);
    if (parsed.json) {
      fmt::print("{}\n", report_json(report));
    } else {
      fmt::print("\n{}\nthe best recipe: {}\nreport: {}\n", report_text(report),
                 optimize::training_command((folder / "best.yaml").string(),
                                            optimize::processes_of(options)),
                 printable((folder / "report.html").string()));
    }
    return ExitCode::kDone;
  } catch (const optimize::Stopped&) {
    if (!parsed.json) {
      fmt::print("stopped; the same command continues the search in {}\n",
                 printable(folder.string()));
    }
    return ExitCode::kStopped;
  }
}

}  // namespace gallop::app
