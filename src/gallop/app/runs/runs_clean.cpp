#include <algorithm>
#include <map>
#include <set>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/batch_images.h"
#include "gallop/app/command.h"
#include "gallop/app/data_report.h"
#include "gallop/app/distributed_context.h"
#include "gallop/app/evaluation_report.h"
#include "gallop/app/held_out.h"
#include "gallop/app/output_file.h"
#include "gallop/app/runs/subcommands.h"
#include "gallop/app/runs/which_runs.h"
#include "gallop/app/signals.h"
#include "gallop/app/split_option.h"
#include "gallop/base/text.h"
#include "gallop/data/loader.h"
#include "gallop/data/quality/data_quality.h"
#include "gallop/data/quality/image_quality.h"
#include "gallop/track/evaluation_report.h"
#include "gallop/track/run_locations.h"
#include "gallop/train/reports/confusions.h"

namespace gallop::app {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShown = 20;      // Errors in the terminal.
constexpr size_t kPictured = 120;  // Errors with pictures.
constexpr int kPictureSide = 128;
constexpr size_t kPairs = 10;  // Pairs of given and true labels.

struct Arguments {
  WhichRuns which;
  std::string checkpoint = "best", split, rank = "self-confidence", filter = "prune-by-noise-rate",
              report, json_file;
  int64_t limit = 0;
  bool writes_json = false;
};

// False if help was requested and printed.
bool parse(const std::vector<std::string>& args, Arguments& arguments) {
  CLI::App parser(
      "Find samples that are likely to have a wrong label, by confident learning from predictions "
      "of\n"
      "samples that a run was not trained on: those of its validation split or, with\n"
      "data.folds, of the validation splits of all folds and seeds, whose runs must be in the\n"
      "same folder. Several predictions of a sample are averaged. Writes a report and a list\n"
      "for data.exclude.\n\n"
      "Example: gallop runs clean cifar10-1",
      "gallop runs clean");
  arguments.which.add_to(parser, /*several=*/true);
  parser.add_option("--checkpoint", arguments.checkpoint, "best, latest or a step number");
  add_split_option(parser, arguments.split,
                   "split to examine: train, validation or test; validation by default");
  parser
      .add_option("--rank", arguments.rank,
                  "order of the list: self-confidence (probability of the given label) or "
                  "normalized-margin (to the most likely other one)")
      ->check(CLI::IsMember({"self-confidence", "normalized-margin"}));
  parser
      .add_option("--filter", arguments.filter,
                  "samples to list: prune-by-noise-rate (as many as estimated) or "
                  "predicted-neq-given (all whose label is not the predicted one)")
      ->check(CLI::IsMember({"prune-by-noise-rate", "predicted-neq-given"}));
  parser
      .add_option("--limit", arguments.limit, "maximum number of samples to list; by default all")
      ->check(CLI::PositiveNumber);
  parser.add_option("--report", arguments.report, "folder of the report; default RUN/label-errors");
  const CLI::Option* const json =
      parser.add_option("--json", arguments.json_file, "print JSON, or write it to a file")
          ->option_text("[FILE]")
          ->expected(0, 1);
  if (!parse_arguments(parser, args)) return false;
  arguments.writes_json = json->count() > 0;
  return true;
}

// A label that is likely to be wrong.
struct LabelError {
  PredictedSample sample;
  std::string name;
  int64_t given = 0, predicted = 0;
  double given_probability = 0, predicted_probability = 0, quality = 0;
};

struct Cleaned {
  std::string basis;
  std::vector<std::string> classes;
  data::LabelErrors found;
  std::vector<LabelError> errors;
  int64_t samples = 0, skipped = 0;

  int64_t estimated() const {
    int64_t count = 0;
    for (size_t i = 0; i < found.joint.size(); ++i) {
      for (size_t j = 0; j < found.joint.size(); ++j) count += i == j ? 0 : found.joint[i][j];
    }
    return count;
  }
};

// "; the mean of 3 models for each sample"
std::string describe_models(const std::vector<int64_t>& models) {
  const auto [fewest, most] = std::minmax_element(models.begin(), models.end());
  if (models.empty() || *most == 1) return {};
  return fmt::format(
      "; the mean of {} models for each sample",
      *fewest == *most ? std::to_string(*most) : fmt::format("{} to {}", *fewest, *most));
}

// "out-of-fold predictions of all 4 folds"
std::string describe_basis(const std::vector<PredictedSplit>& splits) {
  const PredictedSplit& first = splits.front();
  const data::DataConfig& config = first.run.recipe.recipe.data;
  if (std::any_of(splits.begin(), splits.end(),
                  [](const PredictedSplit& one) { return one.part == data::Part::kTrain; })) {
    return "in-sample predictions of the training split: the model has learned these labels, and "
           "may have learned wrong ones; use data.folds for all training samples";
  }
  if (config.folds > 0 && first.part == data::Part::kValidation) {
    std::map<int64_t, std::set<int64_t>> folds_of_seed;
    bool has_all = false;
    for (const PredictedSplit& one : splits) {
      std::set<int64_t>& folds = folds_of_seed[one.run.recipe.recipe.train.seed];
      folds.insert(one.run.recipe.recipe.data.fold);
      has_all = has_all || static_cast<int64_t>(folds.size()) == config.folds;
    }
    if (has_all) return fmt::format("out-of-fold predictions of all {} folds", config.folds);
    if (folds_of_seed.size() > 1) {
      return fmt::format(
          "out-of-fold predictions of some of {} folds of {} seeds; samples of the other folds are "
          "not examined",
          config.folds, folds_of_seed.size());
    }
    return fmt::format(
        "out-of-fold predictions of {} of {} folds; the samples of the other folds are not "
        "examined",
        folds_of_seed.begin()->second.size(), config.folds);
  }
  return fmt::format(
      "held-out predictions of the {} split; use data.folds for the training samples",
      data::kPartNames[static_cast<size_t>(first.part)]);
}

// A run must not count twice in the mean.
void check_different(const std::vector<PredictedSplit>& splits) {
  std::set<fs::path> seen;
  for (const PredictedSplit& one : splits) {
    if (seen.insert(fs::canonical(one.run.folder)).second) continue;
    throw UsageError(fmt::format("{} is given twice", one.run.folder.string()));
  }
}

// By the samples of all splits, as names for data.exclude must tell them apart.
data::SampleNames names_of(const data::DataModule& data) {
  std::vector<std::string> descriptions;
  for (size_t i = 0; i < data::kParts; ++i) {
    const data::Samples* const samples = data.split(static_cast<data::Part>(i));
    for (int64_t at = 0; samples != nullptr && at < samples->size(); ++at) {
      descriptions.push_back(samples->describe(at));
    }
  }
  return data::SampleNames(descriptions);
}

Cleaned clean(const std::vector<PredictedSplit>& splits, const SplitPredictions& predictions,
              const Arguments& arguments) {
  const auto quality = arguments.rank == "self-confidence" ? data::LabelQuality::kSelfConfidence
                                                           : data::LabelQuality::kNormalizedMargin;
  const auto filter = arguments.filter == "predicted-neq-given"
                          ? data::LabelFilter::kPredictedNeqGiven
                          : data::LabelFilter::kPruneByNoiseRate;
  const data::LabeledPredictions& values = predictions.values;
  Cleaned result{.basis = describe_basis(splits) + describe_models(predictions.models),
                 .classes = splits.front().run.inputs.classes,
                 .found = data::find_label_errors(values, quality, filter),
                 .errors = {},
                 .samples = values.size(),
                 .skipped = predictions.skipped};
  const data::SampleNames names = names_of(*splits.front().data);
  for (const int64_t i : result.found.samples) {
    const auto at = static_cast<size_t>(i);
    const int64_t given = values.labels[at], predicted = values.predicted(i);
    result.errors.push_back(
        {.sample = predictions.samples[at],
         .name = names.shorten(
             predictions.samples[at].split->samples().describe(predictions.samples[at].index)),
         .given = given,
         .predicted = predicted,
         .given_probability = double{values.row(i)[given]},
         .predicted_probability = double{values.row(i)[predicted]},
         .quality = data::label_quality(values, i, quality)});
  }
  if (arguments.limit > 0 && arguments.limit < static_cast<int64_t>(result.errors.size())) {
    result.errors.resize(static_cast<size_t>(arguments.limit));
  }
  return result;
}

data::Image picture_of(const PredictedSample& sample) {
  const data::Signature& inputs = sample.split->run.inputs;
  data::Loader loader(sample.split->samples(), {.batch = 1, .shuffle = false, .one_epoch = true},
                      {.position = sample.index});
  const auto batch = loader.next();
  if (!batch || batch->size() == 0) return {};
  return data::thumbnail_of(image_of(batch->input()[0], inputs), kPictureSide);
}

data::QualityFinding finding_of(const Cleaned& cleaned, bool has_pictures) {
  data::QualityFinding finding{
      .kind = "label-errors",
      .title = "Label errors",
      .text = fmt::format("{} of {} labels are likely to be wrong",
                          format_count(static_cast<int64_t>(cleaned.found.samples.size())),
                          format_count(cleaned.samples))};
  for (const LabelError& error : cleaned.errors) {
    finding.excluded.push_back(error.name);
    data::FoundSample sample{
        .part = error.sample.split->part,
        .name = error.name,
        .label = cleaned.classes[static_cast<size_t>(error.given)],
        .value = fmt::format("predicted {} ({:.2f})",
                             cleaned.classes[static_cast<size_t>(error.predicted)],
                             error.predicted_probability)};
    if (has_pictures && finding.groups.size() < kPictured) {
      sample.picture = picture_of(error.sample);
    }
    finding.groups.push_back({std::move(sample)});
  }
  return finding;
}

// The most frequent pairs of given and true labels.
ReportPage::Table joint_table(const Cleaned& cleaned) {
  ReportPage::Table table{.title = "Estimated label errors",
                          .rows = {{"given label", "true label", "samples"}}};
  for (const auto& [given, truth, count] :
       train::most_frequent_confusions(cleaned.found.joint, kPairs)) {
    table.rows.push_back({cleaned.classes[given], cleaned.classes[truth], format_count(count)});
  }
  return table;
}

std::string json_of(const Cleaned& cleaned, const std::vector<PredictedSplit>& splits,
                    const Arguments& arguments) {
  Json runs = Json::array(), errors = Json::array();
  for (const PredictedSplit& one : splits) {
    runs.push_back({{"run", one.run.folder.string()}, {"step", one.run.step()}});
  }
  for (const LabelError& error : cleaned.errors) {
    errors.push_back({{"name", error.name},
                      {"split", data::kPartNames[static_cast<size_t>(error.sample.split->part)]},
                      {"part", data::kPartNames[static_cast<size_t>(error.sample.split->part)]},
                      {"given", cleaned.classes[static_cast<size_t>(error.given)]},
                      {"predicted", cleaned.classes[static_cast<size_t>(error.predicted)]},
                      {"given_probability", error.given_probability},
                      {"predicted_probability", error.predicted_probability},
                      {"quality", error.quality}});
  }
  const Json json{{"runs", std::move(runs)},
                  {"basis", cleaned.basis},
                  {"rank", arguments.rank},
                  {"filter", arguments.filter},
                  {"samples", cleaned.samples},
                  {"skipped", cleaned.skipped},
                  {"classes", cleaned.classes},
                  {"joint", cleaned.found.joint},
                  {"found", cleaned.found.samples.size()},
                  {"errors", std::move(errors)}};
  // Names may not be valid UTF-8, which JSON requires.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void write_label_report(const fs::path& folder, const Cleaned& cleaned, const std::string& json,
                        const PredictedSplit& first, const data::QualityFinding& finding) {
  track::clear_report_folder(folder);
  ReportPage page{.title = fmt::format("Label errors of {}", track::run_name_of(first.run.folder)),
                  .facts = {{"Basis", cleaned.basis},
                            {"Samples", format_count(cleaned.samples)},
                            {"Estimated label errors", format_count(cleaned.estimated())},
                            {"Listed", format_count(static_cast<int64_t>(cleaned.errors.size()))}},
                  .tables = {joint_table(cleaned)}};
  page.sections.push_back(section_of(finding, folder));
  write_excluded(folder, finding);
  write_file_atomically(folder / "report.html", to_html(page));
  write_file_atomically(folder / "report.json", json);
}

void print(const Cleaned& cleaned, const std::vector<PredictedSplit>& splits,
           const fs::path& folder) {
  std::vector<std::string> runs;
  for (const PredictedSplit& one : splits) {
    runs.push_back(fmt::format("{} at step {}", printable(track::run_name_of(one.run.folder)),
                               format_count(one.run.step())));
  }
  fmt::print("runs       {}\n", join_names(runs, "and"));
  fmt::print("basis      {}\n", cleaned.basis);
  fmt::print("samples    {}\n", format_count(cleaned.samples));
  if (cleaned.skipped > 0) fmt::print("skipped    {} broken\n", format_count(cleaned.skipped));
  fmt::print("estimated  {} label errors\n", format_count(cleaned.estimated()));
  fmt::print("found      {}{}\n", format_count(static_cast<int64_t>(cleaned.found.samples.size())),
             cleaned.errors.empty() ? "" : ", the most likely first:");
  const auto name = [&](int64_t label) {
    return printable(cleaned.classes[static_cast<size_t>(label)]);
  };
  for (size_t i = 0; i < std::min(kShown, cleaned.errors.size()); ++i) {
    const LabelError& error = cleaned.errors[i];
    fmt::print("  {}: labeled {} ({:.4f}), predicted {} ({:.4f})\n", printable(error.name),
               name(error.given), error.given_probability, name(error.predicted),
               error.predicted_probability);
  }
  if (cleaned.errors.size() > kShown) {
    fmt::print("  and {} more\n",
               format_count(static_cast<int64_t>(cleaned.errors.size() - kShown)));
  }
  if (!cleaned.errors.empty()) {
    fmt::print("  -> data.exclude: [{}]\n", (folder / "label-errors.txt").string());
  }
  fmt::print("report     {}\n", (folder / "report.html").string());
}

}  // namespace

ExitCode runs_clean(const CommandContext& command, const std::vector<std::string>& arguments) {
  Arguments parsed;
  if (!parse(arguments, parsed)) return ExitCode::kDone;
  require_alone("runs clean");
  StopRequest stop;
  const SignalGuard signals(stop);
  const Registries& registries = command.registries();
  std::vector<fs::path> folders = parsed.which.find();
  if (folders.size() == 1 && parsed.split.empty()) {
    for (fs::path& folder : other_folds(registries, folders.front())) {
      folders.push_back(std::move(folder));
    }
  }
  std::vector<PredictedSplit> splits;
  for (const fs::path& folder : folders) {
    splits.push_back(open_predicted_split(registries, parsed.which.runs, folder.string(),
                                          parsed.checkpoint, parsed.split));
  }
  check_different(splits);
  const bool is_of_run = parsed.report.empty();
  const fs::path folder = is_of_run ? folders.front() / "label-errors" : fs::path(parsed.report);
  prepare_report_folder(folder, is_of_run);
  const auto predictions = predict_splits(splits, stop);
  if (!predictions) return ExitCode::kStopped;
  const Cleaned cleaned = clean(splits, *predictions, parsed);
  const std::string json = json_of(cleaned, splits, parsed);
  write_label_report(folder, cleaned, json, splits.front(),
                     finding_of(cleaned, splits.front().run.inputs.is_images()));
  if (parsed.writes_json) {
    write_output(parsed.json_file.empty() ? "-" : parsed.json_file, json);
  } else {
    print(cleaned, splits, folder);
  }
  return ExitCode::kDone;
}

}  // namespace gallop::app
