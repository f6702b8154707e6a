#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/base/stop.h"
#include "gallop/optimize/changes.h"
#include "gallop/optimize/experiments.h"

namespace gallop::app {

struct ExperimentPlace {
  std::string recipe;                ///< Its name or file.
  std::vector<std::string> options;  ///< Of the recipe; those of an experiment replace them.
  std::string metric;                ///< That runs are judged by.
  fs::path folder;                   ///< Of the search: runs/ and output/ are created in it.
  optimize::Goal goal = optimize::Goal::kThroughput;
  double worthwhile = 1.02;  ///< See optimize::SearchConfig.
};

/// Runs and measures trainings in child processes of this program.
class ChildExperiments final : public optimize::Experiments {
 public:
  /// `stop` must outlive it. `note` is called with messages in one line.
  ChildExperiments(ExperimentPlace place, const StopRequest& stop,
                   std::function<void(const std::string&)> note);

  /// Before experiments other than settings().
  void set(std::vector<std::string> options, const std::string& metric);

  optimize::Settings settings(const std::vector<std::string>& options) override;
  std::vector<optimize::Prediction> predict(const std::vector<std::string>& options) override;
  optimize::Comparison compare(const std::vector<std::string>& base,
                               const std::vector<std::string>& changed) override;
  optimize::TrainingResult train(const std::vector<std::string>& options, int64_t seed) override;
  std::optional<double> find_lr(const std::vector<std::string>& options) override;
  double seconds() const override;

 private:
  std::vector<std::string> arguments(const std::vector<std::string>& command,
                                     const std::vector<std::string>& options) const;
  /// The same, by 'gallop launch' for several processes.
  std::vector<std::string> launched(const std::vector<std::string>& command,
                                    const std::vector<std::string>& options) const;
  /// The output of a command of this program, or why it failed, in one line.
  struct Result {
    bool is_good = false;
    ExitCode code = ExitCode::kDone;
    std::string text;
  };
  /// `cores` to run on; empty: all.
  Result run(const std::vector<std::string>& arguments, const std::vector<int>& cores = {}) const;
  fs::path output_file();

  ExperimentPlace place_;
  const StopRequest& stop_;
  std::function<void(const std::string&)> note_;
  double begin_;
  int64_t outputs_ = 0;
};

}  // namespace gallop::app
