#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/profile/profile.h"

// What is known about a training that was profiled, from which rules derive advice.
namespace gallop::advise {

/// The time of a step with changed options, measured next to that of the step as it is.
struct Trial {
  std::string options;        ///< "train.precision=bf16"
  double seconds = 0;         ///< A step on the same batch, without loading: the minimum of rounds.
  double seconds_as_is = 0;   ///< The same of the training as it is.
  bool is_uncertain = false;  ///< The machine was busy with other programs.
  bool is_whole = false;      ///< Both are means of whole trainings instead, with loading.

  double speedup() const { return seconds > 0 ? seconds_as_is / seconds : 1; }
};

/// The options that rules look at, with their values after "auto" was resolved.
struct Settings {
  std::string precision = "fp32";
  bool measured_precision = false;  ///< The training chose it by timing steps in each.
  bool measured_format = false;     ///< The same for channels_last.
  bool channels_last = false;
  bool has_convolutions = false;
  bool compiled = true;
  std::string why_not_compiled;  ///< Why steps run eagerly although compiling is on; else empty.
  bool verifies = false;         ///< Compiled steps are compared with eager ones.
  int64_t samples = 0;           ///< Of the training data.
  int64_t batch_size = 0, micro_batches = 1;
  bool recomputes = false;   ///< Activation checkpointing is on.
  std::string optimizer;     ///< "sgd"
  bool scales_lr = false;    ///< With the batch size; see optimizer.lr_scaling.
  int64_t threads = 1;       ///< That compute.
  int64_t data_threads = 0;  ///< 0: the training's thread loads.
  bool can_cache = false;    ///< Decoded samples could be cached, but data.in_memory is no.
  std::vector<std::string> frozen{};  ///< Patterns of train.freeze.
  std::string strategy = "ddp";       ///< Of several processes.
  bool measured_buckets = false;      ///< Of gradients; see parallel.bucket.
  bool compresses_gradients = false;
  std::string evaluate_every, checkpoint_every;
  bool checkpoint_in_background = true;
};

/// The step of a layer alone, as it is and with sizes that suit the machine better.
struct ShapeTrial {
  std::string layer;
  std::string sizes, better_sizes;  ///< "1001 inputs and 33 outputs"
  double seconds = 0;               ///< With the better sizes: the minimum of rounds.
  double seconds_as_is = 0;
  double work = 1;  ///< Of the layer with the better sizes, relative to the one as it is.
};

/// What a recorded step shows about the model.
struct ModelFacts {
  std::vector<std::string> unused_parameters;   ///< Are trained, but get no gradient.
  int64_t unused_bytes = 0;                     ///< Of these parameters.
  std::vector<std::string> biases_before_norm;  ///< Are subtracted again by a batch norm.
  std::vector<ShapeTrial> shapes;
};

/// The gradients of processes that sum them, in the order in which the backward pass makes them.
struct GradientFacts {
  int64_t bytes = 0;  ///< Of all.
  /// The largest, if hardly any come after it.
  std::string late;
  int64_t late_bytes = 0;
};

struct Facts {
  profile::Profile profile;
  profile::MachinePeaks peaks;
  Settings settings;
  ModelFacts model;
  GradientFacts gradients;
  std::vector<Trial> trials;
  double step_alone = 0;   ///< Seconds of a step on one batch, without loading; 0: not measured.
  int cores = 1;           ///< That the process may use.
  double other_cores = 0;  ///< Busy with other programs during the steps, on average.
  int numa_nodes = 1;      ///< That these cores belong to.
  std::string huge_pages;  ///< "always", "madvise" or "never"; empty if unknown.
  bool on_gpu = false;
  /// Fraction of the run's time so far, as a few steps seldom contain an evaluation; 0 if unknown.
  double evaluation_share_of_run = 0;
  int64_t memory_bytes = 0;  ///< Of the machine.

  /// Seconds of a phase in a step.
  double phase(const std::string& name) const;
  double share_of_phase(const std::string& name) const;
  /// The trial of these options; null if there is none.
  const Trial* trial(const std::string& options) const;
};

}  // namespace gallop::advise
