#include "gallop/train/evaluate.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/command.h"
#include "gallop/app/device.h"
#include "gallop/app/session.h"
#include "gallop/app/signals.h"
#include "gallop/app/trained_run.h"
#include "gallop/base/text.h"

namespace gallop::app {

namespace {

struct Part {
  std::string name;
  const data::Samples* samples;
};

Part choose_part(const data::TrainingData& data, const std::string& wanted) {
  const Part parts[] = {{"validation", data.validation.get()}, {"test", data.test.get()}};
  std::vector<std::string> present;
  for (const auto& part : parts) {
    if (part.samples == nullptr) continue;
    if (part.name == wanted) return part;
    present.push_back(part.name);
  }
  if (wanted.empty() && !present.empty()) return {evaluation_part(data), data.evaluation()};
  if (present.empty()) {
    throw UsageError("the data have neither a validation nor a test part to evaluate on");
  }
  throw UsageError(
      fmt::format("the data have no part '{}'; they have {}", wanted, join_names(present, "and")));
}

std::string percent(double share) { return fmt::format("{:.2f} %", 100 * share); }

void print(const TrainedRun& run, const Part& part, const train::Evaluation& evaluation,
           bool json) {
  const auto& tally = evaluation.tally;
  const bool images = run.inputs.kind == "images";
  if (json) {
    nlohmann::ordered_json object{{"run", run.folder.string()},
                                              {"step", run.step},
                                              {"part", part.name},
                                              {"targets", tally.count},
                                              {"loss", tally.loss()},
                                              {"accuracy", tally.accuracy()},
                                              {"top5", tally.top5_accuracy()},
                                              {"skipped", evaluation.skipped},
                                              {"seconds", evaluation.seconds}};
    if (const auto& one = evaluation.one_view) {
      object["one_view"] = {
          {"loss", one->loss()}, {"accuracy", one->accuracy()}, {"top5", one->top5_accuracy()}};
    }
    fmt::print("{}\n", object.dump());
    return;
  }
  fmt::print("{} at step {}, {} part, {} {}\n", run.folder.string(), format_count(run.step),
             part.name, format_count(tally.count), images ? "images" : "tokens");
  const auto& one = evaluation.one_view;
  const auto beside = [&](const std::string& text) {
    return one ? fmt::format("  (one view {})", text) : "";
  };
  const train::Tally alone = one.value_or(train::Tally());
  fmt::print("  loss      {:.4f}{}\n", tally.loss(), beside(fmt::format("{:.4f}", alone.loss())));
  fmt::print("  accuracy  {}{}\n", percent(tally.accuracy()), beside(percent(alone.accuracy())));
  fmt::print("  top-5     {}{}\n", percent(tally.top5_accuracy()),
             beside(percent(alone.top5_accuracy())));
  if (evaluation.skipped > 0) {
    fmt::print("  skipped   {} broken samples\n", format_count(evaluation.skipped));
  }
  fmt::print("  time      {}\n", format_duration(evaluation.seconds));
}

}  // namespace

ExitCode run_evaluate(const std::vector<std::string>& arguments) {
  CLI::App parser(
      "Measure a trained model on the data of its recipe, or on other data of the same kind.\n\n"
      "Example: gallop evaluate fashion-mnist-1 --part test",
      "gallop evaluate");
  std::string run_name, runs = "runs", checkpoint = "best", wanted_part, other_data;
  bool json = false;
  parser.add_option("RUN", run_name, "a run's name or folder")->required();
  parser.add_option("--data", other_data, "other data in place of the recipe's data.path");
  parser.add_option("--part", wanted_part, "validation or test");
  parser.add_option("--checkpoint", checkpoint, "best, latest or a step");
  parser.add_option("--runs", runs, "folder of the runs");
  parser.add_flag("--json", json, "print JSON");
  std::vector<std::string> rest = arguments;
  std::vector<Override> overrides = take_overrides(rest);
  if (!parse_arguments(parser, rest)) return ExitCode::kDone;
  if (!other_data.empty()) overrides.push_back({"data.path", other_data});

  StopRequest stop;
  const SignalGuard signals(stop);
  const Families families;
  TrainedRun run = open_trained_run(families, runs, run_name, checkpoint, overrides);
  const Hardware hardware = read_hardware();
  set_compute_threads(run.recipe.recipe, hardware);
  const c10::Device device = choose_device(run.recipe.recipe.train.device).device;
  run.model->to(device, run.recipe.recipe.train.channels_last == "true");
  const data::TrainingData data = open_data_for(families, run.recipe.recipe, run.inputs);
  const Part part = choose_part(data, wanted_part);
  const auto evaluation =
      train::evaluate(*run.model, *part.samples,
                      {.loader = data::evaluation_loader(run.recipe.recipe.data, hardware.cores),
                       .precision = run.precision(),
                       .device = device,
                       .views = train::test_views(run.recipe.recipe.evaluate, run.inputs.task())},
                      stop);
  if (!evaluation) return ExitCode::kStopped;
  print(run, part, *evaluation, json);
  return ExitCode::kDone;
}

}  // namespace gallop::app
