#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gallop/advise/facts.h"

namespace gallop::advise {

/// The factor by which a change is predicted to make training faster.
struct Gain {
  double low = 1, high = 1;
  std::string basis;  ///< "measured", or what it was computed from.
};

/// A finding, and what to do about it.
struct Advice {
  std::string rule;
  std::string finding;  ///< With its evidence: "92.2 % of the step is spent waiting for data".
  std::string remedy;   ///< "Set data.threads to 6"; why nothing can be done, if so.
  std::vector<std::string> options{};  ///< "data.threads=6"; empty if no option would help.
  Gain gain{};

  /// By which advice is ranked.
  double expected() const { return (gain.low + gain.high) / 2; }
};

/// A row of the table of rules.
struct Rule {
  const char* name;
  const char* condition;  ///< In one line.
  std::optional<Advice> (*check)(const Facts& facts);
};

const std::vector<Rule>& all_rules();

/// The options whose effect on a step is worth measuring for the rules; see Facts::trials.
std::vector<std::string> options_to_try(const Facts& facts);

/// Whether steps wait for the loader so long that rules look at it.
bool waits_for_data(const Facts& facts);

/// Whether the time of a step on one batch, which waits for nothing, is worth measuring for the
/// rules; see Facts::step_alone.
bool wants_step_alone(const Facts& facts);

/// The options of the loader whose effect is worth measuring in whole trainings.
std::vector<std::string> loader_options_to_try(const Facts& facts);

/// What all rules find, the highest expected gain first.
std::vector<Advice> advise(const Facts& facts);

/// A paragraph for each advice: finding, remedy, and predicted speed-up; a line if there is none.
std::string advice_text(const std::vector<Advice>& advice, size_t columns = 120);

/// [{"rule", "finding", "remedy", "options", "gain": {"low", "high", "basis"}}]
std::string advice_json(const std::vector<Advice>& advice);

}  // namespace gallop::advise
