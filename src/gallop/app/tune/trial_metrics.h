#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "gallop/app/tune/recipe_metrics.h"
#include "gallop/tune/study.h"
#include "gallop/tune/sweep.h"

namespace gallop::app {

/// The unit of a trial's reports: one per evaluation, with an evaluation every `every` epochs or
/// steps.
struct ReportUnit {
  double every = 1;
  bool of_epochs = true;

  /// The position in training of a report, as `train --until` takes it.
  std::string until(int64_t report) const;
};

/// What is known about the reports of a study's trials before they run.
struct TrialReports {
  ReportUnit unit;
  RecipeMetrics metrics;
};

/// Extracts a study's metrics from the output of its trials: lines of JSON. For 'gallop train',
/// only lines about evaluations and the end; for any other command, all lines with a metric's name.
///
/// A metric's value is the last number with its name; derived metrics of M are "best_M" and
/// "seconds to M NUMBER", the seconds of training until M reaches that value; recipes also have
/// "training_seconds", "seconds" and "memory_bytes".
class TrialMetrics {
 public:
  /// All arguments must outlive it.
  TrialMetrics(const tune::StudySettings& settings, const tune::RunSpec& spec,
               const TrialReports& reports);

  /// A value of the first objective to report.
  struct Report {
    int64_t step = 0;
    double value = 0;
    bool is_earlier = false;  ///< From an evaluation of another process.
  };
  std::optional<Report> take(std::string_view line);

  /// Whether further output cannot change any value, as a target was reached.
  bool is_settled() const;
  /// Nothing if it was never printed, or a target was never reached.
  std::optional<double> value_of(const std::string& metric) const;

 private:
  bool is_smaller_better(const std::string& metric) const;
  void note(const std::string& name, double value, double seconds);
  bool counts(const std::string& event) const;

  const tune::StudySettings& settings_;
  bool is_recipe_;
  const RecipeMetrics& reported_;
  const ReportUnit& unit_;
  std::map<std::string, double> last_;
  std::map<std::string, double> derived_;  ///< Values of best_M and of reached targets.
  int64_t reports_ = 0;
};

}  // namespace gallop::app
