#include "gallop/train/metrics/regression.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/train/metrics/exact_sum.h"
#include "gallop/train/metrics/predictions.h"
#include "gallop/train/metrics/state_bytes.h"

namespace gallop::train {

namespace {

struct Column {
  ExactSum squared_errors, absolute_errors, targets, squared_targets;
};

// About 2.4 KB per column of the targets.
class Errors final : public MetricState {
 public:
  void add(const Predictions& batch) override {
    const HostNumbers numbers = host_numbers(batch);
    resize(static_cast<size_t>(numbers.columns));
    for (int64_t i = 0; i < numbers.size(); ++i) {
      Column& column = columns_[static_cast<size_t>(i % numbers.columns)];
      const double target = numbers.actual()[i], error = target - numbers.predicted()[i];
      column.squared_errors.add(error * error);
      column.absolute_errors.add(std::abs(error));
      column.targets.add(target);
      column.squared_targets.add_product(target, target);
    }
    rows_ += numbers.size() / numbers.columns;
  }

  void merge(const MetricState& other) override {
    const auto& more = dynamic_cast<const Errors&>(other);
    if (more.columns_.empty()) return;
    resize(more.columns_.size());
    for (size_t i = 0; i < columns_.size(); ++i) {
      columns_[i].squared_errors.merge(more.columns_[i].squared_errors);
      columns_[i].absolute_errors.merge(more.columns_[i].absolute_errors);
      columns_[i].targets.merge(more.columns_[i].targets);
      columns_[i].squared_targets.merge(more.columns_[i].squared_targets);
    }
    rows_ += more.rows_;
  }

  std::string to_bytes() const override {
    BytesWriter writer;
    writer.put(columns_);
    writer.put(rows_);
    return writer.take();
  }
  void from_bytes(const std::string& bytes) override {
    BytesReader reader(bytes);
    reader.get(columns_);
    reader.get(rows_);
  }

  const std::vector<Column>& columns() const { return columns_; }
  int64_t rows() const { return rows_; }

 private:
  void resize(size_t columns) {
    if (columns_.empty()) columns_.resize(columns);
    if (columns_.size() == columns) return;
    throw InternalError(
        fmt::format("targets of {} numbers after some of {}", columns, columns_.size()));
  }

  std::vector<Column> columns_;
  int64_t rows_ = 0;
};

// The value of a column; the metric is the mean over columns, undefined if it is NaN.
using Formula = double (*)(const Column& column, double rows);

class OfErrors final : public Metric {
 public:
  OfErrors(const char* name, bool higher_is_better, int64_t least_rows, Formula formula)
      : name_(name),
        higher_is_better_(higher_is_better),
        least_rows_(least_rows),
        formula_(formula) {}

  std::string name() const override { return name_; }
  bool higher_is_better() const override { return higher_is_better_; }
  std::string state_key() const override { return "errors"; }
  std::unique_ptr<MetricState> make_state() const override { return std::make_unique<Errors>(); }

  std::vector<MetricValue> values(const MetricState& state) const override {
    const auto& errors = dynamic_cast<const Errors&>(state);
    MetricValue value{name_, std::nullopt, higher_is_better_};
    if (errors.rows() < least_rows_) return {value};
    double sum = 0;
    for (const Column& column : errors.columns()) {
      sum += formula_(column, static_cast<double>(errors.rows()));
    }
    const double mean = sum / static_cast<double>(errors.columns().size());
    if (!std::isnan(mean)) value.value = mean;
    return {value};
  }

 private:
  const char* name_;
  bool higher_is_better_;
  int64_t least_rows_;
  Formula formula_;
};

// A sum in two parts, which together have 106 bits.
struct Parts {
  double high, low;
};
Parts parts_of(ExactSum sum) {
  const double high = sum.value();
  sum.add(-high);
  return {high, sum.value()};
}

double r2(const Column& column, double rows) {
  const double errors = column.squared_errors.value();
  if (!std::isfinite(errors)) return std::nan("");
  // N times the sum of squared deviations from the mean, without cancellation.
  const Parts squares = parts_of(column.squared_targets), sum = parts_of(column.targets);
  ExactSum spread;
  spread.add_product(rows, squares.high);
  spread.add_product(rows, squares.low);
  spread.add_product(-sum.high, sum.high);
  spread.add_product(-2 * sum.high, sum.low);
  spread.add_product(-sum.low, sum.low);
  const double squared_distances = spread.value() / rows;
  if (!(squared_distances > 0)) return errors == 0 ? 1 : 0;
  return 1 - errors / squared_distances;
}

std::unique_ptr<Metric> of_errors(const char* name, bool higher_is_better, int64_t least_rows,
                                  Formula formula, const MetricTask& task) {
  if (task.target != MetricTask::Target::kNumbers) refuse_task(name, "numbers as targets", task);
  return std::make_unique<OfErrors>(name, higher_is_better, least_rows, formula);
}

}  // namespace

std::unique_ptr<Metric> make_mse(const NoMetricOptions&, const MetricTask& task) {
  return of_errors(
      "mse", /*higher_is_better=*/false, 1,
      [](const Column& column, double rows) { return column.squared_errors.value() / rows; }, task);
}

std::unique_ptr<Metric> make_rmse(const NoMetricOptions&, const MetricTask& task) {
  return of_errors(
      "rmse", /*higher_is_better=*/false, 1,
      [](const Column& column, double rows) {
        return std::sqrt(column.squared_errors.value() / rows);
      },
      task);
}

std::unique_ptr<Metric> make_mae(const NoMetricOptions&, const MetricTask& task) {
  return of_errors(
      "mae", /*higher_is_better=*/false, 1,
      [](const Column& column, double rows) { return column.absolute_errors.value() / rows; },
      task);
}

std::unique_ptr<Metric> make_r2(const NoMetricOptions&, const MetricTask& task) {
  return of_errors("r2", /*higher_is_better=*/true, 2, r2, task);
}

}  // namespace gallop::train
