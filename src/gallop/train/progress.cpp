#include "gallop/train/progress.h"

#include <charconv>

#include <fmt/format.h>

#include "gallop/base/error.h"

namespace gallop::train {

namespace {

// One list of names for both directions.
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
  visit("training_seconds", progress.training_seconds);
  visit("loader.seed", loader.seed);
  visit("loader.epoch", loader.epoch);
  visit("loader.position", loader.position);
  visit("loader.skipped", loader.skipped);
}

}  // namespace

bool Progress::note_evaluation(double score, double min_change) {
  evaluated_step = step;
  if (best_step < 0 || score > score_to_beat + min_change) {
    score_to_beat = score;
    evaluations_without_gain = 0;
  } else {
    evaluations_without_gain += 1;
  }
  if (best_step >= 0 && !(score > best_score)) return false;
  best_score = score;
  best_step = step;
  return true;
}

std::map<std::string, std::string> Progress::to_map(const data::LoaderState& loader) const {
  std::map<std::string, std::string> map;
  each_value(*this, loader, [&](const char* name, auto value) {
    map[name] = fmt::format("{}", value);  // shortest text that reads back as the same number
  });
  return map;
}

Progress Progress::from_map(const std::map<std::string, std::string>& map,
                            data::LoaderState& loader) {
  Progress progress;
  each_value(progress, loader, [&](const char* name, auto& value) {
    const auto found = map.find(name);
    if (found == map.end()) throw DataError(fmt::format("the checkpoint lacks '{}'", name));
    const std::string& text = found->second;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) {
      throw DataError(fmt::format("the checkpoint's '{}' is no number: '{}'", name, text));
    }
  });
  return progress;
}

}  // namespace gallop::train
