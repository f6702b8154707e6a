#include "unit/optimize/fake_experiments.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/optimize/changes.h"

namespace gallop::optimize {

namespace {

std::string value_of(const std::vector<std::string>& options, const std::string& path,
                     const std::string& otherwise) {
  for (const std::string& one : options) {
    if (path_of(one) == path) return one.substr(path.size() + 1);
  }
  return otherwise;
}

bool has(const std::vector<std::string>& options, const std::string& option) {
  return std::find(options.begin(), options.end(), option) != options.end();
}

}  // namespace

double FakeExperiments::rate(const std::vector<std::string>& options) const {
  double rate = 1000;
  for (const auto& [option, factor] : factors) {
    if (has(options, option)) rate *= factor;
  }
  for (const auto& [together, factor] : joint) {
    const bool all = std::all_of(together.begin(), together.end(),
                                 [&](const std::string& one) { return has(options, one); });
    if (all) rate *= factor;
  }
  return rate;
}

double FakeExperiments::sum(const std::map<std::string, double>& values,
                            const std::vector<std::string>& options) const {
  double sum = 0;
  for (const auto& [option, value] : values) {
    if (has(options, option)) sum += value;
  }
  return sum;
}

Settings FakeExperiments::settings(const std::vector<std::string>& options) {
  Settings settings = plain;
  settings.precision = value_of(options, "train.precision", plain.precision);
  settings.channels_last = value_of(options, "train.channels_last", "false") == "true";
  settings.compiles |= has(options, "train.compile=true");
  settings.data_threads = std::stoll(value_of(options, "data.threads", "1"));
  settings.batch_size = std::stoll(value_of(options, "data.batch_size", "32"));
  settings.epochs = std::stod(value_of(options, "train.epochs", "10"));
  settings.processes = processes_of(options);
  settings.cores = plain.cores / settings.processes;
  settings.threads = plain.sets_threads && settings.processes == 1 ? plain.threads : settings.cores;
  if (has(options, "schedule={name: one-cycle}")) settings.schedule = "one-cycle";
  if (has(options, "optimizer.momentum=0.9")) settings.momentum = 0.9;
  if (has(options, "optimizer={name: muon}")) settings.optimizer = "muon";
  if (has(options, "train.label_smoothing=0.1")) settings.label_smoothing = 0.1;
  return settings;
}

std::vector<Prediction> FakeExperiments::predict(const std::vector<std::string>& options) {
  log.push_back(fmt::format("predict {}", fmt::join(options, " ")));
  spent += 1;
  std::vector<Prediction> open;
  for (const Prediction& one : predictions) {
    if (one.options.empty() || !has(options, one.options.front())) open.push_back(one);
  }
  return open;
}

Comparison FakeExperiments::compare(const std::vector<std::string>& base,
                                    const std::vector<std::string>& changed) {
  log.push_back(fmt::format("compare {} | {}", fmt::join(base, " "), fmt::join(changed, " ")));
  spent += 5;
  Comparison result;
  for (const auto& [option, why] : failures) {
    if (has(changed, option)) result.failure = why;
  }
  const auto bytes = [&](const std::vector<std::string>& options) {
    double all = 1e9;
    for (const auto& [option, factor] : memory) all *= has(options, option) ? factor : 1;
    return static_cast<int64_t>(all);
  };
  const double speedup = rate(changed) / rate(base);
  result.base = {.samples_per_second = rate(base), .peak_bytes = bytes(base)};
  result.changed = {.samples_per_second = rate(changed), .peak_bytes = bytes(changed)};
  result.speedup = {.value = speedup, .low = 0.99 * speedup, .high = 1.01 * speedup, .rounds = 5};
  const double rise = sum(losses, changed) - sum(losses, base);
  result.loss_change = {.value = rise, .low = rise - 0.001, .high = rise + 0.001, .rounds = 8};
  return result;
}

TrainingResult FakeExperiments::train(const std::vector<std::string>& options, int64_t seed) {
  log.push_back(fmt::format("train {} seed {}", fmt::join(options, " "), seed));
  const double epochs = std::stod(value_of(options, "train.epochs", "10"));
  const double seconds = epochs * static_cast<double>(plain.samples) / rate(options);
  const double most = 0.9 + sum(metrics, options) + 0.001 * static_cast<double>(seed);
  TrainingResult run{.folder = "runs/1", .training_seconds = seconds};
  for (const auto& [option, why] : later_failures) {
    if (seed > 1 && has(options, option)) run.failure = why;
  }
  for (const double part : {0.25, 0.5, 0.75, 1.0}) {
    // A schedule gives its metric at the end.
    const double now = part < 1 && has(options, "schedule={name: one-cycle}")
                           ? most - 0.1
                           : most - 0.05 * std::exp(-epochs * part);
    run.evaluations.push_back({.epochs = part * epochs, .metric = now});
  }
  spent += seconds;
  return run;
}

std::optional<double> FakeExperiments::find_lr(const std::vector<std::string>& options) {
  log.push_back(fmt::format("find-lr {}", fmt::join(options, " ")));
  return has(options, adamw_option(kAdamwLr)) ? found_adamw_lr : found_lr;
}

}  // namespace gallop::optimize
