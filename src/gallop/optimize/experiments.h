#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gallop/optimize/estimate.h"

// What a search can find out about a recipe. Options are written as on the command line,
// "train.precision=bf16", at most one for each path; kProcesses is one of them.
namespace gallop::optimize {

/// The path of the number of processes, which 'gallop launch' takes and a recipe does not have.
inline constexpr const char* kProcesses = "launch.processes";

/// A recipe with nothing left open.
struct Settings {
  std::string precision = "fp32";
  bool channels_last = false;
  bool has_convolutions = false;
  bool compiles = true;
  bool verifies = false;  ///< Compiled steps are compared with eager ones.
  bool is_on_cpu = true;
  int64_t processes = 1;
  int64_t cores = 1, threads = 1, data_threads = 0;  ///< Of each process.
  bool sets_threads = false;                         ///< train.threads is not 0.
  /// The model has batch norm, and its statistics are not those of the whole batch.
  bool splits_batch_norm = false;
  int64_t samples = 0;  ///< Of the training data.
  int64_t batch_size = 0, micro_batches = 1;
  bool recomputes = false;  ///< train.activation_checkpointing
  double epochs = 0;
  std::string loss, optimizer, schedule;
  double lr = 0;
  std::optional<double> momentum{};   ///< Nothing if the optimizer has no such option.
  bool sets_weight_decay = false;     ///< The recipe has a value of its own.
  bool has_parameter_groups = false;  ///< Of the optimizer, with options of their own.
  bool scales_lr = false;             ///< With the batch size; see optimizer.lr_scaling.
  bool counts_steps = false;          ///< train.steps gives the length.
  std::vector<std::string> wrappers;  ///< Of the optimizer.
  double label_smoothing = 0;
  bool has_classes = false;  ///< Targets are classes, which can be smoothed.
  bool can_resize = false;   ///< Images may be smaller at first, and are not so far.
  bool caches = true;        ///< data.in_memory is not "no", or has no effect.
  std::string metric;        ///< train.metric
  bool higher_is_better = true;
};

/// What one of the training's rules predicts for options (advise/advice.h), or what is known about
/// a change of the training.
struct Prediction {
  std::string rule, finding;
  std::vector<std::string> options;  ///< None: nothing can be done by an option.
  double low = 1, high = 1;          ///< Factor in what the goal counts.
  std::string basis;
};

/// The speed of a training, without evaluations and checkpoints.
struct Speed {
  double samples_per_second = 0;
  double joules_per_sample = 0;  ///< 0 if energy was not measured.
  int64_t peak_bytes = 0;        ///< Of all processes.
};

/// Two trainings that ran alternately.
struct Comparison {
  Speed base, changed;
  Estimate speedup;  ///< Samples per second of the changed over those of the base.
  /// The same of samples per joule, if energy can be measured.
  std::optional<Estimate> energy_gain;
  /// (changed loss - base loss) / base loss over the same steps, if both have the same batch size.
  std::optional<Estimate> loss_change;
  int64_t compared_steps = 0;
  std::string failure;        ///< Why the changed one does not run, in one line; else empty.
  std::string energy_method;  ///< "rapl", "estimated" and so on; see track::SystemReading.

  double memory_gain() const;
};

/// The result of a training that ran to its end.
struct TrainingResult {
  struct Point {
    double epochs = 0;  ///< Done by then.
    double metric = 0;
  };
  std::string folder;
  std::vector<Point> evaluations;
  double training_seconds = 0;  ///< Without evaluations and checkpoints.
  std::string failure;          ///< In one line; else empty.

  double metric() const { return evaluations.empty() ? 0 : evaluations.back().metric; }
  /// Epochs until an evaluation first had at least this metric; nothing if none had.
  std::optional<double> epochs_to(double target, bool higher_is_better) const;
};

/// Runs and measures trainings. All throw Stopped if the user interrupts the search, and Error if
/// the recipe itself does not train.
class Experiments {
 public:
  virtual ~Experiments() = default;
  virtual Settings settings(const std::vector<std::string>& options) = 0;
  /// Profiles it; nothing if it cannot be profiled.
  virtual std::vector<Prediction> predict(const std::vector<std::string>& options) = 0;
  virtual Comparison compare(const std::vector<std::string>& base,
                             const std::vector<std::string>& changed) = 0;
  virtual TrainingResult train(const std::vector<std::string>& options, int64_t seed) = 0;
  /// The learning rate that a range test suggests; nothing if it finds none.
  virtual std::optional<double> find_lr(const std::vector<std::string>& options) = 0;
  /// Seconds that all of these took so far.
  virtual double seconds() const = 0;
};

/// The user has interrupted the search.
struct Stopped {};

/// `options` with those of `changes` in place of or after them, by path. One of a whole section,
/// "optimizer={...}", also replaces those of its parts, "optimizer.lr=0.1".
std::vector<std::string> with(std::vector<std::string> options,
                              const std::vector<std::string>& changes);
/// "train.precision" of "train.precision=bf16".
std::string path_of(const std::string& option);
/// The value of kProcesses, or 1.
int64_t processes_of(const std::vector<std::string>& options);
/// The options without kProcesses.
std::vector<std::string> recipe_options(std::vector<std::string> options);

}  // namespace gallop::optimize
