#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gallop/train/metrics/metric.h"

namespace gallop::train {

/// Pairs of predicted and actual numbers. Of each of the first kMostColumns columns, keeps all
/// distinct pairs, or kMostPairs chosen by a hash of their bits, so that the same pairs are kept
/// however they are divided (bottom-k sampling; Cohen and Kaplan, 2007). 32 bytes per pair.
class PairSample final : public MetricState {
 public:
  static constexpr size_t kMostColumns = 12;
  static constexpr size_t kMostPairs = 10'000;

  void add(const Predictions& batch) override;
  void merge(const MetricState& other) override;
  std::string to_bytes() const override;
  void from_bytes(const std::string& bytes) override;

  Residuals residuals() const;

 private:
  struct Pair {
    uint64_t hash = 0;
    double predicted = 0, actual = 0;
    int64_t count = 0;
  };
  struct Column {
    std::vector<Pair> sorted, more;
    int64_t count = 0, not_finite = 0;
  };

  static void note(Column& column, double predicted, double actual);
  static void sort_in(Column& column);
  void resize(int64_t columns);

  std::vector<Column> columns_;
  int64_t all_columns_ = 0;
};

/// Predicted against actual numbers and their residuals, a figure without a value. Throws
/// UsageError if targets are not numbers.
std::unique_ptr<Metric> make_residuals(const MetricTask& task);

}  // namespace gallop::train
