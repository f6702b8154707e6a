#include "gallop/app/training_run.h"

#include <unistd.h>

#include <cstdio>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "gallop/app/device.h"
#include "gallop/app/recipe.h"
#include "gallop/app/run_log.h"
#include "gallop/app/session.h"
#include "gallop/app/trained_run.h"
#include "gallop/base/file.h"
#include "gallop/base/text.h"
#include "gallop/track/run_folder.h"
#include "gallop/train/step_format.h"
#include "gallop/train/trainer.h"

namespace gallop::app {

namespace {

// Samples that formats are timed on: enough to tell them apart, few enough for a quick start.
constexpr int64_t kTimedImages = 32;
constexpr int64_t kTimedTexts = 4;
constexpr int64_t kVerifyEvery = 100;  // Steps.

class PreparedRun final : public TrainingRun {
 public:
  PreparedRun(const Families& families, ResolvedRecipe resolved)
      : families_(families), resolved_(std::move(resolved)), hardware_(read_hardware()) {
    note(set_compute_threads(recipe(), hardware_));
    const DeviceChoice choice = choose_device(recipe().train.device);
    device_ = choice.device;
    note(choice.note);
    data_ = open_data(families_, recipe());
    for (const auto& line : data_.notes) note(line);
    inputs_ = inputs_of(data_, recipe());
    build_model();
  }

  std::string recipe_yaml() { return resolved_.to_yaml(false); }
  const std::string& recipe_name() const { return resolved_.name; }

  track::RunInfo info() const {
    track::RunInfo info{
        .version = GALLOP_VERSION, .hardware = hardware_, .started = track::utc_now()};
    info.command_line = read_command_line();
    for (const auto& file : data_.parts->files) {
      std::error_code ignored;
      info.data_files.push_back({file, static_cast<int64_t>(fs::file_size(file, ignored))});
    }
    return info;
  }

  // The data must be those that the run began with, where it has come so far as to say.
  void check_against(const fs::path& folder) {
    if (has_inputs(folder)) check_fits(inputs_, read_inputs(folder));
  }

  void place_in(track::RunFolder folder) {
    folder_.emplace(std::move(folder));
    checkpoints_.emplace(folder_->checkpoints(),
                         train::CheckpointConfig{.keep_last = recipe().train.keep_checkpoints});
    write_inputs(folder_->path(), inputs_);
  }

  train::Outcome train(ConsoleStyle style, const StopRequest& stop) override {
    const auto schedule = families_.schedules.build(recipe().schedule);
    const auto console = make_console(style, labels());
    const auto newest = checkpoints_->newest();
    RunLog log(folder_->log(), newest ? newest->step : 0, labels().part);
    const train::TrainerParts parts{.model = *model_,
                                    .optimizer = *optimizer_,
                                    .schedule = *schedule,
                                    .train_samples = *data_.train,
                                    .evaluation_samples = data_.evaluation(),
                                    .checkpoints = *checkpoints_,
                                    .observers = {&log, console.get()},
                                    .stop = stop,
                                    .text = data_.is_text()};
    train::Trainer trainer(parts, recipe().train, step_config(), training_loader(),
                           evaluate_config());
    introduce(style);
    if (newest) resume(trainer, *newest);
    return trainer.run();
  }

 private:
  Recipe& recipe() { return resolved_.recipe; }

  void note(const std::string& line) {
    if (!line.empty()) fmt::print(stderr, "gallop: warning: {}\n", printable(line));
  }

  void build_model() {
    model_ =
        families_.models.build(recipe().model, inputs_.task(),
                               model::InitialWeights(static_cast<uint64_t>(recipe().train.seed)));
    choose_format();
    optimizer_ = families_.optimizers.build(recipe().optimizer, model_->parameters());
  }

  // What "auto" leaves open is measured, and what came out stands in the run's recipe.
  void choose_format() {
    const auto formats = train::candidate_formats(
        recipe().train.precision, recipe().train.channels_last, !data_.is_text(), device_);
    format_ = formats.front();
    if (formats.size() > 1) {
      const auto timings = time_on_samples(formats);
      format_ = train::pick_format(timings);
      for (const auto& timing : timings) {
        measured_ += fmt::format("{}{} {:.1f} ms", measured_.empty() ? "" : ", ",
                                 timing.format.describe(), timing.milliseconds);
      }
    }
    model_->to(device_, format_.channels_last);
    resolve("train.precision", recipe().train.precision, precision::name_of(format_.precision));
    // Nothing has been compiled on a GPU yet.
    if (recipe().train.compile == "auto") {
      resolve("train.compile", recipe().train.compile, device_.is_cpu() ? "true" : "false");
    }
    resolve("train.channels_last", recipe().train.channels_last,
            format_.channels_last ? "true" : "false");
  }

  std::vector<train::FormatTiming> time_on_samples(const std::vector<train::StepFormat>& formats) {
    data::LoaderConfig config = training_loader();
    config.batch =
        std::min({config.batch, data_.train->size(), data_.is_text() ? kTimedTexts : kTimedImages});
    config.threads = 0;
    data::Loader loader(*data_.train, config, {.seed = recipe().train.seed});
    const auto batch = loader.next();
    model_->to(device_, false);
    train::seed_step(static_cast<uint64_t>(recipe().train.seed), 0, device_);
    return train::time_formats(*model_, batch->input.to(device_), batch->target.to(device_),
                               formats);
  }

  void resolve(const std::string& path, std::string& value, const std::string& found) {
    if (value == found) return;
    value = found;
    config::Problems problems;
    config::apply_override(
        resolved_.written, path,
        config::Node::make_scalar(found, {.source = config::Origin::Source::kMeasured}), problems);
    problems.throw_if_any();
  }

  data::LoaderConfig training_loader() {
    return data::training_loader(recipe().data, hardware_.cores);
  }

  train::EvaluateConfig evaluate_config() {
    return {.loader = data::evaluation_loader(recipe().data, hardware_.cores),
            .precision = format_.precision,
            .device = device_};
  }

  train::StepConfig step_config() {
    train::StepConfig config{.precision = format_.precision,
                             .accumulate = recipe().train.accumulate,
                             .clip = recipe().train.clip,
                             .label_smoothing = recipe().train.label_smoothing,
                             .seed = static_cast<uint64_t>(recipe().train.seed)};
    const std::string& compile = recipe().train.compile;
    if (compile != "false") {
      config.compile =
          compile::CompileConfig{.verify_every = compile == "verify" ? kVerifyEvery : 0};
    }
    return config;
  }

  ConsoleLabels labels() {
    ConsoleLabels labels;
    labels.part = evaluation_part(data_);
    labels.run_folder = folder_->path().string();
    if (data_.is_text()) {
      labels.item = "tokens";
      labels.items_per_sample = recipe().data.context;
    }
    labels.classifies = !data_.is_text();
    return labels;
  }

  void introduce(ConsoleStyle style) {
    if (style != ConsoleStyle::kLive && style != ConsoleStyle::kPlain) return;
    int64_t parameters = 0;
    for (const auto& parameter : model_->parameters()) parameters += parameter.tensor.numel();
    const std::string part = evaluation_part(data_);
    if (data_.is_text()) {
      fmt::print("data       {}: {} training windows of {} tokens, {} different tokens",
                 recipe().data.reader.name(), format_count(data_.train->size()),
                 recipe().data.context, data_.names.size());
    } else {
      fmt::print("data       {}: {} training images of {}x{}x{} in {} classes",
                 recipe().data.reader.name(), format_count(data_.train->size()), inputs_.channels,
                 inputs_.height, inputs_.width, data_.names.size());
    }
    fmt::print("{}\n", part.empty() ? std::string(", no part to evaluate on")
                                    : fmt::format("; evaluated on the {} part", part));
    fmt::print("model      {}, {} parameters\n", recipe().model.name(), format_count(parameters));
    fmt::print("training   {}, schedule {}, {} on {}{}{}\n", recipe().optimizer.name(),
               recipe().schedule.name(), format_.describe(), device_.is_cuda() ? "GPU" : "CPU",
               recipe().train.compile == "false" ? "" : ", compiled",
               measured_.empty() ? "" : " (measured " + measured_ + ")");
    fmt::print("run        {}\n", folder_->path().string());
    std::fflush(stdout);
  }

  void resume(train::Trainer& trainer, const train::CheckpointInfo& newest) {
    try {
      trainer.resume(newest);
    } catch (const DataError& error) {
      const auto all = checkpoints_->list();
      if (all.size() < 2) throw;
      throw DataError(fmt::format("{}\nThe checkpoint before it is {}; remove {} to resume from it",
                                  error.what(), all[1].folder.string(), newest.folder.string()));
    }
    fmt::print(stderr, "gallop: resumed from step {}\n", newest.step);
  }

  const Families& families_;
  ResolvedRecipe resolved_;
  Hardware hardware_;
  c10::Device device_ = c10::kCPU;
  data::TrainingData data_;
  RunInputs inputs_;
  train::StepFormat format_;
  std::string measured_;
  std::unique_ptr<model::Model> model_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::optional<track::RunFolder> folder_;
  std::optional<train::CheckpointStore> checkpoints_;
};

// Finished: the newest checkpoint stands at the last step of the run.
bool is_finished(const fs::path& folder) {
  const auto records = track::read_log(folder / "metrics.log").current();
  return !records.empty() && records.back().kind == "end" &&
         records.back().texts.at("how") == "finished";
}

}  // namespace

std::unique_ptr<TrainingRun> start_run(const Families& families, const RunPlace& place,
                                       const std::string& recipe,
                                       const std::vector<Override>& overrides) {
  const fs::path runs(place.runs);
  if (!place.name.empty() && track::RunFolder::is_run(runs / place.name)) {
    if (place.resume_if_there) {
      return resume_run(families, place, (runs / place.name).string(), overrides);
    }
    throw UsageError(
        fmt::format("there is a run {} already; take another --name, or --continue to resume it",
                    (runs / place.name).string()));
  }
  auto run = std::make_unique<PreparedRun>(families, load_recipe(families, recipe, overrides));
  run->place_in(place.name.empty()
                    ? track::RunFolder::create_numbered(runs, run->recipe_name(),
                                                        run->recipe_yaml(), run->info())
                    : track::RunFolder::create(runs, place.name, run->recipe_yaml(), run->info()));
  return run;
}

std::unique_ptr<TrainingRun> resume_run(const Families& families, const RunPlace& place,
                                        const std::string& name,
                                        const std::vector<Override>& overrides) {
  track::RunFolder folder = track::RunFolder::open(find_run(place.runs, name));
  if (overrides.empty() && is_finished(folder.path())) {
    fmt::print(
        "nothing to resume: {} is finished. To train longer: gallop train --resume {} "
        "train.epochs=...\n",
        folder.path().string(), folder.path().string());
    return nullptr;
  }
  const fs::path file = folder.path() / "recipe.yaml";
  auto run = std::make_unique<PreparedRun>(
      families, parse_recipe(families, track::RunFolder::read_recipe(folder.path()), file.string(),
                             overrides));
  run->check_against(folder.path());
  if (!overrides.empty()) write_file_atomically(file, run->recipe_yaml());
  run->place_in(std::move(folder));
  return run;
}

}  // namespace gallop::app
