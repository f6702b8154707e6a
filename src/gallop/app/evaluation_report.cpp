#include "gallop/app/evaluation_report.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/json_line.h"
#include "gallop/app/metric_text.h"
#include "gallop/app/report_page.h"
#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/plot/plot.h"
#include "gallop/train/reports/figure.h"

namespace gallop::app {

namespace {

constexpr size_t kListedClasses = 3, kListedMistakes = 5;

using Values = std::vector<train::MetricValue>;

// All metrics of an evaluation, those common to all tasks first.
Values values_of(const train::Evaluation& evaluation) {
  const train::Tally& tally = evaluation.tally;
  Values values = {{"loss", tally.loss(), /*higher_is_better=*/false}};
  if (evaluation.has_classes) {
    values.push_back({"accuracy", tally.accuracy()});
    values.push_back({"top5", tally.top5_accuracy()});
  }
  values.insert(values.end(), evaluation.metrics.begin(), evaluation.metrics.end());
  return values;
}

const train::ConfusionMatrix* confusion_in(const std::vector<train::FigureData>& figures) {
  for (const train::FigureData& figure : figures) {
    if (const auto* found = std::get_if<train::ConfusionMatrix>(&figure.data)) return found;
  }
  return nullptr;
}

std::string recipe_text(const Recipe& recipe) {
  return fmt::format("model {}, data {}", recipe.model.name(), recipe.data.module.name());
}

ReportPage::Rows facts_of(const std::vector<TrainedModel>& runs, const EvaluatedPart& part,
                          const train::Evaluation& evaluation) {
  ReportPage::Rows facts;
  for (const TrainedModel& run : runs) {
    facts.emplace_back(runs.size() == 1 ? "Run" : "Member",
                       fmt::format("{}, step {}", run.folder.string(), format_count(run.step())));
    facts.emplace_back("Recipe", fmt::format("{}: {}", (run.folder / "recipe.yaml").string(),
                                             recipe_text(run.recipe.recipe)));
  }
  if (runs.size() > 1) {
    facts.emplace_back("Ensemble",
                       fmt::format("mean of the probabilities of {} models", runs.size()));
  }
  facts.emplace_back("Data split", part.name);
  facts.emplace_back("Samples", format_count(part.samples));
  facts.emplace_back("Targets", format_count(evaluation.tally.count));
  if (evaluation.skipped > 0) {
    facts.emplace_back("Skipped", fmt::format("{} broken samples", evaluation.skipped));
  }
  return facts;
}

void add_overlays(ReportPage& page, const fs::path& folder, const track::EvaluationReport& report) {
  const auto content = [&](const std::string& file) { return read_file(folder / file); };
  ReportPage::Section section{.title = "Predicted masks"};
  for (size_t i = 0; i < report.colors.size(); ++i) {
    section.legend.emplace_back(report.classes[i], report.colors[i]);
  }
  section.legend.emplace_back("wrong pixel", difference_color());
  for (const auto& one : report.overlays) {
    const bool is_first = one.group == track::EvaluationReport::Overlay::Group::kFirst;
    section.pictures.push_back(
        {.caption = fmt::format(
             "{}: sample {}, IoU {}", is_first ? "First images" : "Images with the lowest IoU",
             one.sample, one.iou ? fmt::format("{:.4f}", *one.iou) : "undefined"),
         .files = {{"image", content(one.image)},
                   {"true mask", content(one.truth)},
                   {"predicted mask", content(one.prediction)},
                   {"differences", content(one.differences)}}});
  }
  if (!section.pictures.empty()) page.sections.push_back(std::move(section));
}

}  // namespace

void prepare_report_folder(const fs::path& folder, bool is_of_run) {
  if (!is_of_run && !track::is_report_folder(folder)) {
    throw UsageError(
        fmt::format("--report: {} is not empty and not an earlier report; specify a new folder",
                    printable(folder.string())));
  }
  make_folders(folder);
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return;
  throw DeviceError(fmt::format("--report: cannot write into {}: {}", printable(folder.string()),
                                std::generic_category().message(errno)));
}

void write_report(const fs::path& folder, const std::vector<TrainedModel>& runs,
                  const EvaluatedPart& part, const train::Task& task,
                  const train::Evaluation& evaluation, const ReportedImages& images) {
  track::clear_report_folder(folder);
  track::EvaluationReport report{.step = runs.size() == 1 ? runs.front().step() : 0,
                                 .part = part.name,
                                 .samples = part.samples,
                                 .targets = evaluation.tally.count};
  ReportPage page{.title = fmt::format("Evaluation of {}", runs.front().folder.filename().string()),
                  .facts = facts_of(runs, part, evaluation),
                  .metrics = {},
                  .svgs = {}};
  if (runs.size() > 1) page.title = fmt::format("Evaluation of {} models", runs.size());
  for (const TrainedModel& run : runs) report.runs.push_back(run.folder.string());
  for (const train::MetricValue& value : values_of(evaluation)) {
    report.metrics.emplace_back(value.name, value.value);
    page.metrics.emplace_back(value.name, metric_text(value));
  }
  const data::Signature& inputs = runs.front().inputs;
  const train::TargetNames names{.numbers = inputs.targets, .are_labels = task.has_labels()};
  for (const train::FigureData& figure : evaluation.figures) {
    const std::string svg = plot::to_svg(train::figure_page(figure, names));
    write_file_atomically(folder / track::figure_file(figure.name), svg);
    report.figures.push_back({.name = figure.name,
                              .title = train::figure_title(figure, names),
                              .data = json_line(train::figure_json(figure))});
    page.svgs.push_back(svg);
  }
  report.classes = inputs.classes;
  if (const auto* const confusion = confusion_in(evaluation.figures)) {
    report.classes = confusion->classes;
    report.counts = confusion->counts;
  }
  if (images.mistakes != nullptr) report.mistakes = images.mistakes->write_images(folder);
  if (images.overlays != nullptr) {
    report.overlays = images.overlays->write_images(folder);
    report.colors = overlay_colors(inputs);
    add_overlays(page, folder, report);
  }
  write_file_atomically(folder / "report.html", to_html(page));
  track::write_evaluation_report(folder, report);
}

std::string confusion_text(const std::vector<train::FigureData>& figures) {
  const auto* const matrix = confusion_in(figures);
  if (matrix == nullptr) return "";
  const auto name_of = [&](size_t label) { return printable(matrix->classes[label]); };
  struct Found {
    size_t truth;
    double share;
  };
  struct Taken {
    size_t truth, guess;
    int64_t count;
  };
  std::vector<Found> found;
  std::vector<Taken> taken;
  for (size_t truth = 0; truth < matrix->counts.size(); ++truth) {
    const auto& row = matrix->counts[truth];
    const auto all = std::accumulate(row.begin(), row.end(), int64_t{0});
    if (all == 0) continue;
    found.push_back({truth, static_cast<double>(row[truth]) / static_cast<double>(all)});
    for (size_t guess = 0; guess < row.size(); ++guess) {
      if (guess != truth && row[guess] > 0) taken.push_back({truth, guess, row[guess]});
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Found& a, const Found& b) { return a.share < b.share; });
  std::stable_sort(taken.begin(), taken.end(),
                   [](const Taken& a, const Taken& b) { return a.count > b.count; });
  std::string text;
  for (size_t i = 0; i < std::min(kListedClasses, found.size()); ++i) {
    text += fmt::format("  {}{}: {:.2f} % are found\n", i == 0 ? "hardest   " : "          ",
                        name_of(found[i].truth), 100 * found[i].share);
  }
  for (size_t i = 0; i < std::min(kListedMistakes, taken.size()); ++i) {
    text +=
        fmt::format("  {}{} taken for {}: {}\n", i == 0 ? "mistaken  " : "          ",
                    name_of(taken[i].truth), name_of(taken[i].guess), format_count(taken[i].count));
  }
  return text;
}

}  // namespace gallop::app
