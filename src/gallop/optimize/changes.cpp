#include "gallop/optimize/changes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/text.h"

namespace gallop::optimize {

namespace {

constexpr std::array<std::pair<Goal, const char*>, 4> kGoals = {
    std::pair{Goal::kTimeToAccuracy, "time-to-accuracy"},
    std::pair{Goal::kThroughput, "throughput"}, std::pair{Goal::kMemory, "memory"},
    std::pair{Goal::kEnergy, "energy"}};

// Options of execution changes: their subject, and whether they may round differently.
struct Subject {
  const char* path;
  const char* name;
  Effect effect;
};
constexpr std::array kSubjects = {
    Subject{"train.compile", "compilation", Effect::kRounding},
    Subject{"train.precision", "precision", Effect::kRounding},
    Subject{"train.channels_last", "memory format", Effect::kRounding},
    Subject{"train.threads", "compute threads", Effect::kRounding},
    Subject{"data.threads", "loader threads", Effect::kNone},
    Subject{"data.in_memory", "cache", Effect::kNone},
    Subject{"train.gradient_accumulation", "micro-batches", Effect::kRounding},
    Subject{"train.activation_checkpointing", "activation checkpointing", Effect::kNone},
};

Change change_of(const std::string& option) {
  const std::string path = path_of(option);
  const auto subject = std::find_if(kSubjects.begin(), kSubjects.end(),
                                    [&](const Subject& one) { return path == one.path; });
  return {.name = option, .subject = subject->name, .options = {option}, .effect = subject->effect};
}

// Twice as many processes, which share the cores, and train the same batches.
std::optional<Change> more_processes(const Settings& settings, Goal goal) {
  const int64_t processes = 2 * settings.processes;
  const bool fits = settings.cores >= 2 && settings.is_on_cpu &&
                    settings.batch_size >= processes * settings.micro_batches;
  // Each has the weights and the libraries in memory.
  if (!fits || goal == Goal::kMemory) return std::nullopt;
  Change change{.name = fmt::format("{} processes", processes),
                .subject = "processes",
                .options = {fmt::format("{}={}", kProcesses, processes)},
                .effect = Effect::kRounding};
  // Those were meant for all cores.
  if (settings.sets_threads) change.options.emplace_back("train.threads=0");
  if (settings.splits_batch_norm) change.options.emplace_back("parallel.batch_norm=synchronized");
  return change;
}

bool is_execution(const Prediction& prediction) {
  return prediction.options.size() == 1 &&
         std::any_of(kSubjects.begin(), kSubjects.end(), [&](const Subject& one) {
           return path_of(prediction.options.front()) == one.path;
         });
}

std::vector<std::string> options_of_execution(const Settings& settings, Goal goal) {
  std::vector<std::string> options;
  if (!settings.compiles || settings.verifies) options.emplace_back("train.compile=true");
  if (settings.precision == "fp32") {
    options.emplace_back("train.precision=bf16");
  }
  if (settings.has_convolutions) {
    options.push_back(fmt::format("train.channels_last={}", !settings.channels_last));
  }
  if (settings.threads != settings.cores) {
    options.push_back(fmt::format("train.threads={}", settings.cores));
  }
  for (const int64_t threads :
       {settings.cores, settings.data_threads + 1, int64_t{1}, int64_t{0}}) {
    if (threads != settings.data_threads)
      options.push_back(fmt::format("data.threads={}", threads));
  }
  if (!settings.caches) options.emplace_back("data.in_memory=yes");
  const bool saves_memory = goal == Goal::kMemory;
  if (saves_memory != settings.recomputes) {
    options.push_back(
        fmt::format("train.activation_checkpointing={{every: {}}}", saves_memory ? 1 : 0));
  }
  if (saves_memory && 2 * settings.micro_batches <= settings.batch_size) {
    options.push_back(fmt::format("train.gradient_accumulation={}", 2 * settings.micro_batches));
  }
  if (!saves_memory && settings.micro_batches > 1) {
    options.emplace_back("train.gradient_accumulation=1");
  }
  return options;
}

double expected(const Change& change) {
  return change.predicted ? (change.predicted->low + change.predicted->high) / 2 : 1;
}

bool is_sgd(const std::string& optimizer) { return optimizer == "sgd" || optimizer == "sgdw"; }

bool is_adaptive(const std::string& optimizer) {
  return !is_sgd(optimizer) && optimizer != "schedule-free-sgd" && optimizer != "lars" &&
         optimizer != "muon";
}

bool may_replace_optimizer(const Settings& settings) {
  return settings.wrappers.empty() && !settings.has_parameter_groups && !settings.scales_lr;
}

}  // namespace

const char* name_of(Goal goal) {
  for (const auto& [one, name] : kGoals) {
    if (one == goal) return name;
  }
  return "";
}

std::optional<Goal> goal_of(const std::string& name) {
  for (const auto& [goal, one] : kGoals) {
    if (name == one) return goal;
  }
  return std::nullopt;
}

std::vector<Change> execution_changes(const Settings& settings,
                                      const std::vector<Prediction>& predictions, Goal goal) {
  std::vector<Change> changes;
  const auto find = [&](const std::string& option) {
    return std::find_if(changes.begin(), changes.end(),
                        [&](const Change& one) { return one.options.front() == option; });
  };
  for (const std::string& option : options_of_execution(settings, goal)) {
    if (find(option) == changes.end()) changes.push_back(change_of(option));
  }
  if (auto change = more_processes(settings, goal)) changes.push_back(std::move(*change));
  for (const Prediction& prediction : predictions) {
    if (!is_execution(prediction)) continue;
    auto change = find(prediction.options.front());
    if (change == changes.end()) {
      changes.push_back(change_of(prediction.options.front()));
      change = changes.end() - 1;
    }
    change->predicted = prediction;
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) { return expected(a) > expected(b); });
  return changes;
}

std::vector<Change> schedule_changes(const Settings& settings, std::optional<double> found_lr) {
  std::vector<Change> changes;
  const bool is_constant = settings.schedule == "constant";
  const std::vector<std::string> one_cycle = {"schedule={name: one-cycle}"};
  const Prediction published = {
      .rule = "one-cycle",
      .finding = {},
      .options = one_cycle,
      .low = 1,
      .high = 10,
      .basis =
          "publications: up to an order of magnitude fewer updates (Smith and Topin, "
          "\"Super-convergence\", 2018), or no gain"};
  if (is_constant) {
    changes.push_back({.name = "one-cycle schedule",
                       .subject = "schedule",
                       .options = one_cycle,
                       .effect = Effect::kTraining,
                       .predicted = published});
  }
  if (found_lr && std::abs(std::log(*found_lr / settings.lr)) > std::log(1.2)) {
    const std::string lr = fmt::format("optimizer.lr={:.2g}", *found_lr);
    changes.push_back({.name = is_constant ? fmt::format("one-cycle schedule with {}", lr)
                                           : fmt::format("learning rate of find-lr: {}", lr),
                       .subject = "schedule",
                       .options = is_constant ? with(one_cycle, {lr}) : std::vector{lr},
                       .effect = Effect::kTraining});
    if (is_constant) changes.back().predicted = published;
  }
  return changes;
}

std::vector<Change> batch_changes(const Settings& settings) {
  std::vector<Change> changes;
  for (const int64_t factor : {2, 4, 8}) {
    const int64_t batch = factor * settings.batch_size;
    // Fewer than twenty updates an epoch leave little to a schedule.
    if (batch * 20 > settings.samples) break;
    const auto by = static_cast<double>(factor);
    const double lr = settings.lr * (is_adaptive(settings.optimizer) ? std::sqrt(by) : by);
    Change change{.name = fmt::format("batch size {}", batch),
                  .subject = "batch size",
                  .options = {fmt::format("data.batch_size={}", batch)},
                  .effect = Effect::kTraining};
    if (!settings.scales_lr) change.options.push_back(fmt::format("optimizer.lr={:.3g}", lr));
    changes.push_back(std::move(change));
  }
  return changes;
}

Prediction batch_prediction(const Settings& settings, const Change& change,
                            const Estimate& speedup) {
  const double batch = parse_number<double>(change.options.front().substr(
                                                path_of(change.options.front()).size() + 1))
                           .value_or(0);
  const double factor = batch / static_cast<double>(settings.batch_size);
  return {.rule = "batch-size",
          .finding = {},
          .options = change.options,
          .low = speedup.low / factor,
          .high = speedup.high,
          .basis = fmt::format("measured: {:.2f} times the samples per second; between as many "
                               "epochs and {:.3g} times as many (McCandlish et al., 2018)",
                               speedup.value, factor)};
}

std::string adamw_option(double lr) {
  return fmt::format("optimizer={{name: adamw, lr: {:.2g}}}", lr);
}

bool tries_adamw(const Settings& settings) {
  return is_sgd(settings.optimizer) && may_replace_optimizer(settings);
}

std::vector<Change> optimizer_changes(const Settings& settings, double adamw_lr) {
  std::vector<Change> changes;
  if (is_sgd(settings.optimizer) && settings.momentum == 0 && !settings.scales_lr) {
    // The sum of a gradient's updates is the same: it is 1 / (1 - momentum) times the first.
    changes.push_back({.name = "Nesterov momentum 0.9",
                       .subject = "optimizer",
                       .options = {"optimizer.momentum=0.9", "optimizer.nesterov=true",
                                   fmt::format("optimizer.lr={:.3g}", 0.1 * settings.lr)},
                       .effect = Effect::kTraining});
  }
  if (tries_adamw(settings)) {
    changes.push_back({.name = fmt::format("AdamW with a learning rate of {:.2g}", adamw_lr),
                       .subject = "optimizer",
                       .options = {adamw_option(adamw_lr)},
                       .effect = Effect::kTraining});
  }
  if (settings.optimizer != "muon" && may_replace_optimizer(settings)) {
    const std::vector<std::string> options = {"optimizer={name: muon}"};
    changes.push_back(
        {.name = "Muon",
         .subject = "optimizer",
         .options = options,
         .effect = Effect::kTraining,
         .predicted = Prediction{.rule = "muon",
                                 .finding = {},
                                 .options = options,
                                 .low = 1,
                                 .high = 1.35,
                                 .basis = "publications: up to 1.35 times less time than with "
                                          "AdamW (Jordan et al., \"Muon\", 2024), or no gain"}});
  }
  return changes;
}

std::vector<Change> regularization_changes(const Settings& settings) {
  std::vector<Change> changes;
  if (settings.has_classes && settings.label_smoothing == 0) {
    changes.push_back({.name = "label smoothing 0.1",
                       .subject = "label smoothing",
                       .options = {"train.label_smoothing=0.1"},
                       .effect = Effect::kTraining});
  }
  const bool is_adamw = settings.optimizer == "adamw";
  if (!settings.sets_weight_decay && (is_adamw || settings.optimizer == "sgd")) {
    const char* const decay = is_adamw ? "0.05" : "5e-4";
    changes.push_back({.name = fmt::format("weight decay {}", decay),
                       .subject = "weight decay",
                       .options = {fmt::format("optimizer.weight_decay={}", decay)},
                       .effect = Effect::kTraining});
  }
  if (settings.wrappers.empty()) {
    changes.push_back({.name = "moving average of the weights (EMA)",
                       .subject = "weight average",
                       .options = {"optimizer.wrappers=[ema]"},
                       .effect = Effect::kTraining});
  }
  return changes;
}

namespace {

constexpr const char* kResizing = "train.progressive_resizing";
constexpr double kAtHalfSize = 0.5, kAtFullSize = 0.2;  // Parts of the training.

std::string resizing_option(double delay, double finetune) {
  return fmt::format("{}={{initial_scale: 0.5, delay_fraction: {}, finetune_fraction: {}}}",
                     kResizing, delay, finetune);
}

double whole_speedup(double at_half_size) {
  const double half = 1 / at_half_size;
  const double growing = 1 - kAtHalfSize - kAtFullSize;
  return 1 / (kAtHalfSize * half + growing * (half + 1) / 2 + kAtFullSize);
}

}  // namespace

Change ProgressiveResizing::change() {
  return {.name = "progressive resizing",
          .subject = "image size",
          .options = {resizing_option(kAtHalfSize, kAtFullSize)},
          .effect = Effect::kTraining};
}

std::vector<std::string> ProgressiveResizing::at_half_size() { return {resizing_option(1, 0)}; }

std::vector<std::string> ProgressiveResizing::without(std::vector<std::string> options) {
  std::erase_if(options, [](const std::string& one) { return path_of(one) == kResizing; });
  return options;
}

bool ProgressiveResizing::is_in(const std::vector<std::string>& options) {
  return without(options).size() < options.size();
}

Estimate ProgressiveResizing::speedup(const Estimate& at_half_size) {
  return {.value = whole_speedup(at_half_size.value),
          .low = whole_speedup(at_half_size.low),
          .high = whole_speedup(at_half_size.high),
          .rounds = at_half_size.rounds};
}

Prediction ProgressiveResizing::prediction(const Estimate& at_half_size) {
  const Estimate whole = speedup(at_half_size);
  return {.rule = "progressive-resizing",
          .finding = {},
          .options = change().options,
          .low = whole.low,
          .high = whole.high,
          .basis = fmt::format("measured: {:.2f} times the samples per second at half the size; "
                               "images have it for half of the training, and their full size for "
                               "the last fifth",
                               at_half_size.value)};
}

Change length_change(const Settings& settings, double epochs) {
  Change change{.name = fmt::format("{:.3g} instead of {:.3g} epochs", epochs, settings.epochs),
                .subject = "length",
                .options = {fmt::format("train.epochs={:.4g}", epochs)},
                .effect = Effect::kTraining};
  // Else the steps would decide.
  if (settings.counts_steps) change.options.emplace_back("train.steps=none");
  return change;
}

Prediction length_prediction(const Change& change, double reached, double whole) {
  return {.rule = "length",
          .finding = {},
          .options = change.options,
          .low = reached,
          .high = whole,
          .basis = "epochs of the longer training, until it reached the target and in all"};
}

}  // namespace gallop::optimize
