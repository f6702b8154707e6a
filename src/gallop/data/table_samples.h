#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gallop/data/samples.h"
#include "gallop/data/table/encoder.h"

namespace gallop::data {

/// The targets of rows: either labels or numbers.
struct TableTargets {
  bool is_class = false;
  size_t columns = 1;
  std::vector<int64_t> labels{};  ///< [rows], for classes.
  std::vector<float> numbers{};   ///< [rows, columns], otherwise.
};

/// Rows of a table as samples: fields "features", with categories "categories", "target", and with
/// weights "weight".
class TableSamples final : public Samples {
 public:
  /// `rows` are those of `table` and of all other arguments that become samples. `targets` may
  /// be empty, for predictions.
  TableSamples(const Table& table, const EncodedRows& encoded, const TableTargets& targets,
               const std::vector<float>& weights, const std::vector<int64_t>& rows);

  int64_t size() const override { return static_cast<int64_t>(lines_.size()); }
  bool every_target_counts() const override { return is_class_; }
  std::optional<int64_t> label(int64_t index) const override;
  std::string describe(int64_t index) const override;
  bool fill(int64_t index, int64_t epoch, const SampleRow& row, Scratch& scratch) const override;

 private:
  std::vector<std::string> files_;
  size_t width_, categories_, targets_;
  bool is_class_, has_weights_;
  std::vector<float> features_, numbers_, weights_;
  std::vector<int64_t> indices_, labels_, lines_;
  std::vector<int32_t> file_of_;
};

}  // namespace gallop::data
