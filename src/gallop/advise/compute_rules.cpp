#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gallop/advise/rules.h"
#include "gallop/profile/profile_text.h"

namespace gallop::advise {

using profile::percent;

namespace {

// Smaller gains are noise.
constexpr double kLeastSpeedup = 1.05;
// The uncertainty of a measured ratio of two steps.
constexpr double kSpread = 0.05;

std::optional<Advice> from_trial(const Facts& facts, const std::string& options,
                                 const std::string& finding, const std::string& remedy) {
  const Trial* trial = facts.trial(options);
  if (trial == nullptr || trial->speedup() < kLeastSpeedup) return std::nullopt;
  return Advice{
      .finding = finding, .remedy = remedy, .options = {options}, .gain = gain_of(facts, *trial)};
}

}  // namespace

double compute_share(const Facts& facts) {
  double share = 0;
  for (const char* phase : {"forward", "loss", "backward", "recomputation", "optimizer", "other"}) {
    share += facts.share_of_phase(phase);
  }
  return share;
}

Gain gain_of(const Facts& facts, const Trial& trial) {
  const double share = trial.is_whole ? 1 : compute_share(facts);
  const auto with = [&](double speedup) { return 1 / (1 - share * (1 - 1 / speedup)); };
  const double spread = trial.is_uncertain ? 3 * kSpread : kSpread;
  return {.low = std::max(1.0, with(trial.speedup() * (1 - spread))),
          .high = std::max(1.0, with(trial.speedup() * (1 + spread))),
          .basis = fmt::format("measured: {:.2f} instead of {:.2f} ms{}", 1e3 * trial.seconds,
                               1e3 * trial.seconds_as_is,
                               trial.is_uncertain ? ", while the machine was busy" : "")};
}

std::optional<Advice> eager_steps(const Facts& facts) {
  if (facts.settings.compiled) return std::nullopt;
  return from_trial(facts, "train.compile=true", "Steps run eagerly, as train.compile is false",
                    "Set train.compile to true");
}

std::optional<Advice> not_recordable(const Facts& facts) {
  if (facts.settings.why_not_compiled.empty()) return std::nullopt;
  return Advice{
      .finding = "Steps run eagerly, and cannot be compiled: " + facts.settings.why_not_compiled,
      .remedy = "No option changes this; the model would have to be written without that operator"};
}

std::optional<Advice> low_precision(const Facts& facts) {
  if (facts.settings.precision != "fp32") return std::nullopt;
  return from_trial(facts, "train.precision=bf16",
                    "Steps compute in fp32, and this machine is faster in bf16",
                    "Set train.precision to bf16");
}

std::optional<Advice> memory_format(const Facts& facts) {
  if (!facts.settings.has_convolutions) return std::nullopt;
  const bool wanted = !facts.settings.channels_last;
  return from_trial(facts, fmt::format("train.channels_last={}", wanted),
                    fmt::format("Convolutions run in {}",
                                wanted ? "the contiguous format (NCHW)" : "channels_last (NHWC)"),
                    fmt::format("Set train.channels_last to {}", wanted));
}

std::optional<Advice> idle_cores(const Facts& facts) {
  if (facts.on_gpu || facts.settings.threads >= facts.cores) return std::nullopt;
  return from_trial(facts, fmt::format("train.threads={}", facts.cores),
                    fmt::format("{} of {} cores compute", facts.settings.threads, facts.cores),
                    fmt::format("Set train.threads to {}", facts.cores));
}

std::optional<Advice> too_many_threads(const Facts& facts) {
  if (facts.on_gpu || facts.settings.threads <= facts.cores) return std::nullopt;
  return from_trial(facts, fmt::format("train.threads={}", facts.cores),
                    fmt::format("{} threads compute on {} cores, and wait for each other",
                                facts.settings.threads, facts.cores),
                    fmt::format("Set train.threads to {}", facts.cores));
}

// A larger batch takes less time a sample if a step's time does not grow with it.
std::optional<Advice> small_batch(const Facts& facts) {
  const int64_t batch = facts.settings.batch_size;
  const std::string options = fmt::format("data.batch_size={}", 4 * batch);
  const Trial* trial = facts.trial(options);
  if (trial == nullptr) return std::nullopt;
  // What a step does besides computing takes as long for a larger batch, except for loading.
  const double step = facts.profile.seconds, wait = facts.phase("data wait");
  const double rest = std::max(0.0, step - wait - trial->seconds_as_is);
  const auto with = [&](double waiting) { return 4 * step / (trial->seconds + rest + waiting); };
  // Nor where the loader is what the steps wait for.
  const bool is_loading = facts.settings.data_threads == 0 || facts.profile.loader.busy > 0.5;
  const Gain gain{.low = with(4 * wait) * (1 - kSpread),
                  .high = with(is_loading ? 4 * wait : 0) * (1 + kSpread),
                  .basis = fmt::format("measured, per sample: {:.2f} ms for 4 times the batch "
                                       "instead of {:.2f} ms",
                                       1e3 * trial->seconds, 1e3 * trial->seconds_as_is)};
  // A larger batch needs another learning rate, which is worth more than a few percent.
  if (4 * trial->speedup() < 1.25 || gain.low < 1.1) return std::nullopt;
  std::vector<std::string> changes = {options};
  std::string scaling;
  if (!facts.settings.scales_lr) {
    // Goyal et al., "Accurate, large minibatch SGD", 2017; Malladi et al., "On the SDEs and scaling
    // rules for adaptive gradient algorithms", 2022.
    changes.push_back(fmt::format("optimizer.lr_scaling={}",
                                  facts.settings.optimizer == "sgd" ? "linear" : "sqrt"));
    changes.push_back(fmt::format("optimizer.lr_batch={}", batch));
    scaling = fmt::format(", with {} {}", changes[1], changes[2]);
  }
  return Advice{
      .finding = fmt::format("A batch of {} is too small for this machine: a batch of {} takes "
                             "only {:.1f} times as long",
                             batch, 4 * batch, 1 / trial->speedup()),
      .remedy = fmt::format("Set data.batch_size to {}{}; fewer updates may need more epochs",
                            4 * batch, scaling),
      .options = changes,
      .gain = gain};
}

std::optional<Advice> recomputation(const Facts& facts) {
  return from_trial(facts, "train.activation_checkpointing={every: 0}",
                    "Activations are recomputed in the backward pass, and there is memory to "
                    "keep them",
                    "Set train.activation_checkpointing.every to 0, and its memory to none");
}

std::optional<Advice> micro_batches(const Facts& facts) {
  return from_trial(facts, "train.gradient_accumulation=1",
                    fmt::format("A batch of {} is computed in {} parts, and there is memory for "
                                "all of it",
                                facts.settings.batch_size, facts.settings.micro_batches),
                    "Set train.gradient_accumulation to 1");
}

std::optional<Advice> slow_layer(const Facts& facts) {
  constexpr double kShare = 0.1, kOfLimit = 0.25;
  const profile::LayerTime* slowest = nullptr;
  double possible = 0;
  for (const profile::LayerTime& layer : facts.profile.layers) {
    const double seconds = layer.seconds();
    if (layer.name.empty() || layer.limit <= 0) continue;
    if (facts.profile.share_of(seconds) < kShare || layer.limit > kOfLimit * seconds) continue;
    if (seconds - layer.limit > possible) {
      possible = seconds - layer.limit;
      slowest = &layer;
    }
  }
  if (slowest == nullptr) return std::nullopt;
  const double share = facts.profile.share_of(slowest->seconds());
  return Advice{.finding = fmt::format(
                    "Layer {} takes {} of the step at {} of the hardware limit; at the "
                    "limit a step would be {:.2f} times as fast",
                    slowest->name, percent(share), percent(slowest->limit / slowest->seconds()),
                    speedup_without(facts.profile.share_of(possible))),
                .remedy = "No option changes this; a larger batch may suit the machine better"};
}

std::optional<Advice> optimizer_share(const Facts& facts) {
  const double share = facts.share_of_phase("optimizer");
  if (share < 0.15) return std::nullopt;
  const int64_t more = 4;
  return Advice{
      .finding = fmt::format("The optimizer takes {} of the step, which does not depend on the "
                             "batch of {}",
                             percent(share), facts.settings.batch_size),
      .remedy = fmt::format("Update less often: train.gradient_accumulation={} with a batch of "
                            "{}, and a suitable learning rate",
                            more * facts.settings.micro_batches, more * facts.settings.batch_size),
      .options = {fmt::format("train.gradient_accumulation={}",
                              more * facts.settings.micro_batches),
                  fmt::format("data.batch_size={}", more * facts.settings.batch_size)},
      .gain = {.low = speedup_without(share * (1 - 1.0 / static_cast<double>(more)) * 0.8),
               .high = speedup_without(share * (1 - 1.0 / static_cast<double>(more))),
               .basis = "an update for every 4 micro-batches"}};
}

}  // namespace gallop::advise
