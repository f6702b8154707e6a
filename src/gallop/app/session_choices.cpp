// Options that a recipe leaves open, which a session chooses by measuring.
#include <algorithm>

#include <fmt/format.h>

#include "gallop/app/print.h"
#include "gallop/app/session.h"
#include "gallop/base/text.h"
#include "gallop/data/device_loader.h"
#include "gallop/train/bucket_choice.h"
#include "gallop/train/gradient_order.h"
#include "gallop/train/recompute_choice.h"
#include "gallop/train/step/seed.h"

namespace gallop::app {

namespace {

constexpr int64_t kTimedTexts = 4;
constexpr int64_t kOrderSamples = 4;

}  // namespace

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
  print_warning(
      fmt::format("the machine is busy with other programs, so the choice of {} may not be the "
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

// The maximum number of remaining samples.
double Session::samples_of_run() const {
  const Recipe& recipe = resolved_.recipe;
  return static_cast<double>(
      train::Length::of(recipe.train, train::new_history(recipe.train, recipe.data.batch_size,
                                                         data_->train->size(), planned_batches()))
          .samples);
}

}  // namespace gallop::app
