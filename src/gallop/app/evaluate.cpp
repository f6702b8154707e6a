#include "gallop/train/evaluate.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/class_reporter.h"
#include "gallop/app/command.h"
#include "gallop/app/device.h"
#include "gallop/app/distributed_context.h"
#include "gallop/app/evaluation_report.h"
#include "gallop/app/json_line.h"
#include "gallop/app/metric_text.h"
#include "gallop/app/print.h"
#include "gallop/app/recipe_components.h"
#include "gallop/app/signals.h"
#include "gallop/app/split_option.h"
#include "gallop/app/trained_model.h"
#include "gallop/base/shell.h"
#include "gallop/base/text.h"
#include "gallop/config/resolve.h"
#include "gallop/train/reports/report.h"

namespace gallop::app {

namespace {

struct Part {
  std::string name;
  const data::Samples* samples;

  bool in_rectangles() const { return !samples->input_sizes(0).empty(); }
};

Part choose_part(const data::DataModule& data, const std::string& wanted) {
  const Part parts[] = {{"validation", data.validation.get()}, {"test", data.test.get()}};
  std::vector<std::string> present;
  for (const auto& part : parts) {
    if (part.samples == nullptr) continue;
    if (part.name == wanted) return part;
    present.push_back(part.name);
  }
  if (wanted.empty() && !present.empty()) return {evaluation_part(data), data.evaluation()};
  if (present.empty()) {
    throw UsageError("the data have neither a validation nor a test split to evaluate on");
  }
  throw UsageError(
      fmt::format("the data have no split '{}'; they have {}", wanted, join_names(present, "and")));
}

std::string percent(double share) { return fmt::format("{:.2f} %", 100 * share); }

// The samples of an evaluation, each of which may have several targets.
int64_t samples_in(const Part& part, const train::Evaluation& evaluation) {
  return part.samples->size() - evaluation.skipped;
}

nlohmann::ordered_json numbers_of(const Part& part, const train::Evaluation& evaluation) {
  const auto& tally = evaluation.tally;
  nlohmann::ordered_json object{
      {"samples", samples_in(part, evaluation)}, {"targets", tally.count}, {"loss", tally.loss()}};
  if (evaluation.has_classes) {
    object["accuracy"] = tally.accuracy();
    object["top5"] = tally.top5_accuracy();
  }
  object["skipped"] = evaluation.skipped;
  for (const train::MetricValue& metric : evaluation.metrics) {
    object[metric.name] = metric_json(metric);
  }
  if (const auto& one = evaluation.one_view) {
    object["one_view"] = {
        {"loss", one->loss()}, {"accuracy", one->accuracy()}, {"top5", one->top5_accuracy()}};
  }
  return object;
}

void print_numbers(const train::Evaluation& evaluation) {
  const auto& tally = evaluation.tally;
  const auto& one = evaluation.one_view;
  const auto beside = [&](const std::string& text) {
    return one ? fmt::format("  (one view {})", text) : "";
  };
  const train::Tally alone = one.value_or(train::Tally());
  fmt::print("  loss      {}{}\n", metric_text(tally.loss()), beside(metric_text(alone.loss())));
  if (evaluation.has_classes) {
    fmt::print("  accuracy  {}{}\n", percent(tally.accuracy()), beside(percent(alone.accuracy())));
    fmt::print("  top-5     {}{}\n", percent(tally.top5_accuracy()),
               beside(percent(alone.top5_accuracy())));
  }
  for (const train::MetricValue& metric : evaluation.metrics) {
    fmt::print("  {:<9} {}\n", printable(metric.name), metric_text(metric));
  }
}

// "30 images", or "30 images with 7,200 targets" if a sample does not have exactly one.
std::string counts_text(const Part& part, const train::Evaluation& evaluation,
                        const data::Signature& inputs) {
  const int64_t samples = samples_in(part, evaluation);
  std::string text = fmt::format("{} {}", format_count(samples), samples_of(inputs));
  const int64_t targets = evaluation.tally.count;
  if (targets != samples) text += fmt::format(" with {} targets", format_count(targets));
  return text;
}

using Runs = std::vector<TrainedModel>;

void print_json(const Runs& runs, const Part& part, const train::EnsembleEvaluation& evaluation) {
  for (size_t i = 0; i < runs.size(); ++i) {
    nlohmann::ordered_json object{{"run", runs[i].folder.string()},
                                  {"step", runs[i].step()},
                                  {"split", part.name},
                                  {"part", part.name}};
    object.update(numbers_of(part, evaluation.each[i]));
    if (runs.size() == 1) object["seconds"] = evaluation.ensemble.seconds;
    fmt::print("{}\n", json_line(object));
  }
  if (runs.size() == 1) return;
  nlohmann::ordered_json object{
      {"ensemble", runs.size()}, {"split", part.name}, {"part", part.name}};
  object.update(numbers_of(part, evaluation.ensemble));
  object["seconds"] = evaluation.ensemble.seconds;
  fmt::print("{}\n", json_line(object));
}

void print(const Runs& runs, const Part& part, const train::EnsembleEvaluation& evaluation) {
  for (size_t i = 0; i < runs.size(); ++i) {
    fmt::print("{} at step {}, {} split{}, {}\n", runs[i].folder.string(),
               format_count(runs[i].step()), part.name,
               part.in_rectangles() ? " in rectangles" : "",
               counts_text(part, evaluation.each[i], runs[i].inputs));
    print_numbers(evaluation.each[i]);
  }
  const train::Evaluation& ensemble = evaluation.ensemble;
  if (runs.size() > 1) {
    fmt::print("mean of the {} of {} models\n",
               runs.front().inputs.targets.empty() ? "probabilities" : "outputs", runs.size());
    print_numbers(ensemble);
  }
  if (ensemble.skipped > 0) {
    fmt::print("  skipped   {} broken samples\n", format_count(ensemble.skipped));
  }
  fmt::print("  time      {}\n", format_duration(ensemble.seconds));
}

// Ensembles must be comparable.
void check_alike(const Runs& runs) {
  const TrainedModel& first = runs.front();
  if (runs.size() > 1 && first.inputs.views > 1) {
    throw UsageError(
        "embeddings of several models have no mean, as each model has a space of its own; evaluate "
        "one model, and one of its checkpoints, at a time");
  }
  for (const TrainedModel& run : runs) {
    try {
      check_fits(first.inputs, run.inputs);
    } catch (const DataError&) {
      throw UsageError(
          fmt::format("{} and {} were trained on different data: an ensemble needs models "
                      "with the same inputs and outputs",
                      first.folder.string(), run.folder.string()));
    }
    if (normalize_alike(first.inputs, run.inputs)) continue;
    throw UsageError(fmt::format(
        "{} and {} normalize images differently; train both with the same data.mean and "
        "data.std",
        first.folder.string(), run.folder.string()));
  }
}

// The folder of the report; `wanted` is empty for the default.
fs::path report_folder(const Runs& runs, const std::string& wanted) {
  if (!wanted.empty()) return wanted;
  if (runs.size() == 1) return track::evaluation_report_of(runs.front().folder);
  throw UsageError(fmt::format("--report: an ensemble of {} models needs a folder: --report FOLDER",
                               runs.size()));
}

// The metrics that a report shows, and others that can be plotted.
train::Metrics drawn_metrics(const train::MetricSet& set, const train::Report& report) {
  train::Metrics metrics = train::report_metrics(report, set.task());
  const size_t own = metrics.size();
  for (const auto& reported : set.reported()) {
    const auto is_same = [&](const auto& metric) { return metric->name() == reported->name(); };
    if (std::none_of(metrics.begin(), metrics.begin() + static_cast<ptrdiff_t>(own), is_same)) {
      metrics.push_back(reported);
    }
  }
  return metrics;
}

// The checkpoints without duplicates, in the given order.
std::vector<std::string> all_checkpoints(const std::string& runs,
                                         const std::vector<std::string>& names,
                                         const std::vector<std::string>& wanted) {
  std::vector<std::string> all;
  for (const auto& name : names) {
    for (const auto& checkpoint : wanted) {
      for (const auto& folder : find_checkpoints(runs, name, checkpoint)) {
        if (std::find(all.begin(), all.end(), folder) == all.end()) all.push_back(folder.string());
      }
    }
  }
  return all;
}

// Adds metrics as in the recipe's train.metrics: names, or maps from a name to its options. Throws
// UsageError for an unknown metric or option.
train::MetricChoice with_metrics(train::MetricChoice choice,
                                 const std::vector<std::string>& texts) {
  const std::string option = "--metric";
  config::Node map{.kind = config::Node::Kind::kMap};
  config::Node& list = map.at_or_add(option, {});
  list.kind = config::Node::Kind::kList;
  for (const std::string& text : texts) {
    list.items.push_back(config::parse_override_value(text, option));
  }
  config::ComponentList added(choice.further.catalog());
  config::Problems problems;
  config::read_fields(
      map,
      [&](config::Visitor& visitor) { visitor.field({.name = option.c_str(), .help = ""}, added); },
      problems);
  if (!problems.empty()) {
    const config::Problem& first = problems.list().front();
    // "--metric.0.f1.average"
    const size_t of_metric = first.key.find('.', option.size() + 1);
    throw UsageError(fmt::format(
        "{}{}: {}", option,
        of_metric == std::string::npos ? "" : " " + printable(first.key.substr(of_metric + 1)),
        printable(first.message)));
  }
  std::move(added.items.begin(), added.items.end(), std::back_inserter(choice.further.items));
  return choice;
}

// Moves the models to the device, in the memory format of their runs.
std::vector<train::Member> move_to(c10::Device device, const Runs& runs) {
  std::vector<train::Member> members;
  for (const TrainedModel& run : runs) {
    run.model->to(device, run.recipe.recipe.train.channels_last == "true");
    members.push_back({*run.model, run.precision()});
  }
  return members;
}

struct EvaluateArguments {
  std::string runs_folder = "runs", split;
  std::vector<std::string> names, checkpoints = {"best"}, metrics;
  std::vector<Override> overrides;
  bool reports = false, json = false;
  bool has_other_data = false;
  std::string report;  ///< Folder; empty: that of the run.
};

void check_names(const EvaluateArguments& arguments) {
  if (!arguments.names.empty()) return;
  if (arguments.report.empty()) {
    throw UsageError("specify a run to evaluate; for example: gallop evaluate fashion-mnist-1");
  }
  throw UsageError(
      fmt::format("--report reads '{0}' as the folder of the report, which leaves no run to "
                  "evaluate. If it is the run: gallop evaluate {1} --report. If it is the folder: "
                  "gallop evaluate RUN --report {1}",
                  printable(arguments.report), shell_word(arguments.report)));
}

// False if help was requested and printed.
bool parse(const std::vector<std::string>& args, EvaluateArguments& arguments) {
  CLI::App parser(
      "Evaluate trained models on the data of their recipe or on other data of the same kind; "
      "several models also as an ensemble (mean of probabilities).\n\n"
      "Example: gallop evaluate fashion-mnist-1 --split test",
      "gallop evaluate");
  std::string other_data;
  parser.add_option("RUN", arguments.names, "run names or folders, or checkpoint folders");
  parser.add_option("--data", other_data, "other data instead of the recipe's data.path");
  add_split_option(parser, arguments.split, "validation or test");
  parser
      .add_option("--checkpoint", arguments.checkpoints,
                  "checkpoint: best, latest, a step number or snapshots; may be repeated")
      ->expected(1)
      ->take_all();
  parser
      .add_option("--metric", arguments.metrics,
                  "a metric to show besides those of the recipe, such as f1 or \"{f1: {average: "
                  "micro}}\"; may be repeated")
      ->expected(1)
      ->take_all();
  parser.add_option("--runs", arguments.runs_folder, "folder of the runs");
  const CLI::Option* const reports =
      parser
          .add_option("--report", arguments.report,
                      "write a report (report.html, report.json, figures as SVG files) to this "
                      "folder; default RUN/report")
          ->option_text("[FOLDER]")
          ->expected(0, 1);
  parser.add_flag("--json", arguments.json, "print JSON");
  std::vector<std::string> rest = args;
  arguments.overrides = take_overrides(rest);
  if (!parse_arguments(parser, rest)) return false;
  arguments.reports = reports->count() > 0;
  check_names(arguments);
  arguments.has_other_data = !other_data.empty();
  if (arguments.has_other_data) arguments.overrides.push_back({"data.path", other_data});
  return true;
}

}  // namespace

ExitCode run_evaluate(const CommandContext& command, const std::vector<std::string>& arguments) {
  EvaluateArguments parsed;
  if (!parse(arguments, parsed)) return ExitCode::kDone;
  require_alone("evaluate");

  StopRequest stop;
  const SignalGuard signals(stop);
  const Registries& registries = command.registries();
  Runs runs;
  for (const auto& folder : all_checkpoints(parsed.runs_folder, parsed.names, parsed.checkpoints)) {
    runs.push_back(
        open_trained_model(registries, parsed.runs_folder, folder, "", parsed.overrides));
  }
  check_alike(runs);
  const Hardware hardware = read_hardware();
  const TrainedModel& first = runs.front();
  const Recipe& recipe = first.recipe.recipe;
  set_compute_threads(recipe, hardware);
  const c10::Device device = choose_device(recipe.train.device, recipe.train.deterministic).device;
  const Registries& own = *recipe.registries;
  const auto data = open_data_for(own, recipe, first.inputs);
  if (parsed.has_other_data) {
    for (const std::string& note : data->notes) print_error("gallop: note: {}\n", printable(note));
  }
  const Part part = choose_part(*data, parsed.split);
  for (const TrainedModel& run : runs) {
    require_rectangles(run.recipe.recipe, part.samples, *run.model);
  }
  const train::Task& task = first.task();
  auto metric_set = std::make_shared<const train::MetricSet>(
      own.metrics, with_metrics(metrics_for(recipe.metric, task), parsed.metrics),
      metric_task(first.inputs, own.tasks));
  std::optional<fs::path> report;
  std::optional<ClassReporter> mistakes;
  std::optional<OverlayReporter> overlays;
  train::Metrics drawn;
  if (parsed.reports) {
    report = report_folder(runs, parsed.report);
    prepare_report_folder(*report, /*is_of_run=*/parsed.report.empty());
    drawn = drawn_metrics(*metric_set, task.report);
    if (ClassReporter::fits(first.inputs, task)) mistakes.emplace(first.inputs);
    if (OverlayReporter::fits(first.inputs, task)) overlays.emplace(first.inputs);
  }
  const auto loss = build_loss(own, recipe, first.inputs, *part.samples, device);
  const auto evaluation = train::evaluate_ensemble(
      move_to(device, runs), *part.samples,
      {.loader = data::evaluation_loader(recipe.data, hardware.cores),
       .device = device,
       .views = train::test_views(recipe.evaluate, model_task(first.inputs, own.tasks)),
       .see =
           [&](const data::Batch& batch, const at::Tensor& logits) {
             if (mistakes) mistakes->add(batch, logits);
             if (overlays) overlays->add(batch, logits);
           },
       .metrics = std::move(metric_set),
       .loss = evaluation_loss(loss, own, recipe, first.inputs, *part.samples, device),
       .ignored = loss->traits().ignored,
       .drawn = std::move(drawn)},
      stop);
  if (!evaluation) return ExitCode::kStopped;
  if (report) {
    write_report(
        *report, runs, {.name = part.name, .samples = samples_in(part, evaluation->ensemble)}, task,
        evaluation->ensemble,
        {.mistakes = mistakes ? &*mistakes : nullptr, .overlays = overlays ? &*overlays : nullptr});
  }
  if (parsed.json) {
    print_json(runs, part, *evaluation);
  } else {
    print(runs, part, *evaluation);
    if (report) {
      fmt::print("{}  report    {}\n", confusion_text(evaluation->ensemble.figures),
                 (*report / "report.html").string());
    }
  }
  return ExitCode::kDone;
}

}  // namespace gallop::app
