#include "gallop/parallel/rank_order_sums.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "gallop/parallel/sums.h"

namespace gallop::parallel {

namespace {

// What is received of two buckets at once is kept, so that memory does not grow with the model.
constexpr size_t kInFlight = 2;

// The type of a sum of such tensors.
at::ScalarType sum_type(const at::Tensor& tensor) {
  const bool is_narrow = tensor.is_floating_point() && tensor.element_size() < 4;
  return is_narrow ? at::kFloat : tensor.scalar_type();
}

class RankOrderSums final : public BucketSums {
 public:
  RankOrderSums(GradientBuckets& buckets, std::vector<std::vector<int64_t>> sizes,
                std::vector<at::Tensor> own, bool gathers)
      : buckets_(buckets),
        sizes_(std::move(sizes)),
        own_(std::move(own)),
        gathers_(gathers),
        received_(buckets.size()) {
    for (size_t i = 0; i < buckets.size(); ++i) {
      received_sizes_.emplace_back(sizes_[i].size(), own_[i].numel());
    }
    if (buckets.are_kept()) keep_memory();
  }

  void begin(bool accumulates) override {
    accumulates_ = accumulates;
    forget();  // A pass before may have ended by an error.
  }

  void start(size_t bucket) override {
    if (bucket >= kInFlight) add_up(bucket - kInFlight);
    if (!buckets_.are_kept()) {
      received_[bucket] = at::empty({elements_received(bucket)}, own_[bucket].options());
    }
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

  void forget() override {
    for (size_t i = 0; !buckets_.are_kept() && i < buckets_.size(); ++i) release(i);
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
                     .tensor = buckets_.shape_of(i),
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
    for (size_t i = 0; !buckets_.are_kept() && i < own_.size(); ++i) {
      all.push_back({fmt::format("sum.{}", i), own_[i]});
    }
    return all;
  }

 private:
  // A collective is waited for by its memory, which must exist if this process owns nothing.
  int64_t elements_received(size_t bucket) const {
    const auto& sizes = received_sizes_[bucket];
    return std::max<int64_t>(1, std::accumulate(sizes.begin(), sizes.end(), int64_t{0}));
  }

  void keep_memory() {
    size_t bytes[kInFlight] = {};
    const auto bytes_of = [&](size_t i) {
      return static_cast<size_t>(elements_received(i)) * buckets_.bucket(i).element_size();
    };
    for (size_t i = 0; i < buckets_.size(); ++i) {
      bytes[i % kInFlight] = std::max(bytes[i % kInFlight], bytes_of(i));
    }
    for (size_t i = 0; i < std::min(kInFlight, buckets_.size()); ++i) {
      const auto options = buckets_.bucket(i).options().dtype(at::kByte);
      memory_.push_back(
          at::zeros({static_cast<int64_t>(std::max(bytes[i], sizeof(double)))}, options));
    }
    for (size_t i = 0; i < buckets_.size(); ++i) {
      received_[i] = memory_[i % kInFlight]
                         .narrow(0, 0, static_cast<int64_t>(bytes_of(i)))
                         .view(buckets_.bucket(i).scalar_type());
    }
  }

  void add_up(size_t bucket) {
    wait_tensor(received_[bucket]);
    if (own_[bucket].numel() > 0) add_ranks(own_[bucket], received_[bucket]);
    if (gathers_) all_gather_async(buckets_.bucket(bucket), sizes_[bucket]);
    if (!buckets_.are_kept()) release(bucket);
  }

  void add_ranks(const at::Tensor& own, const at::Tensor& received) const {
    if (!accumulates_) return sum_in_rank_order(own, received);
    const at::Tensor sum = at::empty_like(own, own.options().dtype(sum_type(own)));
    sum_in_rank_order(sum, received);
    own.add_(sum);
  }

  void release(size_t bucket) {
    received_[bucket].reset();
    buckets_.release(bucket);
  }

  GradientBuckets& buckets_;
  std::vector<std::vector<int64_t>> sizes_, received_sizes_;
  std::vector<at::Tensor> own_;  // This process's part of each bucket.
  bool gathers_;
  bool accumulates_ = false;
  std::vector<at::Tensor> memory_;    // In turn, of all buckets that are kept.
  std::vector<at::Tensor> received_;  // For each bucket, its own part of all processes.
};

}  // namespace

std::vector<std::vector<int64_t>> equal_parts(const GradientBuckets& buckets, int processes) {
  std::vector<std::vector<int64_t>> all;
  for (size_t i = 0; i < buckets.size(); ++i) {
    const int64_t elements = buckets.elements(i);
    std::vector<int64_t> sizes;
    for (int64_t rank = 0; rank < processes; ++rank) {
      sizes.push_back(elements * (rank + 1) / processes - elements * rank / processes);
    }
    all.push_back(std::move(sizes));
  }
  return all;
}

std::vector<at::Tensor> own_parts(const GradientBuckets& buckets,
                                  const std::vector<std::vector<int64_t>>& sizes, int rank) {
  std::vector<at::Tensor> all;
  for (size_t i = 0; i < buckets.size(); ++i) {
    const int64_t begin = std::accumulate(sizes[i].begin(), sizes[i].begin() + rank, int64_t{0});
    const int64_t size = sizes[i][static_cast<size_t>(rank)];
    all.push_back(buckets.are_kept() ? buckets.bucket(i).narrow(0, begin, size)
                                     : at::zeros({size}, buckets.shape_of(i).options()));
  }
  return all;
}

void sum_in_rank_order(const at::Tensor& sum, const at::Tensor& parts) {
  if (sum.numel() == 0) return;
  const auto part = [&](int64_t rank) { return parts.narrow(0, rank * sum.numel(), sum.numel()); };
  const int64_t ranks = parts.numel() / sum.numel();
  at::Tensor wide = sum;
  if (sum_type(parts) != parts.scalar_type()) {
    wide = part(0).to(sum_type(parts));
    for (int64_t rank = 1; rank < ranks; ++rank) wide.add_(part(rank));
    sum.copy_(wide);
  } else if (ranks == 1) {
    sum.copy_(part(0));
  } else {
    at::add_out(wide, part(0), part(1));  // Saves a pass over the memory.
    for (int64_t rank = 2; rank < ranks; ++rank) sum.add_(part(rank));
  }
}

std::unique_ptr<BucketSums> make_rank_order_sums(GradientBuckets& buckets,
                                                 std::vector<std::vector<int64_t>> sizes,
                                                 std::vector<at::Tensor> own, bool gathers) {
  return std::make_unique<RankOrderSums>(buckets, std::move(sizes), std::move(own), gathers);
}

}  // namespace gallop::parallel
