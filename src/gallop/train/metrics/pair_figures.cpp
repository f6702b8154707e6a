#include "gallop/train/metrics/pair_figures.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "gallop/train/metrics/pair_embeddings.h"

namespace gallop::train {

namespace {

// Requires pairs without NaN.
RecallCurve recall_curve(const PairEmbeddings& pairs) {
  RecallCurve curve{.pairs = pairs.matching_pairs(), .k = {}, .recalls = {}};
  const std::vector<int64_t> ranks = pairs.ranks();
  const auto all = static_cast<double>(curve.pairs);
  for (int64_t power = 1; power <= curve.pairs; power *= 10) {
    for (const int64_t digit : {1, 2, 5}) {
      const int64_t k = digit * power;
      if (k > curve.pairs) break;
      const auto found =
          std::count_if(ranks.begin(), ranks.end(), [&](int64_t rank) { return rank <= k; });
      curve.k.push_back(k);
      curve.recalls.push_back(static_cast<double>(found) / all);
    }
  }
  return curve;
}

class PairFigures final : public Metric {
 public:
  std::string name() const override { return "pairs"; }
  std::string state_key() const override { return "pair-embeddings"; }
  std::unique_ptr<MetricState> make_state() const override {
    return std::make_unique<PairEmbeddings>();
  }
  std::vector<MetricValue> values(const MetricState& /*state*/) const override { return {}; }
  bool is_single() const override { return false; }
  std::vector<FigureData> figures(const MetricState& state) const override {
    const auto& pairs = dynamic_cast<const PairEmbeddings&>(state);
    RecallCurve recall;
    SimilarityHistogram similarities;
    if (pairs.pairs() > 0 && pairs.are_numbers()) {
      recall = recall_curve(pairs);
      similarities = pairs.similarities();
    }
    return {{"recall-at-k", std::move(recall)}, {"similarities", std::move(similarities)}};
  }
};

}  // namespace

std::unique_ptr<Metric> make_pair_figures(const MetricTask& task) {
  if (task.target != MetricTask::Target::kPairs) refuse_task("pairs", "pairs as targets", task);
  return std::make_unique<PairFigures>();
}

}  // namespace gallop::train
