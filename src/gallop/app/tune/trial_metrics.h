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

/// How a trial's reports are counted: one an evaluation, of which there is one every `every` epochs
/// or steps.
struct ReportUnit {
  double every = 1;
  bool of_epochs = true;

  /// Where in a training a report of this number comes, as `train --until` takes it.
  std::string until(int64_t report) const;
};

/// What is known of the reports of a study's trials before there are any.
struct TrialReports {
  ReportUnit unit;
  RecipeMetrics metrics;
};

/// Finds a study's metrics in what its trials print: lines of JSON. Those of 'gallop train' count
/// where they tell of an evaluation or of the end; of any other command all with a metric's name.
///
/// A metric is a number of such a line by its name, the last one; or, from a name M, "best_M" and
/// "seconds to M NUMBER", the seconds of training until M is that good; for recipes also
/// "training_seconds", "seconds" and "memory_bytes".
class TrialMetrics {
 public:
  /// All must outlive it.
  TrialMetrics(const tune::StudySettings& settings, const tune::RunSpec& spec,
               const TrialReports& reports);

  /// A value of the first objective, to be reported.
  struct Report {
    int64_t step = 0;
    double value = 0;
    bool is_earlier = false;  ///< Of an evaluation that another process has made.
  };
  std::optional<Report> take(std::string_view line);

  /// Whether nothing that comes can change a value any more, as a target was reached.
  bool is_settled() const;
  /// Nothing where it was never printed, or a target never reached.
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
  std::map<std::string, double> derived_;  ///< Of best_M and of reached targets.
  int64_t reports_ = 0;
};

}  // namespace gallop::app
