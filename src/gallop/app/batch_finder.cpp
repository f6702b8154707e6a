#include "gallop/app/batch_finder.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/prepared_recipe.h"
#include "gallop/app/probe_child.h"
#include "gallop/base/clock.h"
#include "gallop/base/memory.h"
#include "gallop/base/text.h"

namespace gallop::app {

namespace {

using Json = nlohmann::json;

struct Stopped {};

class Finder {
 public:
  Finder(const BatchQuestion& question, const StopRequest& stop)
      : question_(question),
        trial_(question.trial),
        stop_(stop),
        limits_(question.limits),
        is_limit_given_(trial_.limit_bytes > 0) {
    if (!is_limit_given_) trial_.limit_bytes = available_memory() * 9 / 10;
    limits_.bytes = trial_.limit_bytes;
  }

  FoundBatch find(const std::function<void(const schedule::BatchPoint&)>& told) {
    const double begin = monotonic_seconds();
    if (choose_format()) {
      found_.search = schedule::search_batches(
          [&](int64_t batch) {
            const auto point = try_batch(batch);
            if (point && told) told(*point);
            return point;
          },
          limits_);
    }
    if (found_.search.points.empty()) {
      throw DeviceError(
          fmt::format("not even one sample fits into {}: {}. Try train.recompute.every=1, "
                      "train.precision=bf16, or a smaller model",
                      format_bytes(trial_.limit_bytes), found_.why_too_large));
    }
    measure_noise();
    found_.limit_bytes = trial_.limit_bytes;
    found_.seconds = monotonic_seconds() - begin;
    return found_;
  }

 private:
  // Nothing where it does not fit.
  std::optional<Json> run(const std::string& probe, int64_t batch) {
    BatchTrial trial = trial_;
    trial.probe = probe;
    trial.overrides.push_back({"data.batch", std::to_string(batch)});
    const ProbeResult result = run_probe(words_of(trial), stop_);
    if (result.kind == ProbeResult::Kind::kStopped) throw Stopped();
    if (result.kind == ProbeResult::Kind::kNoMemory) {
      found_.why_too_large = result.text;
      return {};
    }
    return Json::parse(result.text);
  }

  // Once for all batches, on as many samples as training would choose by. False where there is no
  // memory even for one.
  bool choose_format() {
    if (!question_.is_format_open) return true;
    for (int64_t batch = std::min(question_.batch, kTimedSamples); batch > 0; batch /= 2) {
      const auto format = run("format", batch);
      if (!format) continue;
      for (const auto& [path, value] : format->items()) {
        found_.format.push_back({path, value.get<std::string>()});
        trial_.overrides.push_back(found_.format.back());
      }
      return true;
    }
    return false;
  }

  std::optional<schedule::BatchPoint> try_batch(int64_t batch) {
    const auto point = run("speed", batch);
    if (!point) return {};
    found_.samples = point->at("samples");
    limits_.most = std::min(limits_.most, found_.samples);
    if (!is_limit_given_ && point->contains("device_bytes")) {
      trial_.limit_bytes = limits_.bytes = point->at("device_bytes");
    }
    if (point->at("bytes").get<int64_t>() > trial_.limit_bytes) {
      found_.why_too_large = fmt::format("more than {}", format_bytes(trial_.limit_bytes));
      return {};
    }
    return schedule::BatchPoint{.batch = point->at("batch"),
                                .samples_per_second = point->at("samples_per_second"),
                                .bytes = point->at("bytes")};
  }

  // Small batches for the noise: an eighth of the recipe's.
  void measure_noise() {
    const train::NoiseConfig& noise = trial_.noise;
    if (noise.steps == 0) return;
    constexpr int64_t kFewest = 4;
    const int64_t most = std::min(found_.search.largest(), found_.samples / noise.parts);
    const int64_t small =
        std::min(std::max(kFewest, question_.batch / noise.parts), std::max<int64_t>(1, most));
    const double seconds = seconds_of_noise(small);
    if (question_.noise_seconds && seconds > *question_.noise_seconds) {
      found_.noise_takes = seconds;
      return;
    }
    const auto result = run("noise", small);
    if (!result || result->contains("too_few")) return;
    found_.small = result->at("small");
    found_.big = result->at("big");
    if (result->contains("batch")) found_.critical = result->at("batch").get<double>();
  }

  // At the speed of small batches; where it is measured, each sample is computed twice.
  double seconds_of_noise(int64_t small) const {
    const auto& points = found_.search.points;
    const auto at_least = std::find_if(points.begin(), points.end(),
                                       [&](const auto& point) { return point.batch >= small; });
    const auto& point = at_least == points.end() ? points.back() : *at_least;
    const int64_t steps = trial_.noise.warm_up + 2 * trial_.noise.steps;
    return static_cast<double>(steps * small * trial_.noise.parts) / point.samples_per_second;
  }

  const BatchQuestion& question_;
  BatchTrial trial_;
  const StopRequest& stop_;
  schedule::BatchLimits limits_;
  bool is_limit_given_;
  FoundBatch found_;
};

}  // namespace

BatchQuestion::BatchQuestion(BatchTrial of_recipe, const Recipe& recipe)
    : trial(std::move(of_recipe)),
      batch(recipe.data.batch),
      is_format_open(recipe.train.precision == "auto" || recipe.train.channels_last == "auto") {}

std::optional<FoundBatch> find_batch(const BatchQuestion& question, const StopRequest& stop,
                                     const std::function<void(const schedule::BatchPoint&)>& told) {
  try {
    return Finder(question, stop).find(told);
  } catch (const Stopped&) {
    return {};
  }
}

}  // namespace gallop::app
