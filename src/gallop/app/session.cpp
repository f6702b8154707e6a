#include "gallop/app/session.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/app/device.h"
#include "gallop/app/print.h"
#include "gallop/app/proven_training.h"
#include "gallop/app/recipe_components.h"
#include "gallop/app/training_memory.h"
#include "gallop/base/hardware.h"
#include "gallop/base/heap.h"
#include "gallop/base/memory.h"
#include "gallop/base/text.h"
#include "gallop/config/scalar.h"
#include "gallop/data/batch_slot.h"
#include "gallop/data/batch_transform.h"
#include "gallop/data/device_loader.h"
#include "gallop/parallel/initial_parameters.h"
#include "gallop/parallel/parameter_shards.h"
#include "gallop/parallel/pipeline.h"
#include "gallop/parallel/sharded_optimizer.h"
#include "gallop/parallel/zero.h"
#include "gallop/train/bucket_choice.h"
#include "gallop/train/checkpoint_slices.h"
#include "gallop/train/gradient_order.h"
#include "gallop/train/recompute_choice.h"

namespace gallop::app {

namespace {

using precision::Precision;

constexpr int64_t kTimedTexts = 4;
constexpr int64_t kOrderSamples = 4;
constexpr int64_t kVerifyEvery = 100;  // Steps.

// Warns about options that have no effect in a run of this length.
std::string early_stopping_note(const train::TrainConfig& config, const train::Length& length) {
  const auto every = train::Interval::parse(config.evaluate_every);
  const bool is_wanted = config.early_stopping.patience > 0 || config.early_stopping.restore_best;
  const bool is_by_time = every.unit == train::Interval::Unit::kSeconds;
  if (!is_wanted || is_by_time || length.step_of(every) < length.steps) return {};
  return fmt::format(
      "train.early_stopping has no effect: with train.evaluate_every='{}' this run of {} steps is "
      "evaluated only at its end",
      config.evaluate_every, length.steps);
}

bool has_weights(const data::Samples& samples) {
  const data::Fields& fields = samples.fields();
  return std::any_of(fields.begin(), fields.end(),
                     [](const data::Field& field) { return field.name == "weight"; });
}

// Batches of ragged fields have several lengths, and a step is compiled for each.
int64_t batch_lengths(const data::Samples& samples) {
  const data::Fields& fields = samples.fields();
  const bool is_ragged = std::any_of(fields.begin(), fields.end(), [](const data::Field& field) {
    return field.padding.has_value();
  });
  return is_ragged ? data::kBatchLengths : 1;
}

// Sampling and weights both correct for the sizes of classes.
std::string balancing_note(const data::SamplingConfig& sampling, const train::Loss& loss) {
  const NamedTensors tensors = loss.tensors();
  const bool balances = std::any_of(tensors.begin(), tensors.end(), [](const NamedTensor& tensor) {
    return tensor.name.starts_with("loss.class_weights") ||
           tensor.name.starts_with("loss.logit_adjustment");
  });
  if (sampling.is_uniform() || !balances) return {};
  return fmt::format(
      "data.sampling is {}, and train.loss has class weights or a logit adjustment too: both "
      "correct for the sizes of the classes; leave one of them out",
      sampling.name);
}

using MakeModel = std::function<std::unique_ptr<model::Model>(model::InitialWeights)>;

// The model on the meta device, of which sizes and types are known.
std::unique_ptr<model::Model> model_without_memory(const MakeModel& make,
                                                   model::InitialWeights weights,
                                                   parallel::CreationOrder& created,
                                                   const std::string& precision) {
  const TensorMemoryScope scope(created);
  weights.sizes_only = true;
  auto planned = make(weights);
  if (precision == name_of(Precision::kBf16Weights)) {
    precision::keep_in_bf16(planned->parameters());
  }
  return planned;
}

// What a recipe has that needs the whole model before the first step; empty if nothing does.
std::string why_made_whole(const Recipe& recipe, bool is_images) {
  const train::TrainConfig& config = recipe.train;
  const auto formats =
      train::candidate_formats(config.precision, config.channels_last, is_images, c10::kCPU);
  if (formats.size() > 1) {
    return fmt::format("number formats are measured with the whole model: set train.precision{}",
                       is_images ? " and train.channels_last" : "");
  }
  if (formats.front().channels_last || formats.front().precision == Precision::kBf16Weights) {
    return fmt::format("the whole model is converted to {}", formats.front().describe());
  }
  const std::string& most = config.activation_checkpointing.memory;
  if (most.empty() || most == "none") return {};
  return "train.activation_checkpointing.memory measures the whole model: set "
         "train.activation_checkpointing.every instead";
}

// Whether no process ever has the whole model. `planned` is without memory.
bool divides_parameters_at_once(const Recipe& recipe, const model::Model& planned, bool is_images,
                                const parallel::CreationOrder& created) {
  return parallel::divides_parameters(recipe.strategy.name()) &&
         why_made_whole(recipe, is_images).empty() && planned.images_to_initialize() == 0 &&
         !created.parameters(planned.parameters()).empty();
}

std::unique_ptr<model::Model> make_in_parts(const MakeModel& make,
                                            const model::InitialWeights& weights,
                                            const parallel::CreationOrder& created,
                                            const parallel::Collectives& collectives,
                                            const Recipe& recipe, const model::Model& planned,
                                            std::vector<optim::UpdateUnit> update_units) {
  const NamedTensors parameters = planned.parameters();
  const auto& options =
      dynamic_cast<const config::OptionsOf<parallel::Zero3Config>&>(recipe.strategy.options());
  const auto places = parallel::make_parameter_buckets(options.config, collectives,
                                                       {.parameters = parameters,
                                                        .update_units = std::move(update_units),
                                                        .blocks = planned.block_parameters()});
  parallel::InitialParameters in_parts(places, created.parameters(parameters));
  const TensorMemoryScope scope(in_parts);
  auto model = make(weights);
  places->release_all();
  return model;
}

void note(const std::string& line) {
  if (!line.empty()) print_error("gallop: warning: {}\n", printable(line));
}

}  // namespace

Session::Session(ResolvedRecipe resolved, const std::string& runs,
                 parallel::Collectives* collectives, const ResumedRun& resumed)
    : collectives_(collectives),
      resolved_(std::move(resolved)),
      hardware_(read_hardware()),
      libtorch_warnings_(note) {
  if (resolved_.is_auto("data", "batch_size")) {
    throw UsageError(
        "data.batch_size: auto is found where a run begins, by 'gallop train'; give a number here, "
        "such as data.batch_size=128, or what 'gallop find-batch' suggests");
  }
  const bool is_deterministic = recipe().strategy.name() == "deterministic";
  if (is_deterministic && collectives_ == nullptr) {
    single_process_ = parallel::single_process_group();
    collectives_ = single_process_.get();
  }
  // The results of some operators depend on the number of threads.
  if (is_deterministic && recipe().train.threads == 0) resolve("train.threads", "0", "1");
  note(set_compute_threads(recipe(), hardware_));
  const DeviceChoice choice = choose_device(recipe().train.device, recipe().train.deterministic);
  device_ = choice.device;
  note(choice.note);
  require_precision();
  if (collectives_ != nullptr) require_shareable();
  gpu_kernels_.emplace(device_);
  note(gpu_kernels_->fallback_reason());
  data_ = open_data(registries(), recipe());
  for (const auto& line : data_->notes) note(line);
  const int64_t size = data_->train->size();
  const int64_t batches = planned_batches();
  // Their mean, which learning rates that depend on the batch size are for.
  if (batches > 0) {
    resolved_.resolve("data.batch_size",
                      std::to_string(std::max<int64_t>(1, (size + batches / 2) / batches)));
  }
  const int64_t batch = recipe().data.batch_size;
  history_ = resumed.trainer.empty()
                 ? train::BatchHistory(batch, size, batches)
                 : train::BatchHistory::resumed(resumed.trainer, batch, size, batches);
  batch_transforms_ = data::build_batch_transforms(
      registries().batch_transforms, recipe().data.batch_transforms, data_->train->fields(),
      static_cast<int64_t>(inputs().classes.size()));
  task_ = &registries().tasks.find(inputs().task);
  choose_loss();
  std::vector<int64_t> class_counts;
  loss_ = build_loss(registries(), recipe(), inputs(), *data_->split(data::Part::kTrain), device_,
                     &class_counts);
  data_->signature.class_counts = class_counts;
  note(balancing_note(recipe().data.sampling, *loss_));
  require_soft_labels();
  evaluation_loss_ =
      evaluation_loss(loss_, registries(), recipe(), inputs(), *data_->train, device_);
  set_target_outputs();
  metrics_ =
      std::make_shared<train::MetricSet>(registries().metrics, metrics_for(recipe().metric, *task_),
                                         metric_task(inputs(), registries().tasks));
  build_schedules();
  const model::Task shape = model_task(inputs(), registries().tasks);
  views_ = train::test_views(recipe().evaluate, shape);
  model::InitialWeights weights(static_cast<uint64_t>(recipe().train.seed));
  weights.run = resumed.folder;
  const MakeModel make = [&](model::InitialWeights how) {
    return build_model(registries(), resolved_, shape, how);
  };
  if (collectives_ != nullptr && collectives_->size() > 1 && device_.is_cpu()) {
    parallel::CreationOrder created;
    model_ = model_without_memory(make, weights, created, recipe().train.precision);
    require_memory();
    model_ = divides_parameters_at_once(recipe(), *model_, inputs().is_images(), created)
                 ? make_in_parts(make, weights, created, *collectives_, recipe(), *model_,
                                 planned_optimizer()->update_units())
                 : make(weights);
  } else {
    model_ = make(weights);
  }
  if (is_first()) {
    for (const std::string& line : model_->notes()) note(line);
  }
  if (const int64_t images = model_->images_to_initialize(); images > 0) {
    model_->initialize_from(first_batch(images).input().cpu());
  }
  require_layers();
  require_batch();
  require_packed_rows();
  require_sizes();
  require_divisible_draws();
  open_teacher(runs);
  choose_format();
  if (format_.precision == precision::Precision::kBf16Weights) {
    precision::keep_in_bf16(model_->parameters());
  }
  if (collectives_ == nullptr || collectives_->size() == 1) require_memory();
  build_optimizer();
  scheduled_.check(recipe(), *optimizer_, *loss_);
  choose_recomputed_blocks();
  if (collectives_ != nullptr) build_strategy();
  if (shares_optimizer()) build_optimizer();  // The shards are known by now.
}

// Rejects options that are not supported with several processes.
void Session::require_shareable() {
  collectives_->set_limits(recipe().limits);
  if (collectives_->size() == 1) return;
  if (!device_.is_cpu() && recipe().train.compile != "auto" && recipe().train.compile != "false") {
    throw UsageError(
        "steps of several processes are compiled on CPUs only so far; give train.compile=false, or "
        "start one process");
  }
  if (is_pipeline()) {
    require_pipeline();
  } else if (shares_optimizer()) {
    train::StepConfig config;
    config.clip_adaptive = recipe().train.clip_adaptive;
    config.sam = recipe().train.sam;
    train::check_division(config, recipe().strategy.name());
  }
  if (recipe().track.histograms && parallel::divides_parameters(recipe().strategy.name())) {
    throw UsageError(fmt::format(
        "track.histograms with parallel.name={}: histograms are of whole parameters, of which a "
        "process has only parts; set track.histograms=false, or take parallel.name=zero-2",
        recipe().strategy.name()));
  }
  if (recipe().train.prove) require_provable_strategy(recipe(), collectives_->size());
  if (recipe().train.compile == "verify") {
    throw UsageError(
        "train.compile=verify needs a single process, as its dry runs take no part in collectives; "
        "give "
        "train.compile=true, or start one process");
  }
}

bool Session::is_pipeline() const {
  return shares_optimizer() && recipe().strategy.name() == "pipeline";
}

// Rejects what a pipeline cannot do, before data are opened.
void Session::require_pipeline() {
  const auto& options =
      dynamic_cast<const config::OptionsOf<parallel::PipelineConfig>&>(recipe().strategy.options());
  parallel::check_pipeline(options.config, collectives_->size(),
                           recipe().train.gradient_accumulation, recipe().data.batch_size);
  if (recipe().train.sam) {
    train::StepConfig config;
    config.sam = recipe().train.sam;
    train::check_division(config, "pipeline");
  }
  if (recipe().train.compile != "auto" && recipe().train.compile != "false") {
    throw UsageError(fmt::format(
        "train.compile={} with parallel.name=pipeline: steps of a pipeline are not compiled yet; "
        "leave train.compile out, or set it to false",
        recipe().train.compile));
  }
  resolve("train.compile", recipe().train.compile, "false");
  if (!recipe().train.activation_checkpointing.memory.empty() &&
      recipe().train.activation_checkpointing.memory != "none") {
    throw UsageError(
        "train.activation_checkpointing.memory with parallel.name=pipeline: it measures a whole "
        "step in one process; set train.activation_checkpointing.every instead");
  }
}

void Session::require_precision() {
  const std::string& name = recipe().train.precision;
  if (name == "auto") return;
  const auto precision = precision::parse_precision(name);
  // The GPU is only queried for precisions that require a certain one.
  if (precision != Precision::kTf32 && precision != Precision::kFp8) return;
  precision::require_available(precision, capability_of(device_));
}

void Session::require_layers() {
  if (recipe().train.precision != name_of(Precision::kFp8) || model_->fp8_layers() > 0) return;
  throw UsageError(fmt::format(
      "train.precision is fp8, but model '{}' has no linear layer for it: sizes must be multiples "
      "of 16, the last layer stays in bf16, and so do convolutions; take train.precision=bf16",
      recipe().model.name()));
}

// Every step must have the number of samples that the model was exported for.
void Session::require_batch() {
  const int64_t fixed = model_->fixed_batch();
  if (fixed == 0) return;
  const int64_t processes = collectives_ == nullptr ? 1 : collectives_->size();
  const int64_t batch = fixed * processes * recipe().train.gradient_accumulation;
  const std::string cause =
      fmt::format("model '{}' was exported for batches of {} alone", recipe().model.name(), fixed);
  const std::string remedy = "export it with a Dim for dimension 0 of every input";
  if (data_->batches) {
    throw UsageError(
        fmt::format("{}, and batches of data.max_tokens differ in size; leave it out", cause));
  }
  if (recipe().data.batch_size != batch) {
    throw UsageError(fmt::format("{}: {}, or set data.batch_size={}", cause, remedy, batch));
  }
  const int64_t size = data_->train->size();
  if (size % batch == 0) return;
  throw UsageError(fmt::format("{}, and {} training samples leave a last batch of {}: {}", cause,
                               format_count(size), size % batch, remedy));
}

// Rows of several texts, and a number of rows that differs from batch to batch.
void Session::require_packed_rows() {
  if (!recipe().data.packing) return;
  if (!model_->takes_packed_rows()) {
    throw UsageError(fmt::format(
        "data.packing needs a model that keeps the texts of a row apart, as 'gpt' does, or "
        "'layers' "
        "without convolutions, recurrent layers and pooling; model '{}' does not: leave "
        "data.packing out, or reduce the padding with data.group_by_length",
        recipe().model.name()));
  }
  if (recipe().strategy.name() == "deterministic") {
    throw UsageError(
        "data.packing with parallel.name=deterministic: that strategy divides a batch by rows, and "
        "packed rows depend on the number of processes; take parallel.name=ddp, or "
        "data.group_by_length");
  }
  if (is_pipeline()) {
    throw UsageError(
        "data.packing with parallel.name=pipeline, which passes on inputs without their positions; "
        "take parallel.name=ddp, or data.group_by_length");
  }
}

// Inputs whose size changes along the run.
void Session::require_sizes() {
  const auto& resizing = recipe().train.progressive_resizing;
  if (resizing.initial_scale < 1) {
    const bool has_pixels_as_targets = data_->train->fields().target().shape.sizes.size() > 1;
    if (!inputs().is_images() || has_pixels_as_targets) {
      throw UsageError(
          "train.progressive_resizing is for images with a class or numbers as targets; leave it "
          "out");
    }
    if (!model_->takes_any_size()) {
      throw UsageError(fmt::format(
          "train.progressive_resizing needs a model for images of any size, as 'resnet' is; model "
          "'{}' has weights for one size: leave it out",
          recipe().model.name()));
    }
    if (resizing.delay_fraction + resizing.finetune_fraction > 1) {
      throw UsageError(
          fmt::format("train.progressive_resizing: delay_fraction {} and finetune_fraction {} are "
                      "together more "
                      "than the run; make one of them smaller",
                      resizing.delay_fraction, resizing.finetune_fraction));
    }
  }
  if (recipe().train.seq_length_warmup.duration == 0) return;
  const bool has_targets_per_token = !data_->train->fields().target().shape.sizes.empty();
  if (!inputs().is_text() || !has_targets_per_token || inputs().views > 1) {
    throw UsageError(
        "train.seq_length_warmup is for texts with a target for each token, which it cuts off; "
        "leave "
        "it out");
  }
  if (recipe().model.name() == "exported") {
    throw UsageError(
        "train.seq_length_warmup: an exported model may have been exported for one length; leave "
        "it "
        "out, or take model 'gpt'");
  }
}

int64_t Session::input_sizes() const {
  if (inputs().is_images()) {
    return train::count_sizes(recipe().train.progressive_resizing,
                              std::max(inputs().height, inputs().width));
  }
  return inputs().is_text() ? train::count_sizes(recipe().train.seq_length_warmup, inputs().context)
                            : 1;
}

// The strategy promises the same numbers for any number of processes.
void Session::require_divisible_draws() {
  if (recipe().strategy.name() != "deterministic") return;
  const std::string draw = model_->draws_from_generator();
  if (draw.empty()) return;
  throw UsageError(fmt::format(
      "parallel.name is deterministic, but model '{}' draws random numbers that depend on the "
      "number of processes: {}; take parallel.name=ddp",
      recipe().model.name(), draw));
}

void Session::open_teacher(const std::string& runs) {
  const std::string& name = recipe().train.distill.teacher;
  if (name.empty()) return;
  try {
    teacher_.emplace(open_trained_model(registries(), runs, name, "best", {}));
    check_fits(inputs(), teacher_->inputs);
  } catch (const Error& error) {
    throw UsageError(fmt::format("train.distill.teacher: {}", error.what()));
  }
  if (!normalize_alike(inputs(), teacher_->inputs)) {
    throw UsageError(fmt::format(
        "train.distill.teacher: {} was trained on images normalized by another mean or deviation; "
        "give this run its data.mean and data.std, which stand in {}/inputs.yaml",
        name, teacher_->folder.string()));
  }
  for (const auto& parameter : teacher_->model->parameters()) {
    parameter.tensor.set_requires_grad(false);
  }
  teacher_->model->set_training(false);
}

std::string Session::teacher() const {
  if (!teacher_) return {};
  return train::CheckpointStore(teacher_->checkpoint.folder.parent_path())
      .model_checksum(teacher_->checkpoint);
}

// Selects the default loss of the data's task. Other processes receive the complete recipe from
// rank 0.
void Session::choose_loss() {
  const std::string loss = parallel::run_on_rank0(collectives_, [this] {
    return resolved_.find("train", "loss") != nullptr ? recipe().loss.name() : task_->loss;
  });
  resolve("train.loss", recipe().loss.name(), loss);
}

// A loss may need several outputs for each predicted number.
void Session::set_target_outputs() {
  data_->signature.target_outputs = loss_->output_names();
  if (!inputs().target_mean.empty() && !loss_->traits().is_of_units) {
    throw UsageError(
        fmt::format("train.loss: {} is not for targets of mean 0 and deviation 1; set "
                    "data.standardize_targets=false",
                    recipe().loss.name()));
  }
  if (loss_->output_names().empty() || task_->target == train::MetricTask::Target::kNumbers) return;
  throw UsageError(fmt::format(
      "train.loss: {} needs the outputs {} for each target, which are numbers in the tasks of "
      "regression; the task of these data is {}",
      recipe().loss.name(), join_names(loss_->output_names(), "and"), task_->name));
}

void Session::require_soft_labels() {
  if (!batch_transforms_ || !batch_transforms_->softens_labels()) return;
  if (loss_->traits().takes_soft_labels) return;
  throw UsageError(fmt::format(
      "data.batch_transforms mixes samples, which turns class labels into probabilities of the "
      "classes, and train.loss: {} needs labels; take train.loss=cross-entropy",
      recipe().loss.name()));
}

void Session::build_schedules() {
  const train::TrainConfig& config = recipe().train;
  const bool evaluates = data_->evaluation() != nullptr;
  const train::Length of_run = length();
  train::check_evaluations(config, evaluates);
  note(early_stopping_note(config, of_run));
  const schedule::RunLength run_length = of_run.for_schedules();
  schedule_ = registries().schedules.build(recipe().schedule, run_length);
  train::check_schedule(*schedule_, config, evaluates);
  train::check_followed(*schedule_, metrics_.get());
  train::check_snapshots(*schedule_, config);
  scheduled_ = ParameterSchedules(recipe(), run_length, *schedule_);
  for (const auto& one : scheduled()) {
    if (one.schedule == nullptr) continue;
    train::check_schedule(*one.schedule, config, evaluates);
    train::check_followed(*one.schedule, metrics_.get());
  }
}

bool Session::shares_optimizer() const {
  return collectives_ != nullptr && collectives_->size() > 1 &&
         parallel::divides_update(recipe().strategy.name());
}

// The optimizer, without memory.
std::unique_ptr<optim::Optimizer> Session::planned_optimizer() const {
  return make_optimizer(parallel::on_meta(model_->parameters()),
                        parallel::on_meta(model_->buffers()));
}

// Rejects a training for which memory is known not to suffice, rather than to be killed in it.
void Session::require_memory() {
  if (!device_.is_cpu()) return;
  const bool is_there = !model_->parameters().front().tensor.is_meta();
  TrainingMemory memory{.state = train::bytes_of(planned_optimizer()->state()),
                        .has_model = is_there};
  for (const auto& [name, tensor] : model_->parameters()) {
    if (tensor.requires_grad()) memory.parameters += static_cast<int64_t>(tensor.nbytes());
  }
  memory.processes = collectives_ != nullptr ? collectives_->size() : 1;
  memory.strategy = collectives_ != nullptr ? recipe().strategy.name() : "ddp";
  memory.has_blocks = !model_->block_parameters().empty();
  if (!is_there && parallel::divides_parameters(memory.strategy)) {
    memory.why_whole = why_made_whole(recipe(), inputs().is_images());
  }
  std::string wrong;
  if (collectives_ == nullptr) {
    wrong = why_not_enough(memory, available_memory(), retained_bytes());
  } else {
    // None has its model yet when all have come here.
    const auto hosts = parallel::gather(*collectives_, host_name());
    memory.processes_here = std::count(hosts.begin(), hosts.end(), host_name());
    // The heap's reserve, which has not been touched so early, counts as available.
    const int64_t own = is_there ? retained_bytes() : 0;
    const auto retained = parallel::gather(*collectives_, static_cast<uint64_t>(own));
    int64_t retained_here = 0;
    for (size_t rank = 0; rank < hosts.size(); ++rank) {
      if (hosts[rank] == host_name()) retained_here += static_cast<int64_t>(retained[rank]);
    }
    const auto of_all =
        parallel::gather(*collectives_, why_not_enough(memory, available_memory(), retained_here));
    const auto found =
        std::find_if(of_all.begin(), of_all.end(), [](const auto& text) { return !text.empty(); });
    if (found != of_all.end()) wrong = *found;
  }
  if (!wrong.empty()) throw UsageError(wrong);
}

// Before there is a strategy, an optimizer that processes share is made without memory.
void Session::build_optimizer() {
  const auto make = [this](const NamedTensors& parameters, const NamedTensors& buffers) {
    return make_optimizer(parameters, buffers);
  };
  if (strategy_ && strategy_->pipeline() != nullptr) {
    optimizer_ = parallel::make_stage_optimizer(strategy_->pipeline()->parameters(),
                                                model_->buffers(), make);
    train::check_optimizer(step_config(), *optimizer_);
  } else if (strategy_ && strategy_->shards() != nullptr) {
    optimizer_ = parallel::make_sharded_optimizer(*strategy_->shards(), model_->buffers(), make);
    train::check_optimizer(step_config(), *optimizer_);
  } else if (shares_optimizer()) {
    optimizer_ = planned_optimizer();
  } else {
    optimizer_ = make_optimizer(*model_);
  }
}

std::unique_ptr<optim::Optimizer> Session::make_optimizer(const model::Model& model) const {
  return make_optimizer(model.parameters(), model.buffers());
}

std::unique_ptr<optim::Optimizer> Session::make_optimizer(const NamedTensors& parameters,
                                                          const NamedTensors& buffers) const {
  auto optimizer = registries().optimizers.build(recipe().optimizer, parameters);
  train::check_optimizer(step_config(), *optimizer);
  return optim::wrap(registries().wrappers, recipe().wrappers,
                     {.optimizer = std::move(optimizer),
                      .parameters = parameters,
                      .buffers = buffers,
                      .length = length().for_updates()});
}

std::unique_ptr<model::Model> Session::make_model() const {
  auto model = build_model(registries(), resolved_, model_task(inputs(), registries().tasks),
                           static_cast<uint64_t>(recipe().train.seed));
  model->to(device_, /*channels_last=*/false);
  return model;
}

// Must be last, as the order of gradients depends on the whole step.
void Session::build_strategy() {
  parallel::ModelTensors tensors{.parameters = model_->parameters(),
                                 .buffers = model_->statistics(),
                                 .update_units = optimizer_->update_units(),
                                 .blocks = model_->block_parameters()};
  const auto build = [&](const Recipe& recipe) {
    return registries().strategies.build(recipe.strategy, *collectives_, tensors);
  };
  if (is_pipeline()) {
    const model::BlockSequence blocks = model_->block_sequence();
    tensors.sequence = {.tensors = blocks.tensors, .tied = blocks.tied};
  } else if (collectives_->size() > 1) {
    // Parameters in parts lie in the order of blocks.
    if (!parallel::divides_parameters(recipe().strategy.name())) {
      tensors.gradient_order = shared_gradient_order();
    }
    if (resolved_.is_auto("parallel", "bucket")) choose_buckets(build);
  }
  strategy_ = build(recipe());
  model_->set_block_hooks(strategy_->block_hooks());
}

// Broadcasts rank 0's gradient order.
std::vector<std::string> Session::shared_gradient_order() {
  return parallel::run_on_rank0(collectives_, [&] {
    const data::Batch some = first_batch(kOrderSamples);
    train::seed_step(static_cast<uint64_t>(recipe().train.seed), 0, device_);
    return train::gradient_order(*model_, some.by_role(), format_.precision, *loss_);
  });
}

void Session::choose_buckets(const BuildStrategy& build) {
  data::LoaderConfig config = training_loader();
  config.threads = 0;
  data::DeviceLoader loader(*data_->train, config, {.seed = recipe().train.seed}, device_);
  const data::Batch batch = *loader.next();
  const auto with_buckets_of = [&](const std::string& size) {
    ResolvedRecipe trial = resolved_;
    trial.resolve("parallel.bucket", size);
    return build(trial.recipe);
  };
  const auto choice =
      train::choose_bucket({.model = *model_,
                            .optimizer = *optimizer_,
                            .batch = batch,
                            .step = step_config(),
                            .make_strategy = with_buckets_of,
                            .uses = samples_of_run() / static_cast<double>(batch.whole_size)},
                           *collectives_);
  buckets_ = train::describe_bucket(choice);
  if (choice.rounds > 0) keep_choice("parallel.bucket=auto", choice, /*scale=*/1);
  resolved_.resolve("parallel.bucket", choice.candidates[choice.chosen].name);
}

data::LoaderConfig Session::training_loader() const {
  data::LoaderConfig config = data::training_loader(resolved_.recipe.data, hardware_.cores);
  config.transforms = batch_transforms_;
  config.plan = data_->batches;
  // The first stage of a pipeline reads inputs, and the last one targets.
  if (collectives_ == nullptr || is_pipeline()) return config;
  config.part = collectives_->rank();
  config.parts = collectives_->size();
  return config;
}

train::EvaluateConfig Session::evaluate_config() const {
  return {.loader = data::evaluation_loader(resolved_.recipe.data, hardware_.cores),
          .precision = precision::for_evaluation(format_.precision),
          .device = device_,
          .views = resolved_.recipe.evaluate.tta_in_training ? views_ : train::TestViews(),
          .collectives = collectives_,
          .metrics = metrics_,
          .loss = evaluation_loss_};
}

train::StepConfig Session::step_config() const {
  const train::TrainConfig& recipe = resolved_.recipe.train;
  train::StepConfig config{.precision = format_.precision,
                           .loss_scale = recipe.loss_scale,
                           .gradient_accumulation = recipe.gradient_accumulation,
                           .clip_grad_norm = recipe.clip_grad_norm,
                           .clip_value = recipe.clip_value,
                           .clip_adaptive = recipe.clip_adaptive,
                           .sam = recipe.sam,
                           .loss = loss_,
                           .every_target_counts = data_->train->every_target_counts(),
                           .has_weights = has_weights(*data_->train),
                           .seed = static_cast<uint64_t>(recipe.seed)};
  config.strategy = strategy_.get();
  if (recipe.spikes.action != "none") config.spikes = recipe.spikes;
  if (teacher_) {
    config.distill = train::Distillation{.teacher = teacher_->model.get(),
                                         .temperature = recipe.distill.temperature,
                                         .weight = recipe.distill.weight};
  }
  for (const auto& one : scheduled()) config.scheduled.push_back(one.value);
  if (recipe.compile != "false") {
    config.compile = compile::CompileConfig{
        .graphs = compile::CompileConfig().graphs * batch_lengths(*data_->train) * input_sizes(),
        .verify_every = recipe.compile == "verify" ? kVerifyEvery : 0};
  }
  return config;
}

data::Batch Session::first_batch(int64_t most) const {
  data::LoaderConfig config = data::training_loader(resolved_.recipe.data, hardware_.cores);
  config.batch = most;
  config.transforms = batch_transforms_;
  return first_of(config);
}

bool Session::has_convolutions() {
  const NamedTensors parameters = model_->parameters();
  return inputs().is_images() &&
         std::any_of(parameters.begin(), parameters.end(),
                     [](const NamedTensor& one) { return one.tensor.dim() == 4; });
}

data::Batch Session::first_part() const { return first_of(training_loader()); }

data::Batch Session::first_of(data::LoaderConfig config) const {
  config.batch = std::min(data_->train->size(), config.batch);
  config.threads = 0;
  data::DeviceLoader loader(*data_->train, config, {.seed = resolved_.recipe.train.seed}, device_);
  return *loader.next();
}

std::string Session::describe_training() const {
  std::string optimizer = resolved_.recipe.optimizer.name();
  for (const auto& wrapper : resolved_.recipe.wrappers.items)
    optimizer += " with " + wrapper.name();
  const bool is_fp8 = format_.precision == Precision::kFp8;
  const std::string layers =
      is_fp8 ? fmt::format(" in {} linear layers", model_->fp8_layers()) : std::string();
  return fmt::format("{}, schedule {}, {}{} on {}{}{}{}", optimizer,
                     resolved_.recipe.schedule.name(), format_.describe(), layers,
                     device_.is_cuda() ? "GPU" : "CPU",
                     resolved_.recipe.train.compile == "false" ? "" : ", compiled",
                     measured_.empty() ? "" : " (measured " + measured_ + ")", recomputed_);
}

// Measures options that are "auto", and stores the results in the run's recipe.
void Session::choose_format() {
  train::TrainConfig& config = recipe().train;
  const auto formats = train::candidate_formats(config.precision, config.channels_last,
                                                inputs().is_images(), device_);
  format_ = formats.front();
  if (formats.size() > 1) {
    format_ = formats[best_of(formats)];
  }
  model_->to(device_, format_.channels_last);
  if (teacher_) teacher_->model->to(device_, format_.channels_last);
  resolve("train.precision", config.precision, precision::name_of(format_.precision));
  if (config.compile == "auto") {
    const bool can = device_.is_cpu() || collectives_ == nullptr || collectives_->size() == 1;
    resolve("train.compile", config.compile, can ? "true" : "false");
  }
  resolve("train.channels_last", config.channels_last, format_.channels_last ? "true" : "false");
}

// Measured by rank 0 for all processes.
size_t Session::best_of(const std::vector<train::StepFormat>& formats) {
  const auto choose = [&] {
    const train::FormatChoice choice = measure(formats);
    measured_ = choice.measured.times(choice.scale);
    std::string open;
    for (const auto& [option, value] : {std::pair("train.precision", recipe().train.precision),
                                        {"train.channels_last", recipe().train.channels_last}}) {
      if (value == "auto") open += fmt::format("{}{}=auto", open.empty() ? "" : " ", option);
    }
    keep_choice(open, choice.measured, choice.scale);
    const auto chosen = std::find(formats.begin(), formats.end(), choice.format);
    return static_cast<size_t>(chosen - formats.begin());
  };
  return parallel::run_on_rank0(collectives_, choose);
}

// Records a choice, with a warning if the machine was busy.
void Session::keep_choice(const std::string& options, const train::MeasuredChoice& choice,
                          double scale) {
  choices_.push_back({.options = options,
                      .evidence = choice.evidence(scale),
                      .is_uncertain = choice.is_uncertain()});
  if (!choice.is_uncertain() || !is_first()) return;
  note(fmt::format(
      "the machine is busy with other programs, so that the choice of {} may not be the "
      "fastest: {}",
      options, choices_.back().evidence));
}

void Session::choose_recomputed_blocks() {
  const train::TrainConfig& config = recipe().train;
  const int64_t blocks = model_->blocks();
  const auto most_bytes = parse_bytes(config.activation_checkpointing.memory);
  if (config.activation_checkpointing.every == 0 && !most_bytes) return;
  if (blocks == 0) {
    throw UsageError(fmt::format(
        "train.activation_checkpointing: recomputing blocks of model '{}' would not save "
        "memory; remove it",
        recipe().model.name()));
  }
  std::vector<bool> chosen = train::every_block(blocks, config.activation_checkpointing.every);
  if (most_bytes) {
    const int64_t batch = std::min(recipe().data.batch_size, data_->train->size());
    const int64_t rows = (batch + config.gradient_accumulation - 1) / config.gradient_accumulation;
    const data::Batch some = first_batch(train::kMeasuredRows);
    train::seed_step(static_cast<uint64_t>(config.seed), 0, device_);
    train::RecomputeMeasure measure{.batch = some.by_role(),
                                    .precision = format_.precision,
                                    .loss = loss_,
                                    .rows = std::max<int64_t>(1, rows * some.rows() / some.size())};
    for (const auto& list : {model_->parameters(), model_->buffers()})
      measure.state_bytes += train::bytes_of(list);
    const int64_t sharers = shares_optimizer() ? collectives_->size() : 1;
    measure.state_bytes += train::bytes_of(optimizer_->state()) / sharers;
    const auto choice = train::choose_blocks(*model_, measure, *most_bytes);
    chosen = choice.blocks;
    recomputed_ = fmt::format(", {} predicted", format_bytes(choice.bytes));
  }
  model_->recompute(chosen);
  recomputed_ = fmt::format(", {} of {} blocks recomputed{}",
                            std::count(chosen.begin(), chosen.end(), true), blocks, recomputed_);
}

train::FormatChoice Session::measure(const std::vector<train::StepFormat>& formats) {
  const int64_t rows =
      std::min(resolved_.recipe.data.batch_size, inputs().is_text() ? kTimedTexts : kTimedSamples);
  const data::Batch batch = first_batch(rows);
  model_->to(device_, false);
  train::seed_step(static_cast<uint64_t>(recipe().train.seed), 0, device_);
  return train::choose_format(*model_, batch.by_role(), formats, *loss_,
                              samples_of_run() / static_cast<double>(batch.size()));
}

int64_t Session::planned_batches() const { return data_->batches ? data_->batches->batches() : 0; }

// The maximum number of remaining samples.
double Session::samples_of_run() const {
  const Recipe& recipe = resolved_.recipe;
  return static_cast<double>(
      train::Length::of(recipe.train, train::BatchHistory(recipe.data.batch_size,
                                                          data_->train->size(), planned_batches()))
          .samples);
}

void Session::resolve(const std::string& path, const std::string& value, const std::string& found) {
  if (value != found) resolved_.resolve(path, found);
}

double Session::lr_factor() const {
  return resolved_.recipe.lr_scaling.factor(resolved_.recipe.data.batch_size);
}

void Session::take_lr(double lr) {
  resolved_.resolve("optimizer.lr", config::number_text(lr));
  build_optimizer();
}

}  // namespace gallop::app
