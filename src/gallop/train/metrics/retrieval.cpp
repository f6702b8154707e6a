#include "gallop/train/metrics/retrieval.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "gallop/train/metrics/exact_sum.h"
#include "gallop/train/metrics/pair_embeddings.h"
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

// The value of a query, empty if the query does not count; and of one whose only relevant item has
// this rank.
struct QueryValue {
  std::optional<double> (*of_list)(const Ranked& ranked, int64_t k);
  double (*of_rank)(int64_t rank, int64_t k);
};

class QueryMean final : public MetricState {
 public:
  QueryMean(const QueryValue& value, int64_t k, MetricTask task)
      : value_(value), k_(k), task_(std::move(task)) {}

  void add(const Predictions& batch) override {
    const HostRows rows = host_rows(batch, task_);
    Ranker ranker(rows, task_);
    for (int64_t row = 0; row < rows.rows; ++row) {
      if (ranker.has_nan(row)) {
        sum_.add(std::nan(""));
        queries_ += 1;
      } else if (const auto value = value_.of_list(ranker.rank(row), k_)) {
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
  QueryValue value_;
  int64_t k_;
  MetricTask task_;
  ExactSum sum_;
  int64_t queries_ = 0;
};

class OfQueries final : public Metric {
 public:
  OfQueries(std::string name, const QueryValue& value, int64_t k, MetricTask task)
      : name_(std::move(name)), value_(value), k_(k), task_(std::move(task)) {}
  std::string name() const override { return name_; }
  std::string state_key() const override { return name_; }
  std::unique_ptr<MetricState> make_state() const override {
    return std::make_unique<QueryMean>(value_, k_, task_);
  }
  std::vector<MetricValue> values(const MetricState& state) const override {
    return {{name_, dynamic_cast<const QueryMean&>(state).mean()}};
  }

 private:
  std::string name_;
  QueryValue value_;
  int64_t k_;
  MetricTask task_;
};

class OfPairs final : public Metric {
 public:
  OfPairs(std::string name, const QueryValue& value, int64_t k)
      : name_(std::move(name)), value_(value), k_(k) {}
  std::string name() const override { return name_; }
  std::string state_key() const override { return "pair-embeddings"; }
  std::unique_ptr<MetricState> make_state() const override {
    return std::make_unique<PairEmbeddings>();
  }
  std::vector<MetricValue> values(const MetricState& state) const override {
    const auto& pairs = dynamic_cast<const PairEmbeddings&>(state);
    const int64_t matching = pairs.matching_pairs();
    if (matching == 0 || !pairs.are_numbers()) return {{name_, std::nullopt}};
    ExactSum sum;
    for (const int64_t rank : pairs.ranks()) sum.add(value_.of_rank(rank, k_));
    return {{name_, sum.value() / static_cast<double>(matching)}};
  }

 private:
  std::string name_;
  QueryValue value_;
  int64_t k_;
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

constexpr QueryValue kRecall{recall, [](int64_t rank, int64_t k) { return rank <= k ? 1.0 : 0.0; }};
constexpr QueryValue kAveragePrecision{
    average_precision, [](int64_t rank, int64_t) { return 1 / static_cast<double>(rank); }};

std::unique_ptr<Metric> of_queries(const char* metric, std::string name, const QueryValue& value,
                                   int64_t k, const MetricTask& task) {
  if (task.target == Target::kPairs) return std::make_unique<OfPairs>(std::move(name), value, k);
  if (task.target != Target::kClasses && task.target != Target::kLabels) {
    refuse_task(metric, "one or more relevant items for each target", task);
  }
  return std::make_unique<OfQueries>(std::move(name), value, k, task);
}

}  // namespace

void visit(config::Visitor& visitor, RecallAtKConfig& config) {
  visitor.field({.name = "k", .help = "number of top items to consider", .min = 1}, config.k);
}

std::unique_ptr<Metric> make_recall_at_k(const RecallAtKConfig& config, const MetricTask& task) {
  return of_queries("recall-at-k", fmt::format("recall-at-{}", config.k), kRecall, config.k, task);
}

std::unique_ptr<Metric> make_mean_average_precision(const NoMetricOptions&,
                                                    const MetricTask& task) {
  return of_queries("mean-average-precision", "mean-average-precision", kAveragePrecision, 0, task);
}

}  // namespace gallop::train
