#include "gallop/optimize/changes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

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
    Subject{"train.activation_checkpointing.every", "activation checkpointing", Effect::kNone},
};

Change change_of(const std::string& option) {
  const std::string path = path_of(option);
  const auto subject = std::find_if(kSubjects.begin(), kSubjects.end(),
                                    [&](const Subject& one) { return path == one.path; });
  return {.name = option, .subject = subject->name, .options = {option}, .effect = subject->effect};
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
  if (saves_memory && settings.recomputed_every == 0) {
    options.emplace_back("train.activation_checkpointing.every=1");
  }
  if (!saves_memory && settings.recomputed_every > 0) {
    options.emplace_back("train.activation_checkpointing.every=0");
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

bool is_adaptive(const std::string& optimizer) {
  return optimizer != "sgd" && optimizer != "sgdw" && optimizer != "schedule-free-sgd" &&
         optimizer != "lars" && optimizer != "muon";
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
  if (is_constant) {
    changes.push_back({.name = "one-cycle schedule",
                       .subject = "schedule",
                       .options = one_cycle,
                       .effect = Effect::kTraining});
  }
  if (found_lr && std::abs(std::log(*found_lr / settings.lr)) > std::log(1.2)) {
    const std::string lr = fmt::format("optimizer.lr={:.2g}", *found_lr);
    changes.push_back({.name = is_constant ? fmt::format("one-cycle schedule with {}", lr)
                                           : fmt::format("learning rate of find-lr: {}", lr),
                       .subject = "schedule",
                       .options = is_constant ? with(one_cycle, {lr}) : std::vector{lr},
                       .effect = Effect::kTraining});
  }
  return changes;
}

std::vector<Change> batch_changes(const Settings& settings) {
  std::vector<Change> changes;
  for (const int64_t factor : {2, 4, 8}) {
    const int64_t batch = factor * settings.batch_size;
    // Fewer than a hundred updates an epoch leave little to a schedule.
    if (batch * 20 > settings.samples) break;
    const auto by = static_cast<double>(factor);
    const double lr = settings.lr * (is_adaptive(settings.optimizer) ? std::sqrt(by) : by);
    Change change{.name = fmt::format("batch size {}", batch),
                  .subject = kBatchSize,
                  .options = {fmt::format("data.batch_size={}", batch)},
                  .effect = Effect::kTraining};
    if (!settings.scales_lr) change.options.push_back(fmt::format("optimizer.lr={:.3g}", lr));
    changes.push_back(std::move(change));
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
  if (settings.wrappers.empty()) {
    changes.push_back({.name = "moving average of the weights (EMA)",
                       .subject = "weight average",
                       .options = {"optimizer.wrappers=[ema]"},
                       .effect = Effect::kTraining});
  }
  return changes;
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

}  // namespace gallop::optimize
