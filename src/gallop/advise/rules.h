#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gallop/advise/advice.h"

// The rules by topic. Each returns what it finds, or nothing.
namespace gallop::advise {

// data_rules.cpp
/// The number of loader threads that may be enough where steps wait for data; nothing if more would
/// not help.
std::optional<int64_t> useful_loader_threads(const Facts& facts);
std::optional<Advice> data_wait(const Facts& facts);
std::optional<Advice> loader_in_training_thread(const Facts& facts);

// compute_rules.cpp
std::optional<Advice> eager_steps(const Facts& facts);
std::optional<Advice> not_recordable(const Facts& facts);
std::optional<Advice> low_precision(const Facts& facts);
std::optional<Advice> memory_format(const Facts& facts);
std::optional<Advice> idle_cores(const Facts& facts);
std::optional<Advice> too_many_threads(const Facts& facts);
std::optional<Advice> small_batch(const Facts& facts);
std::optional<Advice> recomputation(const Facts& facts);
std::optional<Advice> micro_batches(const Facts& facts);
std::optional<Advice> slow_layer(const Facts& facts);
std::optional<Advice> optimizer_share(const Facts& facts);

// model_rules.cpp
std::optional<Advice> unused_parameters(const Facts& facts);
std::optional<Advice> bias_before_norm(const Facts& facts);
std::optional<Advice> layer_sizes(const Facts& facts);
std::optional<Advice> memory_bound(const Facts& facts);

// run_rules.cpp
std::optional<Advice> verification(const Facts& facts);
std::optional<Advice> evaluation_share(const Facts& facts);
std::optional<Advice> checkpoint_share(const Facts& facts);
std::optional<Advice> report_share(const Facts& facts);
std::optional<Advice> communication_share(const Facts& facts);
std::optional<Advice> bucket_size(const Facts& facts);
std::optional<Advice> gradient_order(const Facts& facts);
std::optional<Advice> rank_skew(const Facts& facts);
std::optional<Advice> other_programs(const Facts& facts);
std::optional<Advice> numa_nodes(const Facts& facts);
std::optional<Advice> huge_pages(const Facts& facts);
std::optional<Advice> uneven_steps(const Facts& facts);

/// The option that freezes these parameters besides those that are frozen already.
std::string option_to_freeze(const Facts& facts, const std::vector<std::string>& names);

/// The gain of the whole step by a trial.
Gain gain_of(const Facts& facts, const Trial& trial);

/// The share of a step that options of the computation change.
double compute_share(const Facts& facts);

/// The speed-up if this share of a step vanishes (Amdahl's law).
double speedup_without(double share);

}  // namespace gallop::advise
