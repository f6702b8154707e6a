#include "gallop/train/metrics/pair_embeddings.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <ATen/ops/from_blob.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/matmul.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/error.h"
#include "gallop/train/losses/embeddings.h"
#include "gallop/train/metrics/state_bytes.h"

namespace gallop::train {

namespace {

constexpr int64_t kQueriesAtOnce = 256;
constexpr int64_t kFineBins = 400;  // From a similarity of -1 to 1.
constexpr int64_t kMostBins = 40;   // Bins of a histogram, over the similarities that occur.

SimilarityHistogram merged_bins(const std::vector<int64_t>& matching,
                                const std::vector<int64_t>& others) {
  int64_t begin = kFineBins, end = 0;
  for (int64_t i = 0; i < kFineBins; ++i) {
    const auto at = static_cast<size_t>(i);
    if (matching[at] + others[at] == 0) continue;
    begin = std::min(begin, i);
    end = i + 1;
  }
  SimilarityHistogram histogram;
  if (end == 0) return histogram;
  const int64_t merged = (end - begin + kMostBins - 1) / kMostBins;
  const auto edge = [](int64_t bin) {
    return static_cast<double>(2 * bin - kFineBins) / static_cast<double>(kFineBins);
  };
  histogram.edges = {edge(begin)};
  for (int64_t bin = begin; bin < end; bin += merged) {
    const int64_t next = std::min(bin + merged, kFineBins);
    const auto sum = [&](const std::vector<int64_t>& counts) {
      return std::accumulate(counts.begin() + bin, counts.begin() + next, int64_t{0});
    };
    histogram.matching.push_back(sum(matching));
    histogram.others.push_back(sum(others));
    histogram.edges.push_back(edge(bin + merged));
  }
  return histogram;
}

}  // namespace

void PairEmbeddings::add(const Predictions& batch) {
  const at::Tensor& outputs = batch.outputs;
  if (outputs.dim() != 3 || outputs.size(1) < 2 || outputs.size(0) != batch.target.size(0)) {
    throw InternalError(fmt::format("outputs of {} are not embeddings of the pairs of {} targets",
                                    fmt::join(outputs.sizes(), "x"), batch.target.size(0)));
  }
  const at::Tensor rows = normalized(outputs.detach().cpu().to(at::kDouble))
                              .narrow(1, 0, 2)
                              .to(at::kFloat)
                              .contiguous();
  size_ = outputs.size(2);
  const auto* const data = rows.const_data_ptr<float>();
  rows_.insert(rows_.end(), data, data + rows.numel());
  // A batch may be empty, which reshape() could not divide into rows.
  const at::Tensor is_other = batch.target.detach().cpu().lt(0).unsqueeze(1).flatten(1);
  const at::Tensor matches = is_other.any(1).logical_not();
  const auto* const match = matches.const_data_ptr<bool>();
  matches_.insert(matches_.end(), match, match + matches.numel());
}

void PairEmbeddings::merge(const MetricState& other) {
  const auto& more = dynamic_cast<const PairEmbeddings&>(other);
  if (more.rows_.empty()) return;
  size_ = more.size_;
  rows_.insert(rows_.end(), more.rows_.begin(), more.rows_.end());
  matches_.insert(matches_.end(), more.matches_.begin(), more.matches_.end());
}

std::string PairEmbeddings::to_bytes() const {
  BytesWriter writer;
  writer.put(size_);
  writer.put(rows_);
  writer.put(matches_);
  return writer.take();
}

void PairEmbeddings::from_bytes(const std::string& bytes) {
  BytesReader reader(bytes);
  reader.get(size_);
  reader.get(rows_);
  reader.get(matches_);
}

int64_t PairEmbeddings::pairs() const {
  return size_ == 0 ? 0 : static_cast<int64_t>(rows_.size()) / (2 * size_);
}

int64_t PairEmbeddings::matching_pairs() const {
  return std::count(matches_.begin(), matches_.end(), 1);
}

bool PairEmbeddings::are_numbers() const {
  return std::none_of(rows_.begin(), rows_.end(), [](float one) { return std::isnan(one); });
}

void PairEmbeddings::for_each_block(const std::function<void(const Block& block)>& visit) const {
  const int64_t count = pairs();
  // A GEMM may round a row according to its position. In sorted order, positions do not depend on
  // batches and processes.
  const auto row_of = [&](int64_t pair) { return rows_.begin() + pair * 2 * size_; };
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const auto [in_a, in_b] = std::mismatch(row_of(a), row_of(a) + 2 * size_, row_of(b));
    if (in_a != row_of(a) + 2 * size_) return *in_a < *in_b;
    return matches_[static_cast<size_t>(a)] < matches_[static_cast<size_t>(b)];
  });
  std::vector<float> sorted;
  std::vector<uint8_t> matches;
  sorted.reserve(rows_.size());
  for (const int64_t pair : order) {
    sorted.insert(sorted.end(), row_of(pair), row_of(pair) + 2 * size_);
    matches.push_back(matches_[static_cast<size_t>(pair)]);
  }

  const at::Tensor all = at::from_blob(sorted.data(), {count, 2, size_}, at::kFloat);
  const at::Tensor keys = all.select(1, 1).to(at::kDouble);
  const at::Tensor all_matches = at::from_blob(matches.data(), {count}, at::kByte).to(at::kBool);
  for (int64_t first = 0; first < count; first += kQueriesAtOnce) {
    const int64_t queries = std::min(kQueriesAtOnce, count - first);
    const at::Tensor chosen = all.select(1, 0).narrow(0, first, queries);
    // Rounded to fp32, so that equal embeddings have equal scores.
    visit({.similarities = chosen.to(at::kDouble).matmul(keys.t()).to(at::kFloat),
           .matches = all_matches,
           .first = first});
  }
}

std::vector<int64_t> PairEmbeddings::ranks() const {
  std::vector<int64_t> ranks;
  for_each_block([&](const Block& block) {
    const int64_t queries = block.similarities.size(0);
    const at::Tensor own = block.similarities.narrow(1, block.first, queries).diagonal();
    const at::Tensor found =
        block.similarities.ge(own.unsqueeze(1)).logical_and(block.matches).sum(1);
    const auto* const data = found.const_data_ptr<int64_t>();
    const auto* const matches = block.matches.const_data_ptr<bool>() + block.first;
    for (int64_t i = 0; i < queries; ++i) {
      if (matches[i]) ranks.push_back(data[i]);
    }
  });
  return ranks;
}

SimilarityHistogram PairEmbeddings::similarities() const {
  std::vector<int64_t> matching(kFineBins), others(kFineBins);
  for_each_block([&](const Block& block) {
    const auto columns = block.similarities.size(1);
    const auto* const matches = block.matches.const_data_ptr<bool>();
    const auto* score = block.similarities.const_data_ptr<float>();
    for (int64_t row = 0; row < block.similarities.size(0); ++row) {
      for (int64_t column = 0; column < columns; ++column, ++score) {
        const auto bin = static_cast<int64_t>((1 + static_cast<double>(*score)) * kFineBins / 2);
        const auto at = static_cast<size_t>(std::clamp<int64_t>(bin, 0, kFineBins - 1));
        const bool is_match = column == block.first + row && matches[column];
        (is_match ? matching : others)[at] += 1;
      }
    }
  });
  return merged_bins(matching, others);
}

}  // namespace gallop::train
