#include "gallop/optimize/report.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "gallop/base/shell.h"
#include "gallop/base/text.h"
#include "gallop/optimize/experiment_json.h"
#include "gallop/optimize/waterfall.h"
#include "gallop/plot/plot.h"

namespace gallop::optimize {

namespace {

constexpr double kJoulesPerWattHour = 3600;
// Ablations that differ this much from the gain of their change name an interaction.
constexpr double kInteraction = 0.05;

std::string factor_text(const Estimate& gain) {
  if (gain.rounds < 2 || gain.low == gain.high) return fmt::format("{:.2f}x", gain.value);
  return fmt::format("{:.2f}x ({:.2f} to {:.2f})", gain.value, gain.low, gain.high);
}

std::string metric_text(std::optional<double> metric) {
  return metric ? fmt::format("{:.4g}", *metric) : "";
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

// Effect of a trial on quality: the final metric, or the loss over the same steps.
std::string quality_text(const Trial& trial) {
  if (trial.metric_before && trial.metric_after) {
    return fmt::format("{:.4g} to {:.4g}", *trial.metric_before, *trial.metric_after);
  }
  if (!trial.comparison || !trial.comparison->loss_change) return "-";
  const double percent = 100 * trial.comparison->loss_change->value;
  return std::abs(percent) < 0.005 ? "same loss" : fmt::format("loss {:+.2f} %", percent);
}

using Table = std::vector<std::vector<std::string>>;

std::string text_of(const Table& table) {
  std::vector<size_t> widths(table.front().size());
  for (const auto& row : table) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : table) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += fmt::format("{:<{}}  ", row[i], i + 1 < row.size() ? widths[i] : 0);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string markdown_of(const Table& table) {
  std::string text;
  for (size_t i = 0; i < table.size(); ++i) {
    text += fmt::format("| {} |\n", fmt::join(table[i], " | "));
    if (i > 0) continue;
    for (size_t j = 0; j < table[i].size(); ++j) text += "|---";
    text += "|\n";
  }
  return text;
}

Table trials_of(const Report& report) {
  Table table = {{"change", "predicted", "gain", "quality", "took", "verdict"}};
  for (const Trial& trial : report.trials) {
    table.push_back({trial.change.name, or_dash(predicted_text(trial)), or_dash(gain_text(trial)),
                     quality_text(trial), format_duration(trial.seconds), verdict_text(trial)});
  }
  return table;
}

// Empty if nothing was predicted.
Table predictions_of(const Report& report) {
  Table table = {{"change", "predicted", "gain", "basis"}};
  for (const Trial& trial : report.trials) {
    const std::string predicted = predicted_text(trial);
    if (predicted.empty()) continue;
    table.push_back(
        {trial.change.name, predicted, or_dash(gain_text(trial)), trial.change.predicted->basis});
  }
  return table.size() > 1 ? table : Table();
}

std::string money_text(const Report& report, double seconds) {
  return fmt::format("{:.4f}", seconds / 3600 * report.price_per_hour);
}

// Without the last column, if that is a price and none was given.
Table priced(const Report& report, Table table) {
  if (report.price_per_hour > 0) return table;
  for (auto& row : table) row.pop_back();
  return table;
}

std::string energy_text(double joules) {
  if (joules <= 0) return "-";
  return joules < kJoulesPerWattHour ? fmt::format("{:.3g} J", joules)
                                     : fmt::format("{:.3g} Wh", joules / kJoulesPerWattHour);
}

// The recipe as it is and the best one.
Table results_of(const Report& report) {
  if (!report.total) return {};
  if (report.has_target()) {
    const std::string metric = report.plain.metric;
    const auto line = [&](const char* name, const Trainings& runs, const Cost& cost) {
      return std::vector<std::string>{name,
                                      fmt::format("{:.3g}", runs.epochs),
                                      format_duration(cost.seconds),
                                      metric_text(runs.mean_metric()),
                                      energy_text(cost.joules),
                                      money_text(report, cost.seconds)};
    };
    return priced(report,
                  {{"recipe", "epochs", fmt::format("time to {} {:.4g}", metric, *report.target),
                    "final " + metric, "energy", "price"},
                   line("as it is", *report.plain_runs, report.plain_cost()),
                   line("best", *report.best_runs, report.best_cost())});
  }
  const auto row = [&](const char* name, const Speed& speed) {
    const double seconds = static_cast<double>(report.plain.samples) / speed.samples_per_second;
    return std::vector<std::string>{
        name,
        format_count(std::llround(speed.samples_per_second)),
        format_duration(seconds),
        format_bytes(speed.peak_bytes),
        energy_text(speed.joules_per_sample * static_cast<double>(report.plain.samples)),
        money_text(report, seconds)};
  };
  return priced(report, {{"recipe", "samples/s", "epoch", "memory", "energy of an epoch",
                          "price of an epoch"},
                         row("as it is", report.total->base),
                         row("best", report.total->changed)});
}

const Trial* trial_of(const Report& report, const std::string& change) {
  for (const Trial& trial : report.trials) {
    if (trial.verdict == Verdict::kKept && trial.change.name == change) return &trial;
  }
  return nullptr;
}

Table ablations_of(const Report& report) {
  const bool has_target = report.has_target();
  Table table = {{"change", "worth in the best recipe", "when it was added"}};
  if (has_target) {
    table.front().insert(table.front().end(), {"time to target without it", "final metric",
                                               "energy to target", "price to target"});
  }
  for (const Ablation& one : report.ablations) {
    const Trial* trial = trial_of(report, one.change);
    table.push_back({one.change, (one.is_least ? "at least " : "") + factor_text(one.worth),
                     trial != nullptr && trial->gain ? factor_text(*trial->gain) : "-"});
    if (!has_target) continue;
    const double seconds = one.worth.value * report.best_cost().seconds;
    const double joules = one.energy * report.best_cost().joules;
    table.back().insert(table.back().end(),
                        {one.is_least ? "not reached" : format_duration(seconds),
                         metric_text(one.metric.value_or(report.best_runs->mean_metric())),
                         energy_text(joules), money_text(report, seconds)});
  }
  if (has_target) return priced(report, std::move(table));
  return table;
}

// What the ablations leave of the total, and where it comes from.
std::string interactions_text(const Report& report) {
  double product = 1;
  std::vector<std::string> names;
  for (const Ablation& one : report.ablations) {
    product *= one.worth.value;
    const Trial* trial = trial_of(report, one.change);
    if (trial == nullptr || !trial->gain) continue;
    if (std::abs(std::log(one.worth.value / trial->gain->value)) > kInteraction) {
      names.push_back(one.change);
    }
  }
  const double total = report.total_gain();
  std::string text = fmt::format("Together the changes are worth {:.2f}x, their product is {:.2f}x",
                                 total, product);
  if (std::abs(std::log(total / product)) <= 0.02) return text + ".";
  if (names.empty() && report.has_target()) {
    return text + ": the length of the training is not left out by itself.";
  }
  if (names.empty()) return text + ": the rest is noise of the measurements.";
  return text +
         fmt::format(": the gain of {} depends on the other changes.", join_names(names, "and"));
}

std::string equal_text(const Report& report) {
  if (!report.target || !report.why_no_training_changes.empty()) return {};
  if (!report.equal_runs) {
    return "The budget was too small to train the best recipe for as long as the original recipe.";
  }
  const size_t seeds = report.equal_runs->metrics.size();
  return fmt::format(
      "Trained for {:.3g} epochs as well, the best recipe has {} {:.4g} instead of "
      "{:.4g} ({}).",
      report.equal_runs->epochs, report.plain.metric, report.equal_runs->mean_metric(),
      report.plain_runs->mean_metric(),
      seeds == 1 ? "one seed" : fmt::format("means of {} seeds", seeds));
}

std::string command_of(const Report& report) {
  return training_command(report.recipe, processes_of(report.options),
                          recipe_options(report.options));
}

Json json_of(const Trainings& one) {
  return {{"metrics", one.metrics},
          {"epochs", one.epochs},
          {"epochs_to_target", one.epochs_to_target},
          {"reached", one.reached}};
}

Json json_of(const Trial& trial) {
  Json object = {{"change", trial.change.name},
                 {"options", recipe_options(trial.change.options)},
                 {"verdict", name_of(trial.verdict)},
                 {"reason", trial.reason},
                 {"seconds", trial.seconds}};
  if (const int64_t processes = processes_of(trial.change.options); processes > 1) {
    object["processes"] = processes;
  }
  if (trial.change.predicted) {
    object["predicted"] = {{"low", trial.change.predicted->low},
                           {"high", trial.change.predicted->high},
                           {"basis", trial.change.predicted->basis},
                           {"rule", trial.change.predicted->rule}};
  }
  if (trial.gain) object["gain"] = json_of(*trial.gain);
  if (trial.comparison) object["comparison"] = json_of(*trial.comparison);
  if (trial.metric_before) object["metric_before"] = *trial.metric_before;
  if (trial.metric_after) object["metric_after"] = *trial.metric_after;
  return object;
}

}  // namespace

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kKept: return "kept";
    case Verdict::kRejected: return "rejected";
    case Verdict::kReverted: return "reverted";
    case Verdict::kFailed: return "failed";
    case Verdict::kNotTried: return "not tried";
  }
  return "";
}

std::string predicted_text(const Trial& trial) {
  if (!trial.change.predicted || trial.change.predicted->high <= 1) return {};
  const double low = trial.change.predicted->low, high = trial.change.predicted->high;
  return low == high ? fmt::format("{:.2f}x", low) : fmt::format("{:.2f}x to {:.2f}x", low, high);
}

std::string gain_text(const Trial& trial) { return trial.gain ? factor_text(*trial.gain) : ""; }

std::string verdict_text(const Trial& trial) {
  return trial.reason.empty() ? name_of(trial.verdict)
                              : fmt::format("{}: {}", name_of(trial.verdict), trial.reason);
}

double Trainings::mean_metric() const {
  return metrics.empty() ? 0
                         : std::accumulate(metrics.begin(), metrics.end(), 0.0) /
                               static_cast<double>(metrics.size());
}

Estimate gain_of(const Comparison& comparison, Goal goal) {
  if (goal == Goal::kMemory) {
    const double gain = comparison.memory_gain();
    return {.value = gain, .low = gain, .high = gain, .rounds = comparison.speedup.rounds};
  }
  return goal == Goal::kEnergy ? *comparison.energy_gain : comparison.speedup;
}

Cost Report::cost_of(const Trainings& runs, const Speed& speed) const {
  const double samples = runs.epochs_to_target * static_cast<double>(plain.samples);
  return {.seconds = samples / speed.samples_per_second,
          .joules = samples * speed.joules_per_sample};
}

double Report::total_gain() const {
  const double gain = total ? gain_of(*total, goal).value : 1;
  return has_target() ? gain * plain_runs->epochs_to_target / best_runs->epochs_to_target : gain;
}

std::string training_command(const std::string& recipe, int64_t processes,
                             const std::vector<std::string>& options) {
  std::vector<std::string> words = {"gallop"};
  if (processes > 1) {
    words.insert(words.end(), {"launch", "-n", std::to_string(processes)});
  }
  words.insert(words.end(), {"train", recipe});
  words.insert(words.end(), options.begin(), options.end());
  return shell_line(words);
}

std::string report_text(const Report& report) {
  std::string text = fmt::format("{}\n", report_headline(report));
  if (const Table results = results_of(report); !results.empty()) {
    text += "\n" + text_of(results);
  }
  for (const std::string& note : {equal_text(report), report.why_no_training_changes}) {
    if (!note.empty()) text += wrapped(note, 120);
  }
  if (!report.ablations.empty()) {
    text += "\n" + text_of(ablations_of(report)) + wrapped(interactions_text(report), 120);
  }
  return text;
}

std::vector<ReportTable> report_tables(const Report& report) {
  std::vector<ReportTable> tables;
  if (Table results = results_of(report); !results.empty()) {
    tables.push_back({"Result", std::move(results), equal_text(report)});
  }
  tables.push_back({"Changes", trials_of(report), report.why_no_training_changes});
  if (Table predictions = predictions_of(report); !predictions.empty()) {
    tables.push_back({"Predictions", std::move(predictions), {}});
  }
  if (!report.ablations.empty()) {
    tables.push_back({"Ablation", ablations_of(report), interactions_text(report)});
  }
  return tables;
}

std::string report_headline(const Report& report) {
  const double gain = report.total_gain();
  const std::string& recipe = report.recipe;
  if (report.options == report.given) {
    return fmt::format("{}: no change makes it better", recipe);
  }
  switch (report.goal) {
    case Goal::kTimeToAccuracy:
      if (report.has_target()) {
        return fmt::format("{}: {:.2f} times less time to {} {:.4g}", recipe, gain,
                           report.plain.metric, *report.target);
      }
      [[fallthrough]];
    case Goal::kThroughput:
      return fmt::format("{}: {:.2f} times the samples per second", recipe, gain);
    case Goal::kMemory: return fmt::format("{}: {:.2f} times less memory", recipe, gain);
    case Goal::kEnergy: return fmt::format("{}: {:.2f} times less energy", recipe, gain);
  }
  return {};
}

std::string report_markdown(const Report& report) {
  std::string text = fmt::format("# {}\n\n", report_headline(report));
  text += fmt::format("Goal: {}. The search took {} of {}.\n\n", name_of(report.goal),
                      format_duration(report.seconds), format_duration(report.budget_seconds));
  for (const ReportTable& table : report_tables(report)) {
    text += fmt::format("## {}\n\n{}", table.title, markdown_of(table.rows));
    if (!table.note.empty()) text += "\n" + wrapped(table.note, 120);
    text += "\n";
  }
  text += fmt::format("## The best recipe\n\n    {}\n", command_of(report));
  return text;
}

std::string report_json(const Report& report) {
  Json object = {{"headline", report_headline(report)},
                 {"goal", name_of(report.goal)},
                 {"recipe", report.recipe},
                 {"given", report.given},
                 {"options", recipe_options(report.options)},
                 {"processes", processes_of(report.options)},
                 {"command", command_of(report)},
                 {"gain", report.total_gain()},
                 {"budget_seconds", report.budget_seconds},
                 {"seconds", report.seconds}};
  if (report.total) object["total"] = json_of(*report.total);
  if (report.target) {
    object["metric"] = report.plain.metric;
    object["target"] = *report.target;
  }
  if (report.has_target()) {
    object["plain_seconds_to_target"] = report.plain_cost().seconds;
    object["best_seconds_to_target"] = report.best_cost().seconds;
  }
  if (report.plain_runs) object["plain_runs"] = json_of(*report.plain_runs);
  if (report.best_runs) object["best_runs"] = json_of(*report.best_runs);
  if (report.equal_runs) object["equal_runs"] = json_of(*report.equal_runs);
  if (!report.why_no_training_changes.empty()) {
    object["why_no_training_changes"] = report.why_no_training_changes;
  }
  object["tables"] = Json::array();
  for (const ReportTable& table : report_tables(report)) {
    object["tables"].push_back(
        {{"title", table.title}, {"rows", table.rows}, {"note", table.note}});
  }
  object["trials"] = Json::array();
  for (const Trial& trial : report.trials) object["trials"].push_back(json_of(trial));
  object["ablations"] = Json::array();
  for (const Ablation& one : report.ablations) {
    Json line = {{"change", one.change},
                 {"worth", json_of(one.worth)},
                 {"is_least", one.is_least},
                 {"energy", one.energy}};
    if (one.metric) line["metric"] = *one.metric;
    object["ablations"].push_back(line);
  }
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string report_svg(const Report& report) {
  plot::BarPlot plot{.title = report_headline(report), .bars = {}};
  const std::vector<WaterfallBar> bars = waterfall_of(report);
  for (const WaterfallBar& bar : bars) {
    plot.bars.push_back({.label = bar.label,
                         .value = std::max(bar.from, bar.to),
                         .text = bar.text,
                         .begin = std::min(bar.from, bar.to)});
  }
  return plot::to_svg(plot::Page{.title = {}, .rows = {{.plots = {plot}, .columns = 1}}});
}

}  // namespace gallop::optimize
