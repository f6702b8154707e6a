#include "gallop/app/session.h"

#include <algorithm>

#include <fmt/format.h>

#include "gallop/app/device.h"
#include "gallop/app/initial_model.h"
#include "gallop/app/print.h"
#include "gallop/app/recipe_components.h"
#include "gallop/base/hardware.h"
#include "gallop/base/text.h"
#include "gallop/config/scalar.h"
#include "gallop/data/batch_slot.h"
#include "gallop/data/batch_transform.h"
#include "gallop/data/device_loader.h"
#include "gallop/parallel/parameter_shards.h"
#include "gallop/parallel/pipeline.h"
#include "gallop/tensor/block_hooks.h"
#include "gallop/tensor/tensor_group.h"
#include "gallop/train/step/checks.h"

namespace gallop::app {

namespace {

using precision::Precision;

constexpr int64_t kVerifyEvery = 100;  // Steps.

// Warns about what has no effect in a run of this length, because it follows earlier evaluations.
std::string one_evaluation_note(const std::string& what, const train::TrainConfig& config,
                                const train::Length& length) {
  const auto every = train::Interval::parse(config.evaluate_every);
  const bool is_by_time = every.unit == train::Interval::Unit::kSeconds;
  if (is_by_time || length.step_of(every) < length.steps) return {};
  return fmt::format(
      "{} has no effect: with train.evaluate_every='{}' this run of {} steps is evaluated only at "
      "its end",
      what, config.evaluate_every, length.steps);
}

std::string early_stopping_note(const train::TrainConfig& config, const train::Length& length) {
  const bool is_wanted = config.early_stopping.patience > 0 || config.early_stopping.restore_best;
  return is_wanted ? one_evaluation_note("train.early_stopping", config, length) : std::string();
}

// Batches of ragged fields have several lengths, and a step is compiled for each.
int64_t batch_lengths(const data::Samples& samples) {
  const data::Fields& fields = samples.fields();
  const bool is_ragged = std::any_of(fields.begin(), fields.end(), [](const data::Field& field) {
    return field.padding.has_value();
  });
  return is_ragged ? data::kBatchLengths : 1;
}

// Data of plug-ins may have such labels; those of built-in data are classes or kIgnoredTarget.
std::string ignored_label_note(const train::Loss& loss, int64_t classes) {
  const int64_t ignored = loss.traits().ignored;
  if (ignored == data::kIgnoredTarget || classes == 0) return {};
  if (0 <= ignored && ignored < classes) return {};
  return fmt::format(
      "train.loss.ignore_index is {}, and the classes are 0 to {}: it has an effect only if the "
      "data have targets of this value; omit it for the default, {}",
      ignored, classes - 1, data::kIgnoredTarget);
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

}  // namespace

Session::Session(ResolvedRecipe resolved, const std::string& runs,
                 parallel::Collectives* collectives, const ResumedRun& resumed)
    : collectives_(collectives),
      resolved_(std::move(resolved)),
      hardware_(read_hardware()),
      libtorch_warnings_(print_warning) {
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
  print_warning(set_compute_threads(recipe(), hardware_));
  const DeviceChoice choice = choose_device(recipe().train.device, recipe().train.deterministic);
  device_ = choice.device;
  print_warning(choice.note);
  require_precision();
  if (collectives_ != nullptr) require_shareable();
  gpu_kernels_.emplace(device_);
  print_warning(gpu_kernels_->fallback_reason());
  data_ = open_data(registries(), recipe());
  for (const auto& line : data_->notes) print_warning(line);
  const int64_t size = data_->train->size();
  const int64_t batches = planned_batches();
  // Their mean, which learning rates that depend on the batch size are for.
  if (batches > 0) {
    resolved_.resolve("data.batch_size",
                      std::to_string(std::max<int64_t>(1, (size + batches / 2) / batches)));
  }
  const int64_t batch = recipe().data.batch_size;
  history_ = train::new_history(recipe().train, batch, size, batches);
  if (!resumed.trainer.empty()) {
    history_ = train::BatchHistory::resumed(resumed.trainer, history_);
  }
  batch_transforms_ = data::build_batch_transforms(
      registries().batch_transforms, recipe().data.batch_transforms, data_->train->fields(),
      static_cast<int64_t>(inputs().classes.size()));
  task_ = &registries().tasks.find(inputs().task);
  choose_loss();
  std::vector<int64_t> class_counts;
  loss_ = build_loss(registries(), recipe(), inputs(), *data_->split(data::Part::kTrain), device_,
                     &class_counts);
  data_->signature.class_counts = class_counts;
  print_warning(balancing_note(recipe().data.sampling, *loss_));
  require_soft_labels();
  evaluation_loss_ =
      evaluation_loss(loss_, registries(), recipe(), inputs(), *data_->train, device_);
  set_target_outputs();
  data_->signature.blank = loss_->traits().blank.value_or(inputs().blank);
  metrics_ =
      std::make_shared<train::MetricSet>(registries().metrics, metrics_for(recipe().metric, *task_),
                                         metric_task(inputs(), registries().tasks));
  build_schedules();
  const model::Task shape = model_task(inputs(), registries().tasks);
  print_warning(ignored_label_note(*loss_, shape.classes));
  views_ = train::test_views(recipe().evaluate, shape);
  build_first_model(shape, resumed.folder);
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
  if (processes() == 1) require_memory(*planned_optimizer());
  build_optimizer();
  scheduled_.check(recipe(), *optimizer_, *loss_);
  choose_recomputed_blocks();
  if (collectives_ != nullptr) build_strategy();
  if (shares_optimizer()) build_optimizer();  // The shards are known by now.
}

// With initial weights. Several processes know its size before it takes memory.
void Session::build_first_model(const model::Task& shape, const std::string& resumed) {
  model::InitialWeights weights(static_cast<uint64_t>(recipe().train.seed));
  weights.run = resumed;
  const MakeModel make = [&](model::InitialWeights how) {
    return build_model(registries(), resolved_, shape, how);
  };
  if (collectives_ != nullptr && collectives_->size() > 1 && device_.is_cpu()) {
    parallel::CreationOrder created;
    model_ = model_without_memory(make, weights, created, recipe().train.precision);
    const auto planned = planned_optimizer();
    require_memory(*planned);
    model_ = divides_parameters_at_once(recipe(), *model_, inputs().is_images(), created)
                 ? make_in_parts(make, weights, created, *collectives_, recipe(), *model_,
                                 planned->update_units())
                 : make(weights);
  } else {
    model_ = make(weights);
  }
  if (is_first()) {
    for (const std::string& line : model_->notes()) print_warning(line);
  }
  if (const int64_t images = model_->images_to_initialize(); images > 0) {
    model_->initialize_from(first_batch(images).input().cpu());
  }
}

bool Session::is_pipeline() const {
  return shares_optimizer() && recipe().strategy.name() == "pipeline";
}

bool Session::divides_layers() const { return mesh().size(parallel::kTensorAxis) > 1; }

int Session::processes() const { return collectives_ != nullptr ? collectives_->size() : 1; }

bool Session::divides_experts() const { return mesh().size(parallel::kExpertAxis) > 1; }

bool Session::divides_tokens() const { return mesh().size(parallel::kContextAxis) > 1; }

parallel::DeviceMesh Session::mesh() const {
  return parallel::mesh_of(recipe().strategy, processes());
}

int64_t Session::input_sizes() const {
  const auto batches = static_cast<int64_t>(
      train::rampup_sizes(recipe().train.rampup_batch_size, recipe().data.batch_size).size());
  if (inputs().is_images()) {
    return batches * train::count_sizes(recipe().train.progressive_resizing,
                                        std::max(inputs().height, inputs().width));
  }
  if (!inputs().is_text()) return batches;
  return batches * train::count_sizes(recipe().train.seq_length_warmup, inputs().context);
}

void Session::open_teacher(const std::string& runs) {
  const std::string& name = recipe().train.distill.teacher;
  if (name.empty()) return;
  if (!task().has_classes()) {
    throw UsageError(
        fmt::format("train.distill compares probabilities of classes, and the task of these data "
                    "is {}; omit it",
                    inputs().task));
  }
  try {
    teacher_.emplace(open_trained_model(registries(), runs, name, "best", {}));
    check_fits(inputs(), teacher_->inputs);
  } catch (const Error& error) {
    throw UsageError(fmt::format("train.distill.teacher: {}", error.what()));
  }
  if (!normalize_alike(inputs(), teacher_->inputs)) {
    throw UsageError(
        fmt::format("train.distill.teacher: {} was trained on images normalized by another mean or "
                    "deviation; set data.mean and data.std to the values in {}/inputs.yaml",
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
  if (loss_->output_names().empty() || task_->has_number_targets()) return;
  throw UsageError(fmt::format(
      "train.loss: {} needs the outputs {} for each target, which are numbers in the tasks of "
      "regression; the task of these data is {}",
      recipe().loss.name(), join_names(loss_->output_names(), "and"), task_->name));
}

void Session::build_schedules() {
  const train::TrainConfig& config = recipe().train;
  const bool evaluates = data_->evaluation() != nullptr;
  const train::Length of_run = length();
  train::check_evaluations(config, evaluates);
  print_warning(early_stopping_note(config, of_run));
  const schedule::RunLength run_length = of_run.for_schedules();
  schedule_ = registries().schedules.build(recipe().schedule, run_length);
  train::check_schedule(*schedule_, config, evaluates);
  train::check_followed(*schedule_, metrics_.get());
  train::check_snapshots(*schedule_, config);
  const auto warn_if_constant = [&](const std::string& option, const schedule::Schedule& one) {
    if (!one.state().empty()) print_warning(one_evaluation_note(option, config, of_run));
  };
  warn_if_constant("schedule.name=" + recipe().schedule.name(), *schedule_);
  scheduled_ = ParameterSchedules(recipe(), run_length, *schedule_);
  for (const auto& one : scheduled()) {
    if (one.schedule == nullptr) continue;
    train::check_schedule(*one.schedule, config, evaluates);
    train::check_followed(*one.schedule, metrics_.get());
    warn_if_constant(fmt::format("schedules.{}", train::name_of(one.value)), *one.schedule);
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

// Before there is a strategy, an optimizer that processes share is made without memory.
void Session::build_optimizer() {
  const auto make = [this](const NamedTensors& parameters, const NamedTensors& buffers) {
    return make_optimizer(parameters, buffers);
  };
  if (strategy_ && strategy_->updated() != nullptr) {
    optimizer_ = strategy_->make_optimizer(model_->buffers(), make);
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
  parallel::ModelTensors tensors{
      .parameters = model_->parameters(),
      .buffers = model_->statistics(),
      .update_units = optimizer_->update_units(),
      .blocks = model_->block_parameters(),
      .parallelize = [this](const TensorGroup& group) { return model_->parallelize(group); },
      .divide_experts = [this](const TensorGroup& group) { return model_->divide_experts(group); },
      .divide_tokens = [this](const TensorGroup& group,
                              ContextMethod method) { model_->divide_tokens(group, method); }};
  const auto build = [&](const Recipe& recipe) {
    return registries().strategies.build(recipe.strategy, *collectives_, tensors);
  };
  if (is_pipeline()) {
    const model::BlockSequence blocks = model_->block_sequence();
    tensors.sequence = {.tensors = blocks.tensors, .tied = blocks.tied};
  } else if (collectives_->size() > 1) {
    // Parameters in parts lie in the order of blocks, and where tokens or experts are divided, no
    // process may have the memory for a step of whole texts with all experts.
    if (parallel::shares_of(recipe().strategy, processes()).parameters == 1 && !divides_tokens() &&
        !divides_experts()) {
      tensors.gradient_order = shared_gradient_order();
    }
    if (resolved_.is_auto("parallel", "bucket")) choose_buckets(build);
  }
  strategy_ = build(recipe());
  model_->set_block_hooks(strategy_->block_hooks());
}

data::LoaderConfig Session::training_loader() const {
  data::LoaderConfig config = data::training_loader(resolved_.recipe.data, hardware_.cores);
  config.transforms = batch_transforms_;
  config.plan = data_->batches;
  // The first stage of a pipeline reads inputs, and the last one targets.
  if (collectives_ == nullptr) return config;
  const auto [part, parts] = mesh().batch_part(collectives_->rank());
  config.part = part;
  config.parts = parts;
  return config;
}

train::EvaluateConfig Session::evaluate_config() const {
  parallel::Collectives* const parts = strategy_ ? strategy_->forward_group() : nullptr;
  return {.loader = data::evaluation_loader(resolved_.recipe.data, hardware_.cores),
          .precision = precision::for_evaluation(format_.precision),
          .device = device_,
          .views = resolved_.recipe.evaluate.tta_in_training ? views_ : train::TestViews(),
          .collectives = strategy_ ? &strategy_->evaluation_group() : collectives_,
          .forward_group = parts,
          .divides_forward_by_samples = strategy_ && strategy_->divides_forward_by_samples(),
          .metrics = metrics_,
          .loss = evaluation_loss_,
          .ignored = loss_->traits().ignored};
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

int64_t Session::planned_batches() const { return data_->batches ? data_->batches->batches() : 0; }

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
