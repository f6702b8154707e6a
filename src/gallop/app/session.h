#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gallop/app/device.h"
#include "gallop/app/libtorch_warnings.h"
#include "gallop/app/parameter_schedules.h"
#include "gallop/app/recipe.h"
#include "gallop/app/run_inputs.h"
#include "gallop/app/trained_model.h"
#include "gallop/base/hardware.h"
#include "gallop/data/data_module.h"
#include "gallop/optim/optimizer.h"
#include "gallop/parallel/mesh.h"
#include "gallop/train/evaluate.h"
#include "gallop/train/step/config.h"
#include "gallop/train/step/format.h"
#include "gallop/train/trainer.h"

namespace gallop::app {

/// Samples that formats are timed on, at most: enough to tell them apart, few enough for a quick
/// start.
inline constexpr int64_t kTimedSamples = 32;

/// Options that were left open and chosen by measuring.
struct MadeChoice {
  std::string options;   ///< "train.precision=auto train.channels_last=auto", to choose again.
  std::string evidence;  ///< In one line.
  bool is_uncertain = false;
};

/// The run that a session continues from a checkpoint.
struct ResumedRun {
  std::map<std::string, std::string> trainer{};  ///< TrainingState::trainer; empty: a new run.
  std::string folder{};                          ///< Of the run; empty: a new run.
};

/// A recipe turned into objects that train together: its data are opened, and its model and
/// optimizer are on the device, in the format that the recipe requests. Options that the recipe
/// leaves open are measured, and their values are put into the recipe. Needs no run folder and
/// creates none.
class Session {
 public:
  /// Prints warnings to standard error. Throws UsageError, DataError and DeviceError. `runs` is the
  /// folder of the run that the recipe names as its teacher. With `collectives`, all processes of
  /// the group construct their session together.
  explicit Session(ResolvedRecipe resolved, const std::string& runs = "runs",
                   parallel::Collectives* collectives = nullptr, const ResumedRun& resumed = {});

  ResolvedRecipe& resolved() { return resolved_; }
  Recipe& recipe() { return resolved_.recipe; }
  const Recipe& recipe() const { return resolved_.recipe; }
  /// Built-in components, and those of the recipe's plug-ins.
  const Registries& registries() const { return *resolved_.recipe.registries; }
  const Hardware& hardware() const { return hardware_; }
  const data::DataModule& data() const { return *data_; }
  const data::Signature& inputs() const { return data_->signature; }
  const train::Task& task() const { return *task_; }
  c10::Device device() const { return device_; }
  const train::StepFormat& format() const { return format_; }
  model::Model& model() { return *model_; }
  optim::Optimizer& optimizer() { return *optimizer_; }
  schedule::Schedule& schedule() { return *schedule_; }
  const ParameterSchedules& parameter_schedules() const { return scheduled_; }
  train::Length length() const { return train::Length::of(recipe().train, history_); }
  std::vector<train::ParameterSchedule> scheduled() const { return scheduled_.for_training(); }
  /// The factor of all learning rates, by the recipe's batch.
  double lr_factor() const;

  /// The loader of this process's part of each batch.
  data::LoaderConfig training_loader() const;
  train::EvaluateConfig evaluate_config() const;
  train::StepConfig step_config() const;

  /// An optimizer, with the recipe's wrappers, for a model of this session's kind.
  std::unique_ptr<optim::Optimizer> make_optimizer(const model::Model& model) const;
  /// Whether each process has and updates a part of the optimizer's state.
  bool shares_optimizer() const;
  /// A model like model(), with new weights, in the usual memory format on this device.
  std::unique_ptr<model::Model> make_model() const;

  /// Identifies the teacher: the checksum of its weights; empty without one.
  std::string teacher() const;

  /// The first samples of the training data, at most so many, on the device.
  data::Batch first_batch(int64_t most) const;

  /// This process's part of the first batch of the recipe's size, on the device.
  data::Batch first_part() const;

  /// Puts a learning rate that was found into the recipe, and builds the optimizer again.
  void take_lr(double lr);

  /// Whether samples are images with a class or numbers as targets, which data.in_memory caches.
  bool has_images_without_masks() const;
  /// Why images may not have other sizes in training; empty if they may.
  std::string why_not_resized() const;

  /// Whether the model convolves images, so that their memory format matters.
  bool has_convolutions();

  /// "adamw, schedule cosine, bf16 on CPU (measured fp32 12.1 ms, bf16 7.9 ms)"
  std::string describe_training() const;
  /// How `parallel.bucket: auto` was resolved; empty where it was not.
  const std::string& buckets() const { return buckets_; }
  /// What was chosen by measuring, in this process or by the first for all.
  const std::vector<MadeChoice>& choices() const { return choices_; }

 private:
  using BuildStrategy = std::function<std::unique_ptr<parallel::Strategy>(const Recipe& recipe)>;

  /// The processes as the recipe arranges them.
  parallel::DeviceMesh mesh() const;
  int processes() const;
  bool is_first() const { return collectives_ == nullptr || collectives_->rank() == 0; }
  data::Batch first_of(data::LoaderConfig config) const;
  void choose_loss();
  void set_target_outputs();
  void require_soft_labels();
  void build_schedules();
  void build_optimizer();
  std::unique_ptr<optim::Optimizer> make_optimizer(const NamedTensors& parameters,
                                                   const NamedTensors& buffers) const;
  void build_strategy();
  std::vector<std::string> shared_gradient_order();
  void choose_buckets(const BuildStrategy& build);
  void require_shareable();
  /// Whether processes have stages of the model.
  bool is_pipeline() const;
  void require_pipeline();
  /// Whether processes have parts of the layers.
  bool divides_layers() const;
  bool divides_experts() const;
  /// Whether each process computes some tokens of each text.
  bool divides_tokens() const;
  void require_tensor();
  void require_whole_weights(const std::vector<std::string>& formats, const std::string& option);
  void require_divided_update();
  void require_replicas();
  void require_eager();
  void require_counted_blocks();
  size_t best_of(const std::vector<train::StepFormat>& formats);
  void require_precision();
  void build_first_model(const model::Task& shape, const std::string& resumed);
  void require_layers();
  void require_batch();
  void require_packed_rows();
  void require_sizes();
  int64_t input_sizes() const;      // The number of sizes of inputs along the run.
  int64_t planned_batches() const;  // In an epoch, if they differ in size; otherwise 0.
  void require_divisible_draws();
  void choose_format();
  void open_teacher(const std::string& runs);
  void choose_recomputed_blocks();
  std::unique_ptr<optim::Optimizer> planned_optimizer() const;
  void require_memory(const optim::Optimizer& planned);
  void resolve(const std::string& path, const std::string& value, const std::string& found);
  train::FormatChoice measure(const std::vector<train::StepFormat>& formats);
  double samples_of_run() const;
  void keep_choice(const std::string& options, const train::MeasuredChoice& choice, double scale);

  std::unique_ptr<parallel::Collectives> single_process_;
  parallel::Collectives* collectives_;
  ResolvedRecipe resolved_;
  Hardware hardware_;
  c10::Device device_ = c10::kCPU;
  LibtorchWarnings libtorch_warnings_;
  std::optional<GpuKernels> gpu_kernels_;  // Outlives what it computes with.
  std::unique_ptr<data::DataModule> data_;
  const train::Task* task_ = nullptr;  // A row of the registries' table.
  train::BatchHistory history_{1, 1};
  std::shared_ptr<const train::MetricSet> metrics_;
  std::shared_ptr<const data::BatchTransforms> batch_transforms_;
  train::TestViews views_;
  std::shared_ptr<const train::Loss> loss_, evaluation_loss_;
  train::StepFormat format_;
  std::string measured_;
  std::string recomputed_;
  std::string buckets_;
  std::vector<MadeChoice> choices_;
  std::unique_ptr<model::Model> model_;
  std::optional<TrainedModel> teacher_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<schedule::Schedule> schedule_;
  std::unique_ptr<parallel::Strategy> strategy_;
  ParameterSchedules scheduled_;
};

}  // namespace gallop::app
