#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace gallop::train {

/// The cost of one measurement.
struct MeasuredCost {
  double seconds = 0;  ///< Wall time.
  /// Fraction of the time in which threads of this process were ready but had no core, 0 to 1.
  double busy = 0;
  /// Total time of the measurement, if that is more than `seconds`.
  double spent = 0;
};

/// Measures from its construction to read().
class CostMeter {
 public:
  /// `works`: whether the calling thread computes all the time, as on the CPU. Then wall time
  /// without CPU time, beyond a quarter, counts as busy, too; on a GPU the thread waits.
  explicit CostMeter(bool works);
  MeasuredCost read() const;
  /// CPU time of the calling thread so far, which other programs do not prolong.
  double thread_seconds() const;

 private:
  bool works_;
  double waited_, process_, thread_, wall_;  // Read in this order, the longest first.
};

struct MeasuredChoiceConfig {
  int64_t rounds = 3;          ///< Minimum; sufficient if the result is clear.
  int64_t close_rounds = 9;    ///< Minimum if candidates are close.
  int64_t most_rounds = 100;   ///< Maximum, on a busy machine.
  double most_seconds = 10;    ///< The maximum time limit, after which no further round begins.
  double least_seconds = 0.3;  ///< The minimum time limit.
  /// The time limit is a twentieth of the time for which the choice is made. `uses`: how often the
  /// measured operation will run, such as the number of micro-batches of a run.
  double uses = std::numeric_limits<double>::infinity();
  double worthwhile = 0.95;  ///< A candidate must take at most this fraction of the time of those
                             ///< before it.
  double close = 0.1;        ///< Relative distance from that threshold that counts as close.
  double busy = 0.1;         ///< MeasuredCost::busy that counts as a busy machine.
  double hopeless = 1.5;     ///< A candidate this many times as slow as the fastest is not measured
                             ///< again.
};

/// The measurements of a candidate.
struct MeasuredCandidate {
  std::string name;
  double seconds = 0;  ///< The minimum over all rounds.
  double busy = 0;     ///< In the round with the minimum.
  int64_t rounds = 0;
};

/// A choice with its evidence.
struct MeasuredChoice {
  size_t chosen = 0;
  std::vector<MeasuredCandidate> candidates{};  ///< In the order given.
  std::vector<std::string> excluded{};  ///< Those that were not measured, each with the reason.
  int64_t rounds = 0;
  bool is_close = false;  ///< Another candidate would be chosen if times differed slightly.
  bool is_busy = false;   ///< No round found the machine idle for a candidate that may be fastest.

  /// Whether measuring again may change the choice by more than noise.
  bool is_uncertain() const { return is_busy; }
  /// "fp32 12.1 ms, bf16 7.9 ms", then those excluded; `scale` multiplies the times.
  std::string times(double scale = 1) const;
  /// "bf16: fastest of fp32 12.1 ms (5 rounds, 2 % busy), bf16 7.9 ms (5 rounds, 1 % busy)".
  std::string evidence(double scale = 1) const;
};

/// Measures all candidates in interleaved rounds and compares the minimum time of each: the first
/// is chosen, unless a later one takes at most `worthwhile` of its time. More rounds are measured
/// if candidates are close or the machine is busy, within bounds. `measure` is called with a
/// candidate's index.
MeasuredChoice choose_by_measuring(const std::vector<std::string>& names,
                                   const std::function<MeasuredCost(size_t candidate)>& measure,
                                   const MeasuredChoiceConfig& config = {});

}  // namespace gallop::train
