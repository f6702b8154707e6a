#include "gallop/parallel/rank_order_sums.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "gallop/parallel/sums.h"

namespace gallop::parallel {

namespace {

// What is received of two buckets at once is kept, so that memory does not grow with the model.
constexpr size_t kInFlight = 2;

class RankOrderSums final : public BucketSums {
 public:
  RankOrderSums(const GradientBuckets& buckets, std::vector<std::vector<int64_t>> sizes, int rank,
                bool gathers)
      : buckets_(buckets), sizes_(std::move(sizes)), gathers_(gathers) {
    const auto own = static_cast<size_t>(rank);
    size_t bytes[kInFlight] = {};
    for (size_t i = 0; i < buckets.size(); ++i) {
      const int64_t begin =
          std::accumulate(sizes_[i].begin(), sizes_[i].begin() + rank, int64_t{0});
      own_.push_back(buckets.bucket(i).narrow(0, begin, sizes_[i][own]));
      received_sizes_.emplace_back(sizes_[i].size(), sizes_[i][own]);
      size_t& most = bytes[i % kInFlight];
      most = std::max(most, received_sizes_[i].size() * own_[i].nbytes());
    }
    for (size_t i = 0; i < std::min(kInFlight, buckets.size()); ++i) {
      // A collective is waited for by its memory, which must exist if this process owns nothing.
      const auto options = buckets.bucket(i).options().dtype(at::kByte);
      memory_.push_back(
          at::zeros({static_cast<int64_t>(std::max(bytes[i], sizeof(double)))}, options));
    }
    for (size_t i = 0; i < buckets.size(); ++i) {
      const at::Tensor& bucket = buckets.bucket(i);
      const auto elements = std::max<int64_t>(
          1, std::accumulate(received_sizes_[i].begin(), received_sizes_[i].end(), int64_t{0}));
      received_.push_back(memory_[i % kInFlight]
                              .narrow(0, 0, elements * static_cast<int64_t>(bucket.element_size()))
                              .view(bucket.scalar_type()));
    }
  }

  void start(size_t bucket) override {
    if (bucket >= kInFlight) add_up(bucket - kInFlight);
    all_to_all_async(received_[bucket], buckets_.bucket(bucket), received_sizes_[bucket],
                     sizes_[bucket]);
    if (bucket + 1 == buckets_.size()) {
      for (size_t i = buckets_.size() - std::min(kInFlight, buckets_.size()); i <= bucket; ++i) {
        add_up(i);
      }
    }
  }

  void finish(size_t bucket) override {
    if (gathers_) wait_tensor(buckets_.bucket(bucket));
  }

  std::vector<PendingCollective> collective_calls() const override {
    std::vector<PendingCollective> all;
    const auto add_gather = [&](size_t i) {
      if (gathers_) {
        all.push_back({.kind = PendingCollective::Kind::kAllGather,
                       .tensor = buckets_.bucket(i),
                       .receive = sizes_[i]});
      }
    };
    for (size_t i = 0; i < buckets_.size() + kInFlight; ++i) {
      if (i >= kInFlight && i - kInFlight < buckets_.size()) add_gather(i - kInFlight);
      if (i >= buckets_.size()) continue;
      all.push_back({.kind = PendingCollective::Kind::kAllToAll,
                     .tensor = buckets_.bucket(i),
                     .receive = received_sizes_[i],
                     .send = sizes_[i]});
    }
    return all;
  }

  NamedTensors state() const override {
    NamedTensors all;
    for (size_t i = 0; i < memory_.size(); ++i) {
      all.push_back({fmt::format("received.{}", i), memory_[i]});
    }
    return all;
  }

 private:
  void add_up(size_t bucket) {
    wait_tensor(received_[bucket]);
    const at::Tensor &own = own_[bucket], &received = received_[bucket];
    const int64_t size = own.numel();
    if (size > 0) {
      const auto part = [&](int64_t rank) { return received.narrow(0, rank * size, size); };
      const auto ranks = static_cast<int64_t>(sizes_[bucket].size());
      const bool is_narrow = own.element_size() < sizeof(float);
      at::Tensor sum = is_narrow ? part(0).to(at::kFloat) : own.copy_(part(0));
      for (int64_t rank = 1; rank < ranks; ++rank) sum.add_(part(rank));
      if (is_narrow) own.copy_(sum);
    }
    if (gathers_) all_gather_async(buckets_.bucket(bucket), sizes_[bucket]);
  }

  const GradientBuckets& buckets_;
  std::vector<std::vector<int64_t>> sizes_, received_sizes_;
  bool gathers_;
  std::vector<at::Tensor> own_;       // This process's part of each bucket.
  std::vector<at::Tensor> memory_;    // In turn, of all buckets.
  std::vector<at::Tensor> received_;  // Of each bucket: its own part of all processes.
};

}  // namespace

std::vector<std::vector<int64_t>> equal_parts(const GradientBuckets& buckets, int processes) {
  std::vector<std::vector<int64_t>> all;
  for (size_t i = 0; i < buckets.size(); ++i) {
    const int64_t elements = buckets.bucket(i).numel();
    std::vector<int64_t> sizes;
    for (int64_t rank = 0; rank < processes; ++rank) {
      sizes.push_back(elements * (rank + 1) / processes - elements * rank / processes);
    }
    all.push_back(std::move(sizes));
  }
  return all;
}

std::unique_ptr<BucketSums> make_rank_order_sums(const GradientBuckets& buckets,
                                                 std::vector<std::vector<int64_t>> sizes, int rank,
                                                 bool gathers) {
  return std::make_unique<RankOrderSums>(buckets, std::move(sizes), rank, gathers);
}

}  // namespace gallop::parallel
