#include "gallop/train/metrics/pair_embeddings.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <ATen/ops/from_blob.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/matmul.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/error.h"
#include "gallop/train/losses/embeddings.h"
#include "gallop/train/metrics/state_bytes.h"

namespace gallop::train {

namespace {

constexpr int64_t kQueriesAtOnce = 256;

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
}

void PairEmbeddings::merge(const MetricState& other) {
  const auto& more = dynamic_cast<const PairEmbeddings&>(other);
  if (more.rows_.empty()) return;
  size_ = more.size_;
  rows_.insert(rows_.end(), more.rows_.begin(), more.rows_.end());
}

std::string PairEmbeddings::to_bytes() const {
  BytesWriter writer;
  writer.put(size_);
  writer.put(rows_);
  return writer.take();
}

void PairEmbeddings::from_bytes(const std::string& bytes) {
  BytesReader reader(bytes);
  reader.get(size_);
  reader.get(rows_);
}

int64_t PairEmbeddings::pairs() const {
  return size_ == 0 ? 0 : static_cast<int64_t>(rows_.size()) / (2 * size_);
}

bool PairEmbeddings::are_numbers() const {
  return std::none_of(rows_.begin(), rows_.end(), [](float one) { return std::isnan(one); });
}

std::vector<int64_t> PairEmbeddings::ranks() const {
  const int64_t count = pairs();
  // A GEMM may round a row according to its position. In sorted order, positions do not depend on
  // batches and processes.
  const auto row_of = [&](int64_t pair) { return rows_.begin() + pair * 2 * size_; };
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return std::lexicographical_compare(row_of(a), row_of(a) + 2 * size_, row_of(b),
                                        row_of(b) + 2 * size_);
  });
  std::vector<float> sorted;
  sorted.reserve(rows_.size());
  for (const int64_t pair : order)
    sorted.insert(sorted.end(), row_of(pair), row_of(pair) + 2 * size_);

  const at::Tensor all = at::from_blob(sorted.data(), {count, 2, size_}, at::kFloat);
  const at::Tensor keys = all.select(1, 1).to(at::kDouble);
  std::vector<int64_t> ranks;
  for (int64_t first = 0; first < count; first += kQueriesAtOnce) {
    const int64_t queries = std::min(kQueriesAtOnce, count - first);
    // Rounded to fp32, so that equal embeddings have equal scores.
    const at::Tensor scores =
        all.select(1, 0).narrow(0, first, queries).to(at::kDouble).matmul(keys.t()).to(at::kFloat);
    const at::Tensor own = scores.narrow(1, first, queries).diagonal();
    const at::Tensor found = scores.ge(own.unsqueeze(1)).sum(1);
    const auto* const data = found.const_data_ptr<int64_t>();
    ranks.insert(ranks.end(), data, data + queries);
  }
  return ranks;
}

}  // namespace gallop::train
