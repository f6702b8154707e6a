#include "gallop/train/metrics/retrieval.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "gallop/train/metrics/exact_sum.h"
#include "gallop/train/metrics/predictions.h"
#include "gallop/train/metrics/state_bytes.h"

namespace gallop::train {

namespace {

using Target = MetricTask::Target;

/// The items of a query by decreasing score, then by decreasing index.
struct Ranked {
  std::vector<float> scores;
  std::vector<bool> relevant;
  int64_t relevant_items = 0;
};

class Ranker {
 public:
  Ranker(const HostRows& rows, const MetricTask& task) : rows_(rows), task_(task) {}

  Ranked rank(int64_t row) {
    const float* const scores = rows_.row(row);
    order_.clear();
    for (int64_t k = 0; k < rows_.columns; ++k) {
      if (counts(row, k)) order_.push_back(k);
    }
    std::sort(order_.begin(), order_.end(), [&](int64_t a, int64_t b) {
      return scores[a] != scores[b] ? scores[a] > scores[b] : a > b;
    });
    Ranked ranked;
    for (const int64_t k : order_) {
      ranked.scores.push_back(scores[k]);
      ranked.relevant.push_back(is_relevant(row, k));
      ranked.relevant_items += ranked.relevant.back() ? 1 : 0;
    }
    return ranked;
  }

  bool has_nan(int64_t row) const {
    const float* const scores = rows_.row(row);
    return std::any_of(scores, scores + rows_.columns, [](float one) { return std::isnan(one); });
  }

 private:
  bool counts(int64_t row, int64_t k) const {
    return task_.target != Target::kLabels ||
           rows_.counts[static_cast<size_t>(row * rows_.columns + k)] != 0;
  }
  bool is_relevant(int64_t row, int64_t k) const {
    return task_.target == Target::kLabels
               ? rows_.truth[static_cast<size_t>(row * rows_.columns + k)] != 0
               : rows_.target[static_cast<size_t>(row)] == k;
  }

  const HostRows& rows_;
  const MetricTask& task_;
  std::vector<int64_t> order_;
};

// The value of a query; empty if the query does not count.
using OfQuery = std::optional<double> (*)(const Ranked& ranked, int64_t k);

class QueryMean final : public MetricState {
 public:
  QueryMean(OfQuery of_query, int64_t k, MetricTask task)
      : of_query_(of_query), k_(k), task_(std::move(task)) {}

  void add(const Predictions& batch) override {
    const HostRows rows = host_rows(batch, task_);
    Ranker ranker(rows, task_);
    for (int64_t row = 0; row < rows.rows; ++row) {
      if (ranker.has_nan(row)) {
        sum_.add(std::nan(""));
        queries_ += 1;
      } else if (const auto value = of_query_(ranker.rank(row), k_)) {
        sum_.add(*value);
        queries_ += 1;
      }
    }
  }
  void merge(const MetricState& other) override {
    const auto& more = dynamic_cast<const QueryMean&>(other);
    sum_.merge(more.sum_);
    queries_ += more.queries_;
  }
  std::string to_bytes() const override {
    BytesWriter writer;
    writer.put(sum_);
    writer.put(queries_);
    return writer.take();
  }
  void from_bytes(const std::string& bytes) override {
    BytesReader reader(bytes);
    reader.get(sum_);
    reader.get(queries_);
  }
  std::optional<double> mean() const {
    const double sum = sum_.value();
    if (queries_ == 0 || std::isnan(sum)) return std::nullopt;
    return sum / static_cast<double>(queries_);
  }

 private:
  OfQuery of_query_;
  int64_t k_;
  MetricTask task_;
  ExactSum sum_;
  int64_t queries_ = 0;
};

class OfQueries final : public Metric {
 public:
  OfQueries(std::string name, OfQuery of_query, int64_t k, MetricTask task)
      : name_(std::move(name)), of_query_(of_query), k_(k), task_(std::move(task)) {}
  std::string name() const override { return name_; }
  std::string state_key() const override { return name_; }
  std::unique_ptr<MetricState> make_state() const override {
    return std::make_unique<QueryMean>(of_query_, k_, task_);
  }
  std::vector<MetricValue> values(const MetricState& state) const override {
    return {{name_, dynamic_cast<const QueryMean&>(state).mean()}};
  }

 private:
  std::string name_;
  OfQuery of_query_;
  int64_t k_;
  MetricTask task_;
};

std::optional<double> recall(const Ranked& ranked, int64_t k) {
  if (ranked.relevant_items == 0) return std::nullopt;
  const auto first = std::min(static_cast<size_t>(k), ranked.relevant.size());
  const auto end = ranked.relevant.begin() + static_cast<std::ptrdiff_t>(first);
  return static_cast<double>(std::count(ranked.relevant.begin(), end, true)) /
         static_cast<double>(ranked.relevant_items);
}

std::optional<double> average_precision(const Ranked& ranked, int64_t /*k*/) {
  const size_t items = ranked.scores.size();
  const bool is_one_kind =
      ranked.relevant_items == 0 || static_cast<size_t>(ranked.relevant_items) == items;
  if (is_one_kind) return 1;
  double sum = 0;
  size_t found = 0;
  for (size_t begin = 0, end = 0; begin < items; begin = end) {
    size_t more = 0;
    for (; end < items && ranked.scores[end] == ranked.scores[begin]; ++end) {
      more += ranked.relevant[end] ? 1 : 0;
    }
    found += more;
    sum += static_cast<double>(more) * (static_cast<double>(found) / static_cast<double>(end));
  }
  return sum / static_cast<double>(ranked.relevant_items);
}

void require_lists(const char* metric, const MetricTask& task) {
  if (task.target == Target::kClasses || task.target == Target::kLabels) return;
  if (task.target == Target::kPairs) return;
  refuse_task(metric, "one or more relevant items for each target", task);
}

}  // namespace

void visit(config::Visitor& visitor, RecallAtKConfig& config) {
  visitor.field({.name = "k", .help = "how many items count", .min = 1}, config.k);
}

std::unique_ptr<Metric> make_recall_at_k(const RecallAtKConfig& config, const MetricTask& task) {
  require_lists("recall-at-k", task);
  return std::make_unique<OfQueries>(fmt::format("recall-at-{}", config.k), recall, config.k, task);
}

std::unique_ptr<Metric> make_mean_average_precision(const NoMetricOptions&,
                                                    const MetricTask& task) {
  require_lists("mean-average-precision", task);
  return std::make_unique<OfQueries>("mean-average-precision", average_precision, 0, task);
}

}  // namespace gallop::train
