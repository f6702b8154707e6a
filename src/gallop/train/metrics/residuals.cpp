#include "gallop/train/metrics/residuals.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/hash.h"
#include "gallop/train/metrics/predictions.h"
#include "gallop/train/metrics/state_bytes.h"

namespace gallop::train {

namespace {

constexpr size_t kLeastPending = 1024;
constexpr size_t kHistogramBins = 30;

uint64_t hash_of(double predicted, double actual) {
  const double pair[2] = {predicted, actual};
  char bytes[sizeof(pair)];
  std::memcpy(bytes, pair, sizeof(pair));
  return xxh3_64({bytes, sizeof(bytes)});
}

void add_histogram(Residuals::Column& column) {
  if (column.pairs.empty()) return;
  std::vector<double> residuals;
  for (const auto& pair : column.pairs) residuals.push_back(pair.actual - pair.predicted);
  const auto [least, most] = std::minmax_element(residuals.begin(), residuals.end());
  const bool is_one = *least == *most;
  const double low = is_one ? *least - 0.5 : *least, high = is_one ? *most + 0.5 : *most;
  for (size_t i = 0; i <= kHistogramBins; ++i) {
    column.edges.push_back(std::lerp(low, high, static_cast<double>(i) / kHistogramBins));
  }
  column.counts.resize(kHistogramBins);
  for (size_t i = 0; i < residuals.size(); ++i) {
    // Edges between bins; the last bin includes its upper edge.
    const auto inner_end = column.edges.end() - 1;
    const auto above = std::upper_bound(column.edges.begin() + 1, inner_end, residuals[i]);
    const auto bin = static_cast<size_t>(above - column.edges.begin()) - 1;
    column.counts[bin] += column.pairs[i].count;
  }
}

class OfPairs final : public Metric {
 public:
  std::string name() const override { return "residuals"; }
  std::string state_key() const override { return name(); }
  std::unique_ptr<MetricState> make_state() const override {
    return std::make_unique<PairSample>();
  }
  std::vector<MetricValue> values(const MetricState& /*state*/) const override { return {}; }
  bool is_single() const override { return false; }
  std::vector<FigureData> figures(const MetricState& state) const override {
    return {{name(), dynamic_cast<const PairSample&>(state).residuals()}};
  }
};

}  // namespace

void PairSample::add(const Predictions& batch) {
  const HostNumbers numbers = host_numbers(batch);
  resize(numbers.columns);
  for (int64_t i = 0; i < numbers.size(); ++i) {
    const auto column = static_cast<size_t>(i % all_columns_);
    if (column >= columns_.size()) continue;
    note(columns_[column], numbers.predicted()[i], numbers.actual()[i]);
  }
}

void PairSample::note(Column& column, double predicted, double actual) {
  if (!std::isfinite(actual - predicted)) {
    column.not_finite += 1;
    return;
  }
  predicted += 0.0;  // Replaces -0 by 0.
  actual += 0.0;
  column.count += 1;
  const uint64_t hash = hash_of(predicted, actual);
  if (column.sorted.size() == kMostPairs && hash > column.sorted.back().hash) return;
  column.more.push_back({.hash = hash, .predicted = predicted, .actual = actual, .count = 1});
  if (column.more.size() > kLeastPending + column.sorted.size()) sort_in(column);
}

// Keeps the pairs with the lowest hashes, without duplicates. A pair that is kept in the end is
// kept in every part, where fewer pairs precede it; so its count is complete.
void PairSample::sort_in(Column& column) {
  auto& sorted = column.sorted;
  auto& more = column.more;
  const auto key = [](const Pair& pair) {
    return std::tie(pair.hash, pair.predicted, pair.actual);
  };
  const auto is_before = [&](const Pair& a, const Pair& b) { return key(a) < key(b); };
  std::sort(more.begin(), more.end(), is_before);
  const auto middle = static_cast<std::ptrdiff_t>(sorted.size());
  sorted.insert(sorted.end(), more.begin(), more.end());
  std::inplace_merge(sorted.begin(), sorted.begin() + middle, sorted.end(), is_before);
  size_t kept = 0;
  for (const Pair& one : sorted) {
    if (kept > 0 && key(sorted[kept - 1]) == key(one)) {
      sorted[kept - 1].count += one.count;
    } else {
      sorted[kept++] = one;
    }
  }
  sorted.resize(std::min(kept, kMostPairs));
  more = {};
}

void PairSample::merge(const MetricState& other) {
  const auto& from = dynamic_cast<const PairSample&>(other);
  if (from.all_columns_ == 0) return;
  resize(from.all_columns_);
  for (size_t i = 0; i < columns_.size(); ++i) {
    Column added = from.columns_[i];
    sort_in(added);
    Column& column = columns_[i];
    column.more.insert(column.more.end(), added.sorted.begin(), added.sorted.end());
    sort_in(column);
    column.count += added.count;
    column.not_finite += added.not_finite;
  }
}

void PairSample::resize(int64_t columns) {
  if (all_columns_ == 0) {
    all_columns_ = columns;
    columns_.resize(std::min(kMostColumns, static_cast<size_t>(columns)));
  }
  if (all_columns_ == columns) return;
  throw InternalError(fmt::format("targets of {} numbers after some of {}", columns, all_columns_));
}

std::string PairSample::to_bytes() const {
  BytesWriter writer;
  writer.put(all_columns_);
  for (Column column : columns_) {
    sort_in(column);
    writer.put(column.sorted);
    writer.put(column.count);
    writer.put(column.not_finite);
  }
  return writer.take();
}

void PairSample::from_bytes(const std::string& bytes) {
  BytesReader reader(bytes);
  int64_t columns = 0;
  reader.get(columns);
  *this = PairSample();
  if (columns > 0) resize(columns);
  for (Column& column : columns_) {
    reader.get(column.sorted);
    reader.get(column.count);
    reader.get(column.not_finite);
  }
}

Residuals PairSample::residuals() const {
  Residuals all{.columns = all_columns_, .shown = {}};
  for (Column column : columns_) {
    sort_in(column);
    auto& shown = all.shown.emplace_back();
    shown.count = column.count;
    shown.not_finite = column.not_finite;
    for (const Pair& pair : column.sorted) {
      shown.pairs.push_back({pair.predicted, pair.actual, pair.count});
    }
    add_histogram(shown);
  }
  return all;
}

std::unique_ptr<Metric> make_residuals(const MetricTask& task) {
  if (task.target != MetricTask::Target::kNumbers) {
    refuse_task("residuals", "numbers as targets", task);
  }
  return std::make_unique<OfPairs>();
}

}  // namespace gallop::train
