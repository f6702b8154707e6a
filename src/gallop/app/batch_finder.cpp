#include "gallop/app/batch_finder.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/probe_child.h"
#include "gallop/base/clock.h"
#include "gallop/base/memory.h"
#include "gallop/base/text.h"
#include "gallop/parallel/strategy.h"

namespace gallop::app {

namespace {

using Json = nlohmann::json;

struct Stopped {};

class Finder {
 public:
  Finder(const BatchQuestion& question, const DistributedContext& context, const StopRequest& stop)
      : question_(question),
        context_(context),
        trial_(question.trial),
        stop_(stop),
        limits_(question.limits),
        is_limit_given_(trial_.limit_bytes > 0) {
    if (!is_limit_given_) trial_.limit_bytes = available_memory() * 9 / 10;
    limits_.bytes = least_of_all(trial_.limit_bytes);
    trial_.limit_bytes = least_of_all(trial_.limit_bytes / context.local_size());
  }

  FoundBatch find(const std::function<void(const schedule::BatchPoint&)>& on_point) {
    const double begin = monotonic_seconds();
    if (choose_format()) {
      found_.search = schedule::search_batches(
          [&](int64_t batch) {
            const auto point = try_batch(batch);
            if (point && on_point) on_point(*point);
            return point;
          },
          limits_);
    }
    if (found_.search.points.empty()) {
      context_.run_on_rank0([this] {
        throw DeviceError(fmt::format(
            "not even one sample fits into {}: {}. Try train.activation_checkpointing.every=1, "
            "train.precision=bf16, or a smaller model",
            format_bytes(limits_.bytes), found_.why_too_large));
      });
    }
    measure_noise();
    found_.limit_bytes = limits_.bytes;
    found_.seconds = monotonic_seconds() - begin;
    return found_;
  }

 private:
  // The minimum over all hosts.
  int64_t least_of_all(int64_t bytes) const {
    if (context_.is_alone()) return bytes;
    const auto all = parallel::gather(*context_.collectives(), static_cast<uint64_t>(bytes));
    return static_cast<int64_t>(*std::min_element(all.begin(), all.end()));
  }

  // Over all processes of the trial.
  ProbeResult try_on_all_ranks(const BatchTrial& trial) {
    const auto args = args_of(trial);
    if (context_.is_alone()) return run_probe(args, {}, stop_);
    ProbeResult own;
    std::optional<Error> failure;
    try {
      own = run_probe(args, context_.variables_of_children(fmt::format("probe {}", ++probes_)),
                      stop_);
    } catch (const Error& error) {
      failure = error;
    }
    return agree(own, failure);
  }

  // If one of them fails or runs out of memory, the others fail with code 4, as their peer is gone.
  ProbeResult agree(const ProbeResult& own, const std::optional<Error>& failure) {
    using Kind = ProbeResult::Kind;
    constexpr uint64_t kKinds = 8;
    parallel::Collectives& others = *context_.collectives();
    const uint64_t code = failure ? static_cast<uint64_t>(failure->code()) : 0;
    const auto states = parallel::gather(others, kKinds * code + static_cast<uint64_t>(own.kind));
    const auto texts = parallel::gather(others, failure ? std::string(failure->what()) : own.text);
    const auto find = [&](const auto& is_one) {
      return static_cast<size_t>(std::find_if(states.begin(), states.end(), is_one) -
                                 states.begin());
    };
    const auto of_kind = [&](Kind kind) {
      return find([kind](uint64_t state) { return state == static_cast<uint64_t>(kind); });
    };
    if (of_kind(Kind::kStopped) < states.size()) return {.kind = Kind::kStopped, .text = {}};
    if (const size_t rank = of_kind(Kind::kNoMemory); rank < states.size()) {
      return {.kind = Kind::kNoMemory, .text = texts[rank]};
    }
    const auto is_gone = [](uint64_t state) {
      return state / kKinds == static_cast<uint64_t>(ExitCode::kDevice);
    };
    size_t rank = find([&](uint64_t state) { return state >= kKinds && !is_gone(state); });
    if (rank == states.size()) rank = find(is_gone);
    if (rank == states.size()) {
      return {.kind = Kind::kDone, .text = parallel::text_of_first(others, own.text)};
    }
    // Other processes' texts are truncated to 255 bytes.
    const bool is_own = static_cast<int>(rank) == context_.rank();
    const Error error =
        is_own ? *failure : Error(static_cast<ExitCode>(states[rank] / kKinds), texts[rank]);
    context_.run_on_rank0([&error] { throw Error(error); });
    throw Error(error);
  }

  // Nothing if it does not fit into memory.
  std::optional<Json> run(const std::string& probe, int64_t batch) {
    BatchTrial trial = trial_;
    trial.probe = probe;
    trial.overrides.push_back({"data.batch_size", std::to_string(batch)});
    trial.overrides.push_back({"train.rampup_batch_size.start", "0"});
    const ProbeResult result = try_on_all_ranks(trial);
    if (result.kind == ProbeResult::Kind::kStopped) throw Stopped();
    if (result.kind == ProbeResult::Kind::kNoMemory) {
      found_.why_too_large = result.text;
      return {};
    }
    return Json::parse(result.text);
  }

  // Once for all batch sizes, with the number of samples that training would use. False if there is
  // not enough memory even for one.
  bool choose_format() {
    if (!question_.is_format_open) return true;
    for (int64_t batch = std::min(question_.batch, kTimedSamples); batch > 0; batch /= 2) {
      const auto format = run("format", batch);
      if (!format) continue;
      for (const auto& [path, value] : format->at("format").items()) {
        found_.format.push_back({path, value.get<std::string>()});
        trial_.overrides.push_back(found_.format.back());
      }
      for (const auto& choice : format->value("choices", Json::array())) {
        found_.choices.push_back({.options = choice.at("options"),
                                  .evidence = choice.at("evidence"),
                                  .is_uncertain = choice.at("is_uncertain")});
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
    if (point->at("bytes").get<int64_t>() > limits_.bytes) {
      found_.why_too_large = fmt::format("more than {}", format_bytes(limits_.bytes));
      return {};
    }
    found_.busy = std::max(found_.busy, point->at("busy").get<double>());
    return schedule::BatchPoint{.batch = point->at("batch"),
                                .samples_per_second = point->at("samples_per_second"),
                                .bytes = point->at("bytes")};
  }

  // The small batches for the gradient noise scale are an eighth of the recipe's.
  void measure_noise() {
    const train::NoiseConfig& noise = trial_.noise;
    if (noise.steps == 0) return;
    constexpr int64_t kFewest = 4;
    const int64_t most = std::min(found_.search.largest(), found_.samples / noise.parts);
    int64_t small =
        std::min(std::max(kFewest, question_.batch / noise.parts), std::max<int64_t>(1, most));
    // Rounded up to a multiple of the number of processes.
    small = (small + context_.size() - 1) / context_.size() * context_.size();
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

  // Assumes the throughput of small batches; the measurement computes each sample twice.
  double seconds_of_noise(int64_t small) const {
    const auto& points = found_.search.points;
    const auto at_least = std::find_if(points.begin(), points.end(),
                                       [&](const auto& point) { return point.batch >= small; });
    const auto& point = at_least == points.end() ? points.back() : *at_least;
    const int64_t steps = trial_.noise.warm_up + 2 * trial_.noise.steps;
    return static_cast<double>(steps * small * trial_.noise.parts) / point.samples_per_second;
  }

  const BatchQuestion& question_;
  const DistributedContext& context_;
  BatchTrial trial_;  ///< With the memory limit of each process.
  int64_t probes_ = 0;
  const StopRequest& stop_;
  schedule::BatchLimits limits_;
  bool is_limit_given_;
  FoundBatch found_;
};

}  // namespace

bool has_noise_scale(const Recipe& recipe, const DistributedContext& context) {
  return context.is_alone() || !parallel::trains_replicas(recipe.strategy.name());
}

BatchQuestion::BatchQuestion(BatchTrial of_recipe, const Recipe& recipe)
    : trial(std::move(of_recipe)),
      batch(recipe.data.batch_size),
      is_format_open(recipe.train.precision == "auto" || recipe.train.channels_last == "auto") {
  if (recipe.data.max_tokens == 0) return;
  throw UsageError(
      "data.batch_size cannot be searched with data.max_tokens, which decides on the size of "
      "batches; "
      "leave one of them out");
}

std::optional<FoundBatch> find_batch(
    const BatchQuestion& question, const DistributedContext& context, const StopRequest& stop,
    const std::function<void(const schedule::BatchPoint&)>& on_point) {
  try {
    return Finder(question, context, stop).find(on_point);
  } catch (const Stopped&) {
    return {};
  }
}

}  // namespace gallop::app
