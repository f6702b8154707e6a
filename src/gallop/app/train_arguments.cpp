#include "gallop/app/train_arguments.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/non_negative.h"
#include "gallop/app/resume_options.h"
#include "gallop/base/shell.h"
#include "gallop/base/text.h"

namespace gallop::app {

ConsoleStyle TrainArguments::style() const {
  if (json) return ConsoleStyle::kJson;
  return quiet ? ConsoleStyle::kQuiet : default_console_style();
}

namespace {

train::Interval parse_until(const std::string& text) {
  using Unit = train::Interval::Unit;
  const train::Interval until = train::Interval::parse(text);
  if (until.unit == Unit::kSteps || until.unit == Unit::kEpochs) return until;
  throw UsageError(fmt::format("--until must be in steps or epochs, not '{}'", printable(text)));
}

// `--target price` as data.target=price.
void add_targets(const std::vector<std::string>& targets, std::vector<Override>& overrides) {
  if (targets.empty()) return;
  const auto quoted = [](const std::string& name) { return nlohmann::json(name).dump(); };
  if (targets.size() == 1) {
    overrides.push_back({"data.target", quoted(targets.front())});
    return;
  }
  std::string list;
  for (const std::string& name : targets) list += (list.empty() ? "" : ", ") + quoted(name);
  overrides.push_back({"data.targets", "[" + list + "]"});
}

// Throws UsageError for options that contradict or need each other.
void check(const TrainArguments& arguments) {
  if (!arguments.recipe.empty() && !arguments.resume.empty()) {
    const std::string run = shell_word(arguments.resume);
    throw UsageError(fmt::format(
        "--resume takes no recipe, as the run has its own; remove '{}' to continue the run: gallop "
        "train --resume {}. To train the recipe from the run's newest checkpoint: gallop train {} "
        "--from {}",
        printable(arguments.recipe), run, shell_word(arguments.recipe), run));
  }
  if (arguments.recipe.empty() && arguments.resume.empty()) {
    throw UsageError(
        "specify either a recipe or --resume RUN; for example: gallop train fashion-mnist");
  }
  if (!arguments.resume.empty() && !arguments.options.name.empty()) {
    throw UsageError(
        "--resume continues a run under its own name; to begin a new run at its newest checkpoint: "
        "--from RUN --name NAME, with a recipe");
  }
  if (arguments.options.resume_if_there && arguments.options.name.empty()) {
    throw UsageError("--continue needs the --name of the run");
  }
  if (arguments.options.allow_changed_data && arguments.resume.empty() &&
      !arguments.options.resume_if_there) {
    throw UsageError(
        "--allow-changed-data requires --resume, or --name and "
        "--continue");
  }
  if (!arguments.resume.empty() && !arguments.options.from.empty()) {
    throw UsageError("--resume continues an existing run; --from requires a new one");
  }
  if (arguments.options.share && !arguments.options.from.empty()) {
    throw UsageError("--from and --share are mutually exclusive");
  }
  if (arguments.options.share && !arguments.resume.empty()) {
    throw UsageError("--share requires a new run, or --name and --continue");
  }
}

}  // namespace

bool parse_train(const std::vector<std::string>& args, TrainArguments& arguments) {
  CLI::App parser(
      "Train a model from a recipe: the name of one that comes with Gallop, or a YAML file. Any "
      "option\n"
      "of the recipe can be changed on the command line.\n\n"
      "Example: gallop train cifar10 data.path=pictures --optimizer.lr 0.2\n"
      "         gallop train houses.csv --target price\n"
      "         gallop train --resume runs/cifar10-1\n\n"
      "'gallop recipes options' lists every option.",
      "gallop train");
  parser.add_option("RECIPE", arguments.recipe,
                    "a recipe's name or file, or a table: a .csv, .tsv, .jsonl or .parquet file");
  std::vector<std::string> targets;
  parser
      .add_option("--target", targets,
                  "COLUMN of a table to predict (data.target); may be repeated (data.targets)")
      ->expected(1)
      ->take_all();
  parser.add_option("--resume", arguments.resume, "RUN: continue this run, by name or folder");
  parser.add_option("--name", arguments.options.name, "run name; RECIPE-NUMBER by default");
  parser.add_flag("--continue", arguments.options.resume_if_there,
                  "with --name: resume the run if it exists, else start it");
  parser.add_flag("--allow-changed-data", arguments.options.allow_changed_data,
                  "resume although data files were added, removed or changed");
  parser.add_option("--from", arguments.options.from,
                    "RUN: start from this run's newest checkpoint, by name or folder");
  parser
      .add_option("--share", arguments.options.share,
                  "COUNT: start from a checkpoint of a run in the same folder whose training is "
                  "bit-identical up to there; keep this many checkpoints for other runs")
      ->check(non_negative());
  std::string until;
  parser.add_option("--until", until,
                    "stop and save at this point, to be continued later: '3 epochs', '500 steps'");
  parser.add_option("--runs", arguments.options.runs, "folder of the runs");
  track::mlflow::Target mlflow;
  auto* to_mlflow = parser.add_option(
      "--mlflow", mlflow.address, "ADDRESS: push the run to this MLflow server while it trains");
  parser.add_option("--experiment", mlflow.experiment, "MLflow experiment; gallop by default")
      ->needs(to_mlflow);
  parser.add_flag("--show-config", arguments.show_config,
                  "print the resolved recipe with the origin of each value, and exit");
  auto* quiet = parser.add_flag("--quiet", arguments.quiet, "print the final table only");
  parser.add_flag("--json", arguments.json, "print one JSON object per line")->excludes(quiet);
  parser.footer(describe_resume_rules());
  std::vector<std::string> rest = args;
  arguments.overrides = take_overrides(rest);
  if (!parse_arguments(parser, rest)) return false;
  add_targets(targets, arguments.overrides);
  if (to_mlflow->count() > 0) {
    track::mlflow::check_address(mlflow.address);
    arguments.options.mlflow = mlflow;
  }
  check(arguments);
  if (!until.empty()) arguments.options.until = parse_until(until);
  return true;
}

}  // namespace gallop::app
