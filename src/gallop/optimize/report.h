#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gallop/optimize/changes.h"
#include "gallop/optimize/experiments.h"

// What a search has found, and how it is shown.
namespace gallop::optimize {

enum class Verdict { kKept, kRejected, kReverted, kFailed, kNotTried };

/// "kept", "rejected", "reverted", "failed", "not tried".
const char* name_of(Verdict verdict);

/// A change that was tried, or would have been.
struct Trial {
  Change change;
  Verdict verdict = Verdict::kNotTried;
  std::string reason;                    ///< Of the verdict, unless it was kept.
  std::optional<Comparison> comparison;  ///< Of speeds; nothing if it was judged by trainings.
  /// The factor in what the goal counts, above 1 if it is better; nothing if it is unknown.
  std::optional<Estimate> gain;
  std::optional<double> metric_before, metric_after;  ///< Of trainings of equal length.
  double seconds = 0;                                 ///< That trying it took.
};

/// "1.12x to 1.23x", "1.25x (1.06 to 1.47)", "rejected: no gain". The first two are empty if they
/// are unknown.
std::string predicted_text(const Trial& trial);
std::string gain_text(const Trial& trial);
std::string verdict_text(const Trial& trial);

/// What the best recipe loses without one of its changes.
struct Ablation {
  std::string change;
  Estimate worth;         ///< The factor that it contributes.
  double energy = 1;      ///< The same of energy.
  bool is_least = false;  ///< Without it, no training of the recipe's length reached the target.
  std::optional<double> metric;  ///< Without it, after a training of the same length.
};

/// Trainings of a recipe with several seeds.
struct Trainings {
  std::vector<double> metrics;  ///< After each.
  double epochs = 0;
  double epochs_to_target = 0;  ///< Mean.
  int64_t reached = 0;  ///< How many reached the target; the others count with their length.

  double mean_metric() const;
};

/// What a training takes.
struct Cost {
  double seconds = 0;
  double joules = 0;  ///< 0 if energy was not measured.
};

struct Report {
  Goal goal = Goal::kThroughput;
  std::string recipe;                ///< As given: its name or file.
  std::vector<std::string> given;    ///< Options that the user gave with it.
  std::vector<std::string> options;  ///< Of the best recipe, `given` included.
  Settings plain, best;
  std::vector<Trial> trials;
  /// The recipe as it is and the best one, if they differ.
  std::optional<Comparison> total;
  std::vector<Ablation> ablations;

  // Results for the goal time-to-accuracy.
  std::optional<double> target;           ///< The metric of the recipe as it is.
  std::optional<Trainings> plain_runs;    ///< In the best execution, but with its mathematics.
  std::optional<Trainings> best_runs;     ///< Of the length of the best recipe.
  std::optional<Trainings> equal_runs;    ///< The best recipe in the length of the plain one.
  std::string why_no_training_changes{};  ///< Why only execution changes were tried; else empty.

  double budget_seconds = 0, seconds = 0;
  double price_per_hour = 0;

  /// The factor between the recipe as it is and the best one in what the goal counts.
  double total_gain() const;
  bool has_target() const { return target && total && plain_runs && best_runs; }
  /// The cost of reaching the target, if there is one, with the recipe as it is and the best one.
  Cost plain_cost() const { return cost_of(*plain_runs, total->base); }
  Cost best_cost() const { return cost_of(*best_runs, total->changed); }

 private:
  Cost cost_of(const Trainings& runs, const Speed& speed) const;
};

/// The factor in what the goal counts; time-to-accuracy counts speed, if two trainings are the same
/// but for their execution.
Estimate gain_of(const Comparison& comparison, Goal goal);

struct ReportTable {
  std::string title;
  std::vector<std::vector<std::string>> rows;  ///< The first has the names of the columns.
  std::string note;                            ///< Below it; may be empty.
};

/// The command that trains a recipe with these options of it in so many processes.
std::string training_command(const std::string& recipe, int64_t processes,
                             const std::vector<std::string>& options = {});

/// "mlp.yaml: 4.70 times less time to accuracy 0.7913"
std::string report_headline(const Report& report);
/// Result, changes, predictions and ablation, as far as there are any.
std::vector<ReportTable> report_tables(const Report& report);

/// The result and the ablation, for a terminal.
std::string report_text(const Report& report);
std::string report_markdown(const Report& report);
/// The complete report, with the tables of report_tables().
std::string report_json(const Report& report);
/// A waterfall from the recipe as it is to the best one.
std::string report_svg(const Report& report);

}  // namespace gallop::optimize
