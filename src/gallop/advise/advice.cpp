#include "gallop/advise/advice.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/advise/rules.h"
#include "gallop/base/text.h"

namespace gallop::advise {

double Facts::phase(const std::string& name) const {
  for (const profile::PhaseTime& one : profile.phases) {
    if (one.name == name) return one.seconds;
  }
  return 0;
}

double Facts::share_of_phase(const std::string& name) const {
  return profile.share_of(phase(name));
}

const Trial* Facts::trial(const std::string& options) const {
  const auto found = std::find_if(trials.begin(), trials.end(),
                                  [&](const Trial& one) { return one.options == options; });
  return found == trials.end() ? nullptr : &*found;
}

double speedup_without(double share) { return 1 / (1 - std::clamp(share, 0.0, 0.99)); }

const std::vector<Rule>& all_rules() {
  static const std::vector<Rule> kRules = {
      {"data-wait", "more than 5 % of a step waits for the loader's threads", data_wait},
      {"loader-in-training-thread", "the training thread prepares samples itself",
       loader_in_training_thread},
      {"eager-steps", "steps are not compiled, and compiled ones are faster", eager_steps},
      {"not-recordable", "steps cannot be compiled", not_recordable},
      {"low-precision", "steps in bf16 are faster", low_precision},
      {"memory-format", "steps in a different memory format are faster", memory_format},
      {"idle-cores", "fewer threads compute than there are cores", idle_cores},
      {"too-many-threads", "more threads compute than there are cores", too_many_threads},
      {"small-batch", "operators are too small for the machine", small_batch},
      {"recomputation", "activations are recomputed, and there is memory to keep them",
       recomputation},
      {"micro-batches", "a batch is divided, and there is memory for all of it", micro_batches},
      {"slow-layer", "a layer with more than 10 % of the step is far from the hardware limit",
       slow_layer},
      {"memory-bound", "more than half of a step is bound by the bandwidth of memory",
       memory_bound},
      {"layer-sizes", "a layer is faster with sizes that are multiples of the vector's",
       layer_sizes},
      {"bias-before-norm", "a batch norm subtracts the bias of the layer before it",
       bias_before_norm},
      {"unused-parameters", "the loss does not depend on some parameters", unused_parameters},
      {"optimizer-share", "the optimizer takes more than 15 % of a step", optimizer_share},
      {"verification", "compiled steps are verified", verification},
      {"evaluation-share", "evaluations take more than 10 % of the time", evaluation_share},
      {"checkpoint-share", "checkpoints take more than 5 % of the time", checkpoint_share},
      {"report-share", "logging takes more than 5 % of the time", report_share},
      {"communication-share", "more than 10 % of a step waits for other processes",
       communication_share},
      {"bucket-size", "less than half of the communication overlaps with the backward pass",
       bucket_size},
      {"gradient-order",
       "the backward pass computes the largest gradient last, and waits for its all-reduce",
       gradient_order},
      {"rank-skew", "the compute time of processes differs by more than 10 % of its mean",
       rank_skew},
      {"other-programs", "other programs use more than a tenth of the cores", other_programs},
      {"numa-nodes", "the threads of one process compute on several NUMA nodes", numa_nodes},
      {"huge-pages", "the system does not provide huge pages", huge_pages},
      {"uneven-steps", "the slowest twentieth of the steps takes 1.5 times the median",
       uneven_steps},
  };
  return kRules;
}

std::vector<std::string> options_to_try(const Facts& facts) {
  const Settings& settings = facts.settings;
  std::vector<std::string> options;
  if (!settings.compiled && settings.why_not_compiled.empty()) {
    options.emplace_back("train.compile=true");
  }
  const auto rate = [&](const char* format) {
    const auto found = facts.peaks.flops_per_second.find(format);
    return found == facts.peaks.flops_per_second.end() ? 0 : found->second;
  };
  // Without instructions for bf16, steps are slower in it.
  if (settings.precision == "fp32" && !settings.measured_precision &&
      (facts.on_gpu || rate("bf16") > 1.2 * rate("fp32"))) {
    options.emplace_back("train.precision=bf16");
  }
  if (settings.has_convolutions && !settings.measured_format) {
    options.push_back(fmt::format("train.channels_last={}", !settings.channels_last));
  }
  if (!facts.on_gpu && settings.threads != facts.cores) {
    options.push_back(fmt::format("train.threads={}", facts.cores));
  }
  const profile::MemoryUse& use = facts.profile.memory.peak;
  const bool fits = 4 * use.total() < facts.memory_bytes / 2;
  if (fits && facts.settings.samples >= 4 * settings.batch_size) {
    options.push_back(fmt::format("data.batch_size={}", 4 * settings.batch_size));
  }
  // Activations of all blocks, or of the whole batch, take several times the memory.
  const bool has_room = 8 * use.total() < facts.memory_bytes;
  if (settings.recomputes && has_room) {
    options.emplace_back("train.activation_checkpointing={every: 0}");
  }
  if (settings.micro_batches > 1 && settings.micro_batches * use.total() < facts.memory_bytes / 4) {
    options.emplace_back("train.gradient_accumulation=1");
  }
  if (!facts.model.biases_before_norm.empty()) {
    options.push_back(option_to_freeze(facts, facts.model.biases_before_norm));
  }
  return options;
}

bool wants_step_alone(const Facts& facts) {
  constexpr double kLeastShare = 0.05;
  return waits_for_data(facts) || facts.share_of_phase("checkpoint") >= kLeastShare ||
         facts.share_of_phase("evaluation") >= kLeastShare;
}

std::vector<std::string> loader_options_to_try(const Facts& facts) {
  const auto threads = useful_loader_threads(facts);
  if (!threads) return {};
  return {fmt::format("data.threads={}", *threads)};
}

std::vector<Advice> advise(const Facts& facts) {
  std::vector<Advice> all;
  for (const Rule& rule : all_rules()) {
    auto advice = rule.check(facts);
    if (!advice) continue;
    advice->rule = rule.name;
    all.push_back(std::move(*advice));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Advice& a, const Advice& b) { return a.expected() > b.expected(); });
  return all;
}

std::string advice_text(const std::vector<Advice>& advice, size_t columns) {
  if (advice.empty()) return "none: no rule found anything to change\n";
  std::string text;
  for (size_t i = 0; i < advice.size(); ++i) {
    const Advice& one = advice[i];
    std::string paragraph = fmt::format("{}. {}. {}", i + 1, one.finding, one.remedy);
    if (one.gain.high > 1) {
      const std::string low = fmt::format("{:.2f}x", one.gain.low);
      const std::string high = fmt::format("{:.2f}x", one.gain.high);
      paragraph +=
          fmt::format(": expected speed-up {} ({})",
                      low == high ? low : fmt::format("{} to {}", low, high), one.gain.basis);
    }
    text += wrapped(paragraph + ".", columns, "   ");
  }
  return text;
}

std::string advice_json(const std::vector<Advice>& advice) {
  auto list = nlohmann::ordered_json::array();
  for (const Advice& one : advice) {
    list.push_back(
        {{"rule", one.rule},
         {"finding", one.finding},
         {"remedy", one.remedy},
         {"options", one.options},
         {"gain", {{"low", one.gain.low}, {"high", one.gain.high}, {"basis", one.gain.basis}}}});
  }
  return list.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace gallop::advise
