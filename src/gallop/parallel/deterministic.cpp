#include "gallop/parallel/deterministic.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/parallel/gradient_buckets.h"
#include "gallop/parallel/packed.h"
#include "gallop/parallel/sums.h"

namespace gallop::parallel {

namespace {

// Divisible by 1, 2, 3, 4, 6 and 12 processes.
constexpr int64_t kBatchSlices = 12;

// A node of the tree: the sum over these batch slices.
struct Node {
  int64_t begin, end;
  bool operator==(const Node&) const = default;
};

Node parent_of(const Node& node) {
  Node parent{0, kBatchSlices};
  for (;;) {
    int64_t left = 1;
    while (2 * left < parent.end - parent.begin) left *= 2;
    const Node children[] = {{parent.begin, parent.begin + left},
                             {parent.begin + left, parent.end}};
    if (node == children[0] || node == children[1]) return parent;
    parent = node.begin < children[0].end ? children[0] : children[1];
  }
}

// Sums over adjacent batch slices, from the left. The children of a tree node are added as soon as
// both are available, regardless of the others.
template <typename Value>
class TreeSum {
 public:
  struct Part {
    Node node;
    Value value;
  };

  // `add` adds its second argument to the first.
  template <typename Add>
  void push(const Node& node, Value value, const Add& add) {
    parts_.push_back({node, std::move(value)});
    most_ = std::max(most_, parts_.size());
    while (parts_.size() > 1) {
      Part &left = parts_[parts_.size() - 2], &right = parts_.back();
      const Node both{left.node.begin, right.node.end};
      if (!(parent_of(right.node) == both && parent_of(left.node) == both)) return;
      add(left.value, right.value);
      left.node = both;
      parts_.pop_back();
    }
  }

  const std::vector<Part>& parts() const { return parts_; }
  size_t size() const { return parts_.size(); }
  /// The maximum number of parts held at once.
  size_t most() const { return most_; }
  void clear() { parts_.clear(); }

 private:
  std::vector<Part> parts_;
  size_t most_ = 0;
};

struct Nothing {};

// The partial sums that are left when a process has added all of its slices.
TreeSum<Nothing> sum_of(int64_t begin, int64_t end) {
  TreeSum<Nothing> sum;
  for (int64_t slice = begin; slice < end; ++slice) {
    sum.push({slice, slice + 1}, {}, [](Nothing, Nothing) {});
  }
  return sum;
}

class Deterministic final : public Strategy {
 public:
  Deterministic(Collectives& collectives, const ModelTensors& model)
      : collectives_(collectives),
        named_(model.parameters),
        parameters_(trained(model.parameters)) {
    const int64_t size = collectives.size();
    if (kBatchSlices % size != 0) {
      throw UsageError(fmt::format(
          "parallel.name=deterministic is for 1, 2, 3, 4, 6 or 12 processes, not for {}", size));
    }
    const int64_t each = kBatchSlices / size;
    for (int64_t rank = 0; rank < size; ++rank) {
      const auto sum = sum_of(rank * each, (rank + 1) * each);
      if (rank == collectives.rank()) {
        first_own_ = nodes_.size();
        for (size_t i = 0; i < sum.most(); ++i) spare_.push_back(all_gradients());
      }
      for (const auto& part : sum.parts()) nodes_.push_back(part.node);
    }
    for (size_t i = 0; i < nodes_.size(); ++i) sums_.push_back(all_gradients());
    make_statistics(model.buffers);
  }

  Collectives& collectives() override { return collectives_; }
  int64_t batch_slices() const override { return kBatchSlices; }

  NamedTensors state() const override {
    NamedTensors all;
    const auto add = [&all](const std::string& name, const GradientBuckets& buckets) {
      for (const auto& one : buckets.named()) {
        all.push_back({fmt::format("{}.{}", name, one.name), one.tensor});
      }
    };
    for (size_t i = 0; i < sums_.size(); ++i) add(fmt::format("sum.{}", i), sums_[i]);
    for (size_t i = 0; i < spare_.size(); ++i) add(fmt::format("spare.{}", i), spare_[i]);
    if (statistics_.defined()) {
      all.push_back({"statistics", statistics_});
      all.push_back({"statistics_before", before_});
    }
    return all;
  }

  void begin_gradient_sync(const Pass& pass) override {
    const at::NoGradGuard no_grad;
    own_.clear();
    slices_with_samples_ = std::min(pass.rows, kBatchSlices);
    if (!statistics_.defined()) return;
    statistics_.zero_();
    copy_all(buffers_, before_places_);
  }

  void finish_slice(int64_t slice, bool has_samples) override {
    const at::NoGradGuard no_grad;
    GradientBuckets* gradients = nullptr;
    if (has_samples) {
      note_unused(named_);
      gradients = &spare();
      gradients->empty();
      for (size_t i = 0; i < parameters_.size(); ++i) gradients->fill(i);
      for (at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
      finish_statistics(slice);
    }
    own_.push({slice, slice + 1}, gradients, [](GradientBuckets*& left, GradientBuckets* right) {
      if (left == nullptr) std::swap(left, right);
      if (right != nullptr) left->add(*right);
    });
  }

  void finish_gradient_sync() override {
    const at::NoGradGuard no_grad;
    size_t next = 0;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const bool is_own = i >= first_own_ && next < own_.size();
      const GradientBuckets* const gradients = is_own ? own_.parts()[next++].value : nullptr;
      if (gradients != nullptr) {
        sums_[i].copy(*gradients);
      } else {
        sums_[i].zero();
      }
      for (size_t bucket = 0; bucket < sums_[i].size(); ++bucket)
        all_reduce_async(sums_[i].bucket(bucket));
    }
    if (statistics_.defined()) all_reduce_async(statistics_);
    for (const GradientBuckets& sum : sums_) {
      for (size_t bucket = 0; bucket < sum.size(); ++bucket) wait_tensor(sum.bucket(bucket));
    }
    TreeSum<GradientBuckets*> total;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      total.push(nodes_[i], &sums_[i],
                 [](GradientBuckets* left, GradientBuckets* right) { left->add(*right); });
    }
    GradientBuckets& all = *total.parts().front().value;
    all.drop_signs_of_zeros();
    all.give_to_parameters();
    if (statistics_.defined()) take_statistics();
  }

 private:
  GradientBuckets all_gradients() const {
    return GradientBuckets(parameters_, std::numeric_limits<int64_t>::max());
  }

  // A buffer that holds no partial sum.
  GradientBuckets& spare() {
    for (GradientBuckets& one : spare_) {
      const auto is_in_it = [&one](const auto& part) { return part.value == &one; };
      if (std::none_of(own_.parts().begin(), own_.parts().end(), is_in_it)) return one;
    }
    throw InternalError("deterministic: more sums at once than the tree is high");
  }

  void make_statistics(const NamedTensors& buffers) {
    for (const auto& [name, tensor] : buffers) buffers_.push_back(tensor);
    if (buffers_.empty()) return;
    const int64_t count = count_numbers(buffers_);
    const auto options = buffers_.front().options().dtype(type_of_means(buffers_));
    statistics_ = at::zeros({kBatchSlices, count}, options);
    before_ = at::zeros({count}, options);
    before_places_ = places_in(before_, 0, buffers_);
    for (int64_t slice = 0; slice < kBatchSlices; ++slice) {
      places_.push_back(places_in(statistics_, slice * count, buffers_));
    }
  }

  // Every slice starts from the statistics before the step.
  void finish_statistics(int64_t slice) {
    copy_all(buffers_, places_[static_cast<size_t>(slice)]);
    copy_all(before_places_, buffers_);
  }

  void take_statistics() {
    wait_tensor(statistics_);
    before_.copy_(statistics_.sum(0).div(slices_with_samples_));
    copy_all(before_places_, buffers_);
  }

  Collectives& collectives_;
  NamedTensors named_;
  std::vector<at::Tensor> parameters_;
  std::vector<Node> nodes_;  // The partial sums of all processes, from the left.
  size_t first_own_ = 0;
  std::vector<GradientBuckets> sums_;   // One per node.
  std::vector<GradientBuckets> spare_;  // For slices of this process.
  TreeSum<GradientBuckets*> own_;
  std::vector<at::Tensor> buffers_;
  at::Tensor statistics_, before_;  // Per slice; and before the step.
  std::vector<std::vector<at::Tensor>> places_;
  std::vector<at::Tensor> before_places_;
  int64_t slices_with_samples_ = 0;
};

}  // namespace

void visit(config::Visitor&, DeterministicConfig&) {}

std::unique_ptr<Strategy> make_deterministic(const DeterministicConfig&, Collectives& collectives,
                                             const ModelTensors& model) {
  return std::make_unique<Deterministic>(collectives, model);
}

}  // namespace gallop::parallel
