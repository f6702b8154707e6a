#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gallop/train/metrics/metric.h"

namespace gallop::train {

/// The normalized embeddings of pairs, in fp32: 8 N D bytes in each process; at the end, those of
/// all processes. The two of a pair match unless its target is negative.
class PairEmbeddings final : public MetricState {
 public:
  /// Adds outputs [N, views, D]; the first two views are the pair.
  void add(const Predictions& batch) override;
  void merge(const MetricState& other) override;
  std::string to_bytes() const override;
  void from_bytes(const std::string& bytes) override;

  int64_t pairs() const;
  int64_t matching_pairs() const;
  /// Whether no embedding is NaN; otherwise nothing is defined.
  bool are_numbers() const;
  /// For each pair that matches, how many second embeddings of such pairs are at least as similar
  /// to its first one as its own, itself included: 1 if its partner is found first. Similarity is
  /// the cosine. Computes N^2 D products.
  std::vector<int64_t> ranks() const;
  /// The cosine similarities of the first embeddings to all second ones, apart for the pairs that
  /// match. Computes N^2 D products.
  SimilarityHistogram similarities() const;

 private:
  /// The similarities of some first embeddings to all second ones, fp32 [queries, N]: those of row
  /// i and column first + i are of a pair. `matches`, bool [N], are those of the columns.
  struct Block {
    at::Tensor similarities, matches;
    int64_t first = 0;
  };
  void for_each_block(const std::function<void(const Block& block)>& visit) const;

  int64_t size_ = 0;         // D
  std::vector<float> rows_;  // [N, 2, D]
  std::vector<uint8_t> matches_;
};

}  // namespace gallop::train
