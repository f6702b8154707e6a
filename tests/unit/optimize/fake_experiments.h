#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gallop/optimize/experiments.h"

namespace gallop::optimize {

/// A training whose speed is the product of factors of its options, and whose final metric grows
/// with its length.
class FakeExperiments final : public Experiments {
 public:
  Settings plain{.channels_last = false,
                 .has_convolutions = true,
                 .compiles = false,
                 .cores = 2,
                 .threads = 2,
                 .data_threads = 1,
                 .samples = 10000,
                 .batch_size = 32,
                 .epochs = 10,
                 .optimizer = "sgd",
                 .schedule = "constant",
                 .lr = 0.1,
                 .label_smoothing = 0,
                 .has_classes = true,
                 .metric = "accuracy",
                 .higher_is_better = true};
  /// Factors of samples per second, by option.
  std::map<std::string, double> factors = {
      {"train.compile=true", 1.3}, {"train.precision=bf16", 1.6}, {"data.threads=2", 1.5},
      {"data.batch_size=64", 1.4}, {"data.batch_size=128", 1.8},  {"data.threads=0", 0.8}};
  /// Factors of options that only help together.
  std::vector<std::pair<std::vector<std::string>, double>> joint = {};
  /// Changes of the final metric after many epochs, by option, in addition to 0.9.
  std::map<std::string, double> metrics = {{"schedule={name: one-cycle}", 0.03},
                                           {"optimizer.wrappers=[ema]", -0.01}};
  /// A relative rise of the training loss, by option.
  std::map<std::string, double> losses = {};
  std::map<std::string, std::string> failures = {};        ///< By option.
  std::map<std::string, std::string> later_failures = {};  ///< Of trainings with seeds above 1.
  std::map<std::string, double> memory = {};               ///< Factors of peak memory, by option.
  std::vector<Prediction> predictions = {};
  std::optional<double> found_lr, found_adamw_lr;
  std::vector<std::string> log;  ///< All experiments.
  double spent = 0;              ///< Seconds.

  Settings settings(const std::vector<std::string>& options) override;
  std::vector<Prediction> predict(const std::vector<std::string>& options) override;
  Comparison compare(const std::vector<std::string>& base,
                     const std::vector<std::string>& changed) override;
  TrainingResult train(const std::vector<std::string>& options, int64_t seed) override;
  std::optional<double> find_lr(const std::vector<std::string>& options) override;
  double seconds() const override { return spent; }

 private:
  double rate(const std::vector<std::string>& options) const;
  double sum(const std::map<std::string, double>& values,
             const std::vector<std::string>& options) const;
};

}  // namespace gallop::optimize
