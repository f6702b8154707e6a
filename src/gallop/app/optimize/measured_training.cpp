#include "gallop/app/optimize/measured_training.h"

#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/option_of.h"
#include "gallop/app/session.h"
#include "gallop/app/trainer_parts.h"
#include "gallop/base/clock.h"
#include "gallop/base/memory.h"
#include "gallop/base/temporary_folder.h"
#include "gallop/optimize/experiment_json.h"
#include "gallop/track/system/system_meter.h"

namespace gallop::app {

namespace {

// Steps in which graphs are recorded and compiled, and some that fill caches.
constexpr int64_t kWarmUp = 5;
constexpr double kInterval = 0.1;
// The factor by which trainings that end within an interval are lengthened.
constexpr double kLonger = 100;
// The timeout of collectives, which must not end while the processes are suspended.
constexpr double kLongestPause = 1e6;

void print_line(const optimize::Json& json) {
  fmt::print("{}\n", json.dump());
  std::fflush(stdout);
}

bool splits_batch_norm(Session& session) {
  const config::Component& strategy = session.recipe().strategy;
  if (strategy.name() != "ddp" || session.model().statistics().empty()) return false;
  const config::Node* option = session.resolved().find("parallel", "batch_norm");
  return option == nullptr || option->scalar != "synchronized";
}

optimize::Settings settings_of(Session& session) {
  const Recipe& recipe = session.recipe();
  const train::Length length = session.length();
  const train::Metric& metric = session.evaluate_config().metrics->deciding();
  optimize::Settings settings{
      .precision = precision::name_of(session.format().precision),
      .channels_last = session.format().channels_last,
      .has_convolutions = session.has_convolutions(),
      .compiles = session.step_config().compile.has_value(),
      .verifies = recipe.train.compile == "verify",
      .is_on_cpu = session.device().is_cpu(),
      .cores = session.hardware().cores,
      .threads = at::get_num_threads(),
      .data_threads = session.training_loader().threads,
      .sets_threads = recipe.train.threads != 0,
      .splits_batch_norm = splits_batch_norm(session),
      .samples = session.data().train->size(),
      .batch_size = recipe.data.batch_size,
      .micro_batches = recipe.train.gradient_accumulation,
      .recomputes = recipe.train.activation_checkpointing.every > 0 ||
                    recipe.train.activation_checkpointing.memory != "none",
      .epochs = length.epochs_after(length.steps),
      .loss = recipe.loss.name(),
      .optimizer = recipe.optimizer.name(),
      .schedule = recipe.schedule.name(),
      .lr = session.optimizer().base_lr(),
      .momentum = option_of(recipe.optimizer, "momentum"),
      .sets_weight_decay = session.resolved().find("optimizer", "weight_decay") != nullptr,
      .has_parameter_groups = session.resolved().find("optimizer", "groups") != nullptr,
      .scales_lr = recipe.lr_scaling.scales(),
      .counts_steps = length.is_in_steps,
      .label_smoothing = recipe.train.label_smoothing,
      .has_classes = session.task().has_class_labels(),
      .can_resize =
          session.why_not_resized().empty() && recipe.train.progressive_resizing.initial_scale == 1,
      .caches = recipe.data.in_memory != "no" || !session.has_images_without_masks(),
      .metric = metric.name(),
      .higher_is_better = metric.higher_is_better()};
  for (const config::Component& wrapper : recipe.wrappers.items) {
    settings.wrappers.push_back(wrapper.name());
  }
  return settings;
}

// Prints the steps of an interval.
class Reporter final : public train::Observer {
 public:
  Reporter(int64_t number, int processes)
      : number_(number), processes_(processes), meter_(processes) {}

  void stepped(const train::StepEvent& event) override {
    losses_.push_back(event.loss);
    const double now = monotonic_seconds();
    if (event.step <= kWarmUp) {
      restart(now);
      losses_.clear();
      return;
    }
    if (now - begin_ < kInterval) return;
    const auto values = meter_.read();
    const auto joules = values.values.find("joules");
    print_line({{"training", number_},
                {"begin", begin_},
                {"end", now},
                {"first", event.step - static_cast<int64_t>(losses_.size()) + 1},
                {"losses", losses_},
                {"joules", joules == values.values.end() ? 0 : joules->second},
                {"energy_method", values.energy_method},
                // The other processes have the same weights, and the same share of each batch.
                {"peak_bytes", processes_ * peak_resident_bytes()}});
    has_printed_ = true;
    losses_.clear();
    begin_ = now;  // The meter was read just now.
  }
  // What happens there is no training.
  void evaluating() override { losses_.clear(); }

  bool has_printed() const { return has_printed_; }

 private:
  void restart(double now) {
    begin_ = now;
    meter_.read();
  }

  int64_t number_;
  int processes_;
  double begin_ = 0;
  bool has_printed_ = false;
  std::vector<double> losses_;
  track::SystemMeter meter_;
};

}  // namespace

void measure_training(ResolvedRecipe resolved, bool trains, const DistributedContext& context,
                      const StopRequest& stop) {
  // As options of the recipe, which a session reads again when it resolves others.
  // Not "never", with which schedules that follow evaluations are rejected.
  resolved.resolve("train.evaluate_every", "1000000000000 steps");
  resolved.resolve("train.checkpoint_every", "never");
  resolved.resolve("train.rampup_batch_size.start", "0");
  for (int64_t number = 0; number == 0 || trains; ++number) {
    if (context.run_on_rank0([&] { return stop.requested(); })) return;
    resolved.recipe.limits = {
        .start = kLongestPause, .step = kLongestPause, .other = kLongestPause};
    Session session(resolved, "runs", context.collectives());
    if (number == 0 && context.is_first()) {
      print_line({{"settings", json_of(settings_of(session))}});
    }
    if (!trains) return;
    std::optional<TemporaryFolder> folder;
    const std::string path = context.run_on_rank0([&] {
      folder.emplace(fs::temp_directory_path(), "gallop-optimize-");
      return folder->path().string();
    });
    train::CheckpointStore checkpoints(fs::path(path) / "checkpoints", {});
    Reporter reporter(number, context.local_size());
    train::TrainerParts parts = trainer_parts(session, checkpoints, stop);
    if (context.is_first()) parts.observers = {&reporter};
    train::Trainer trainer(parts, session.recipe().train, session.step_config(),
                           session.training_loader(), session.evaluate_config());
    trainer.run();
    if (context.run_on_rank0([&] { return reporter.has_printed(); })) continue;
    const train::TrainConfig config = resolved.recipe.train;
    resolved.resolve("train.epochs", fmt::format("{}", kLonger * config.epochs));
    if (config.steps) {
      resolved.resolve("train.steps",
                       fmt::format("{}", static_cast<int64_t>(kLonger) * *config.steps));
    }
  }
}

}  // namespace gallop::app
