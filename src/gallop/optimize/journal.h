#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "gallop/base/file.h"
#include "gallop/optimize/experiments.h"

namespace gallop::optimize {

/// Experiments whose results are kept in a file, one JSON object per line, so that a search that
/// was interrupted finds those that it had made.
class Journal final : public Experiments {
 public:
  /// `question` identifies the search. Throws UsageError if the file belongs to another one,
  /// DataError if it is damaged other than in its last line, and DeviceError if it cannot be
  /// written. `experiments` must outlive it.
  Journal(Experiments& experiments, const fs::path& file, const std::string& question);

  Settings settings(const std::vector<std::string>& options) override;
  std::vector<Prediction> predict(const std::vector<std::string>& options) override;
  Comparison compare(const std::vector<std::string>& base,
                     const std::vector<std::string>& changed) override;
  TrainingResult train(const std::vector<std::string>& options, int64_t seed) override;
  std::optional<double> find_lr(const std::vector<std::string>& options) override;
  /// The time of the experiments that were asked for, including those of earlier processes.
  double seconds() const override { return seconds_; }

  /// How many results the file had.
  size_t known() const { return known_; }

 private:
  struct Result {
    std::string json;
    double seconds = 0;
  };
  /// The result of an experiment, from the file or by `run`, as JSON.
  std::string result_of(const std::string& experiment, const std::function<std::string()>& run);
  void append(const std::string& line);

  Experiments& experiments_;
  fs::path file_;
  std::map<std::string, Result> results_;
  double seconds_ = 0;
  size_t known_ = 0;
};

}  // namespace gallop::optimize
