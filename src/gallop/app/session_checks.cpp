// What a recipe may not ask of its data, its model and its processes.
#include <algorithm>

#include <fmt/format.h>

#include "gallop/app/device.h"
#include "gallop/app/initial_model.h"
#include "gallop/app/proven_training.h"
#include "gallop/app/recipe_components.h"
#include "gallop/app/session.h"
#include "gallop/app/training_memory.h"
#include "gallop/base/hardware.h"
#include "gallop/base/heap.h"
#include "gallop/base/memory.h"
#include "gallop/base/text.h"
#include "gallop/parallel/pipeline.h"
#include "gallop/train/step/checks.h"

namespace gallop::app {

using precision::Precision;

// Rejects options that are not supported with several processes.
void Session::require_shareable() {
  collectives_->set_limits(recipe().limits);
  if (collectives_->size() == 1) return;
  mesh();  // Rejects sizes that do not divide the processes.
  if (!device_.is_cpu() && recipe().train.compile != "auto" && recipe().train.compile != "false") {
    throw UsageError(
        "steps of several processes are compiled on CPUs only so far; set train.compile=false, or "
        "start one process");
  }
  if (is_pipeline()) require_pipeline();
  if (divides_layers()) require_tensor();
  if (divides_experts()) {
    require_whole_weights({"bf16-weights"}, "parallel.name=expert");
    require_eager();
  }
  if (is_pipeline() || divides_layers() || divides_tokens() || divides_experts()) {
    require_counted_blocks();
  }
  if (parallel::trains_replicas(recipe().strategy.name())) require_replicas();
  require_divided_update();
  if (recipe().track.histograms &&
      (parallel::shares_of(recipe().strategy, processes()).parameters > 1 || divides_experts())) {
    throw UsageError(fmt::format(
        "track.histograms with parallel.name={}: histograms need whole parameters, and each "
        "process has only shards of them; set track.histograms=false, or use parallel.name=zero-2",
        recipe().strategy.name()));
  }
  if (recipe().train.prove) require_provable_strategy(recipe(), collectives_->size());
  if (recipe().train.compile == "verify") {
    throw UsageError(
        "train.compile=verify needs a single process, as its dry runs take no part in collectives; "
        "set train.compile=true, or start one process");
  }
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
    train::check_division(config, "parallel.name=pipeline");
  }
}

// Rejects what needs whole gradients, of which processes have shards.
void Session::require_divided_update() {
  const std::string of_replicas = parallel::data_parallel_of(recipe().strategy);
  if (parallel::shares_of(of_replicas, mesh().batch_part(0).parts).state == 1) return;
  const bool is_name = of_replicas == recipe().strategy.name();
  train::StepConfig config;
  config.clip_adaptive = recipe().train.clip_adaptive;
  config.sam = recipe().train.sam;
  train::check_division(
      config, fmt::format("parallel.{}={}", is_name ? "name" : "data_parallel", of_replicas));
}

// Rejects what processes that divide layers cannot do, before data are opened.
void Session::require_tensor() {
  const char* const option =
      is_pipeline() ? "parallel.tensor_parallel_degree" : "parallel.name=tensor";
  if (recipe().train.clip_adaptive) {
    train::StepConfig config;
    config.clip_adaptive = recipe().train.clip_adaptive;
    train::check_division(config, option);
  }
  require_whole_weights({"fp8", "bf16-weights"}, option);
}

// Rejects these formats.
void Session::require_whole_weights(const std::vector<std::string>& formats,
                                    const std::string& option) {
  for (const std::string& precision : formats) {
    if (recipe().train.precision != precision) continue;
    throw UsageError(
        fmt::format("train.precision={} with {}: rounding depends on whole weights, and each "
                    "process has only parts of them; use train.precision=bf16",
                    precision, option));
  }
}

// Rejects what has a state that processes could not share while they train by themselves.
void Session::require_replicas() {
  const std::string with = fmt::format("with parallel.name={}", recipe().strategy.name());
  const auto& train = recipe().train;
  for (const char* precision : {"fp16", "fp8", "bf16-weights"}) {
    if (train.precision != precision) continue;
    throw UsageError(
        fmt::format("train.precision={} {}: scales or rounding would differ among processes; use "
                    "train.precision=bf16 or fp32",
                    precision, with));
  }
  if (train.on_nonfinite == "skip") {
    throw UsageError(fmt::format(
        "train.on_nonfinite=skip {}: a process would skip an update that the others make, and the "
        "schedule is the same for all; omit it, or use parallel.name=ddp",
        with));
  }
  if (train.spikes.action == "rewind") {
    throw UsageError(fmt::format(
        "train.spikes.action=rewind {}: after a rewind, weights and synchronizations would be of "
        "different steps; use train.spikes.action=skip, or parallel.name=ddp",
        with));
  }
  if (!recipe().wrappers.items.empty()) {
    throw UsageError(
        fmt::format("optimizer.wrappers {}: '{}' keeps a copy of the weights that synchronizations "
                    "would not update; omit it, or use parallel.name=ddp",
                    with, recipe().wrappers.items.front().name()));
  }
}

// Rejects compiled steps, which the strategy does not support.
void Session::require_eager() {
  if (recipe().train.compile != "auto" && recipe().train.compile != "false") {
    throw UsageError(
        fmt::format("train.compile={} with parallel.name={}: its steps are not compiled yet; set "
                    "train.compile=false",
                    recipe().train.compile, recipe().strategy.name()));
  }
  resolve("train.compile", recipe().train.compile, "false");
}

// Rejects the choice of blocks to recompute by memory, which measures a step in one process.
void Session::require_counted_blocks() {
  const std::string& memory = recipe().train.activation_checkpointing.memory;
  if (memory.empty() || memory == "none") return;
  throw UsageError(fmt::format(
      "train.activation_checkpointing.memory with parallel.name={}: it measures a whole step in "
      "one process; set train.activation_checkpointing.every instead",
      recipe().strategy.name()));
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
      "of 16, the last layer stays in bf16, and so do convolutions; use train.precision=bf16",
      recipe().model.name()));
}

// Every step must have the number of samples that the model was exported for.
void Session::require_batch() {
  const int64_t fixed = model_->fixed_batch();
  if (fixed == 0) return;
  const int64_t replicas = collectives_ == nullptr ? 1 : mesh().batch_part(0).parts;
  const int64_t batch = fixed * replicas * recipe().train.gradient_accumulation;
  const std::string cause =
      fmt::format("model '{}' was exported for batches of {} alone", recipe().model.name(), fixed);
  const std::string remedy = "export it with a Dim for dimension 0 of every input";
  if (data_->batches) {
    throw UsageError(
        fmt::format("{}, and batches of data.max_tokens differ in size; omit it", cause));
  }
  if (recipe().train.rampup_batch_size.start > 0) {
    throw UsageError(fmt::format(
        "{}, and the first ones of train.rampup_batch_size are smaller; omit it", cause));
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
        "'layers' without convolutions, recurrent layers and pooling; model '{}' does not: leave "
        "data.packing out, or reduce the padding with data.group_by_length",
        recipe().model.name()));
  }
  if (recipe().strategy.name() == "deterministic") {
    throw UsageError(
        "data.packing with parallel.name=deterministic: that strategy divides a batch by rows, and "
        "packed rows depend on the number of processes; use parallel.name=ddp, or "
        "data.group_by_length");
  }
}

bool Session::has_images_without_masks() const {
  return inputs().is_images() && inputs().views == 1 &&
         data_->train->fields().target().shape.sizes.size() <= 1;
}

std::string Session::why_not_resized() const {
  const char* const option = "train.progressive_resizing";
  if (!has_images_without_masks()) {
    return fmt::format("{} is for images with a class or numbers as targets; omit it", option);
  }
  return why_not_any_size(option, recipe(), *model_);
}

// Inputs of other sizes than those of the task.
void Session::require_sizes() {
  train::check(recipe().train.progressive_resizing);
  train::check(recipe().train.seq_length_warmup);
  train::check(recipe().train.rampup_batch_size);
  require_rectangles(recipe(), data_->evaluation(), *model_);
  const auto& resizing = recipe().train.progressive_resizing;
  if (resizing.initial_scale < 1) {
    if (const std::string why = why_not_resized(); !why.empty()) throw UsageError(why);
    if (resizing.delay_fraction + resizing.finetune_fraction > 1) {
      throw UsageError(
          fmt::format("train.progressive_resizing: delay_fraction {} and finetune_fraction {} are "
                      "together more than the run; make one of them smaller",
                      resizing.delay_fraction, resizing.finetune_fraction));
    }
    const int64_t side = std::max(inputs().height, inputs().width);
    if (train::side_at(resizing, side, 0) == side) {
      throw UsageError(fmt::format(
          "train.progressive_resizing.size_increment is {}, of which images of {} pixels are no "
          "larger multiple than the first ones; set it to a smaller number",
          resizing.size_increment, side));
    }
  }
  const int64_t start = recipe().train.rampup_batch_size.start;
  if (start > 0 && recipe().data.max_tokens > 0) {
    throw UsageError(
        "train.rampup_batch_size with data.max_tokens, which decides how many samples a batch has; "
        "omit one of them");
  }
  if (start > recipe().data.batch_size) {
    throw UsageError(fmt::format(
        "train.rampup_batch_size.start is {}, and data.batch_size {}; batches become larger up to "
        "that: set start to a smaller number",
        start, recipe().data.batch_size));
  }
  if (recipe().train.seq_length_warmup.duration == 0) return;
  const bool has_targets_per_token = !data_->train->fields().target().shape.sizes.empty();
  if (!inputs().is_text() || !has_targets_per_token || inputs().views > 1) {
    throw UsageError(
        "train.seq_length_warmup is for texts with a target for each token, which it cuts off; "
        "omit it");
  }
  if (recipe().model.name() == "exported") {
    throw UsageError(
        "train.seq_length_warmup: an exported model may have been exported for one length; leave "
        "it out, or use model 'gpt'");
  }
  const auto& warmup = recipe().train.seq_length_warmup;
  const int64_t context = data_->train->fields().input().shape.sizes.front();
  if (train::tokens_at(warmup, context, 0) == context) {
    throw UsageError(
        fmt::format("train.seq_length_warmup begins with texts of {} tokens, which is "
                    "data.context: set {} to a smaller number",
                    context, warmup.min_seq_length >= context ? "min_seq_length" : "step_size"));
  }
}

// The strategy promises the same numbers for any number of processes.
void Session::require_divisible_draws() {
  if (recipe().strategy.name() != "deterministic") return;
  const std::string draw = model_->draws_from_generator();
  if (draw.empty()) return;
  throw UsageError(fmt::format(
      "parallel.name is deterministic, but model '{}' draws random numbers that depend on the "
      "number of processes: {}; use parallel.name=ddp",
      recipe().model.name(), draw));
}

void Session::require_soft_labels() {
  if (!batch_transforms_ || !batch_transforms_->softens_labels()) return;
  if (loss_->traits().takes_soft_labels) return;
  throw UsageError(
      fmt::format("data.batch_transforms mixes samples, which turns class labels into class "
                  "probabilities, and train.loss: {} needs labels; use train.loss=cross-entropy",
                  recipe().loss.name()));
}

// Rejects a training for which memory is known not to suffice, rather than to be killed in it.
void Session::require_memory(const optim::Optimizer& planned) {
  if (!device_.is_cpu()) return;
  const bool is_there = !model_->parameters().front().tensor.is_meta();
  TrainingMemory memory{.state = train::bytes_of(planned.state()), .has_model = is_there};
  int64_t experts = 0;
  for (const auto& [name, tensor] : model_->parameters()) {
    if (!tensor.requires_grad()) continue;
    const auto bytes = static_cast<int64_t>(tensor.nbytes());
    memory.parameters += bytes;
    if (name.find(".experts.") != std::string::npos) experts += bytes;
  }
  if (experts > 0) {
    memory.expert_share = static_cast<double>(experts) / static_cast<double>(memory.parameters);
    memory.expert_parts = mesh().size(parallel::kExpertAxis);
  }
  memory.processes = processes();
  memory.shares = parallel::shares_of(recipe().strategy, processes());
  memory.strategy = collectives_ != nullptr ? recipe().strategy.name() : "ddp";
  memory.has_blocks = !model_->block_parameters().empty();
  if (!is_there && (memory.shares.parameters > 1 || divides_experts())) {
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

}  // namespace gallop::app
