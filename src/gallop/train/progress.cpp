#include "gallop/train/progress.h"

#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/metric_order.h"

namespace gallop::train {

namespace {

// One list of names for reading and writing.
template <typename P, typename L, typename Visit>
void each_value(P& progress, L& loader, Visit visit) {
  visit("step", progress.step);
  visit("samples", progress.samples);
  visit("skipped_samples", progress.skipped_samples);
  visit("skipped_updates", progress.skipped_updates);
  visit("evaluated_step", progress.evaluated_step);
  visit("best_score", progress.best_score);
  visit("best_step", progress.best_step);
  visit("score_to_beat", progress.score_to_beat);
  visit("evaluations_without_gain", progress.evaluations_without_gain);
  visit("spikes_in_row", progress.spikes_in_row);
  visit("rewinds", progress.rewinds);
  visit("rewind_step", progress.rewind_step);
  visit("training_seconds", progress.training_seconds);
  visit("loader.seed", loader.seed);
  visit("loader.epoch", loader.epoch);
  visit("loader.position", loader.position);
  visit("loader.skipped", loader.skipped);
}

// The shortest text from which the same number is read back.
template <typename T>
std::string text_of(const T& value) {
  return fmt::format("{}", value);
}

template <typename T>
void read_value(const std::map<std::string, std::string>& map, const std::string& name, T& value) {
  const auto found = map.find(name);
  if (found == map.end()) throw DataError(fmt::format("the checkpoint lacks '{}'", name));
  const std::string& text = found->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw DataError(fmt::format("the checkpoint's '{}' is not a number: '{}'", name, text));
  }
}

}  // namespace

bool Progress::note_evaluation(double score, double min_change) {
  evaluated_step = step;
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const bool is_first = best_step < 0;
  if (is_better(score, is_first ? kNone : score_to_beat, Better::kLarger, min_change)) {
    score_to_beat = score;
    evaluations_without_gain = 0;
  } else {
    evaluations_without_gain += 1;
  }
  if (!is_better(score, is_first ? kNone : best_score, Better::kLarger)) return false;
  best_score = score;
  best_step = step;
  return true;
}

std::map<std::string, std::string> Progress::to_map(const data::LoaderState& loader) const {
  std::map<std::string, std::string> map;
  each_value(*this, loader, [&](const char* name, auto value) { map[name] = text_of(value); });
  if (splits > 1) map["splits"] = text_of(splits);
  return map;
}

void Progress::forget_checkpoints(std::map<std::string, std::string>& map) {
  data::LoaderState loader;
  Progress progress = from_map(map, loader);
  progress.best_score = progress.score_to_beat = 0;
  progress.best_step = progress.rewind_step = -1;
  progress.evaluations_without_gain = 0;
  for (const auto& [name, value] : progress.to_map(loader)) map[name] = value;
}

Progress Progress::from_map(const std::map<std::string, std::string>& map,
                            data::LoaderState& loader) {
  Progress progress;
  each_value(progress, loader,
             [&](const char* name, auto& value) { read_value(map, name, value); });
  if (map.contains("splits")) read_value(map, "splits", progress.splits);
  return progress;
}

int64_t read_integer(const std::map<std::string, std::string>& map, const std::string& name) {
  int64_t value = 0;
  read_value(map, name, value);
  return value;
}

void write_schedule(const schedule::Schedule& schedule, const std::string& name,
                    std::map<std::string, std::string>& map) {
  const std::vector<double> state = schedule.state();
  for (size_t i = 0; i < state.size(); ++i) map[fmt::format("{}.{}", name, i)] = text_of(state[i]);
}

void read_schedule(const std::map<std::string, std::string>& map, const std::string& name,
                   schedule::Schedule& schedule) {
  std::vector<double> state = schedule.state();
  for (size_t i = 0; i < state.size(); ++i) {
    read_value(map, fmt::format("{}.{}", name, i), state[i]);
  }
  schedule.restore(state);
}

}  // namespace gallop::train
