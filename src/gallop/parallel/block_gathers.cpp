#include "gallop/parallel/block_gathers.h"

#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"

namespace gallop::parallel {

BlockGathers::BlockGathers(const ParameterBuckets& buckets, Config config)
    : buckets_(buckets), config_(std::move(config)) {
  plan();
}

void BlockGathers::plan() {
  using enum Action::Kind;
  const size_t blocks = config_.blocks.size(), others = blocks;
  const auto add = [this](Action::Kind kind, size_t block) { actions_.push_back({kind, block}); };
  // The last block begins the backward pass.
  const auto releases = [&](size_t block) {
    return config_.reshard_after_forward && block + 1 < blocks;
  };
  add(kStartGather, others);
  if (blocks > 0) add(kStartGather, 0);
  add(kWait, others);
  first_ = actions_.size();
  for (size_t block = 0; block < blocks; ++block) {
    add(kWait, block);
    if (block + 1 < blocks) add(kStartGather, block + 1);
    forward_.push_back(actions_.size());
    if (releases(block)) add(kRelease, block);
    forward_end_.push_back(actions_.size());
  }
  backward_begin_ = actions_.size();
  backward_.resize(blocks);
  for (size_t block = blocks; block-- > 0;) {
    if (releases(block)) add(kWait, block);
    if (block > 0 && releases(block - 1)) add(kStartGather, block - 1);
    backward_[block] = actions_.size();
    add(kReduce, block);
    add(kRelease, block);
  }
  add(kReduce, others);
  add(kRelease, others);
}

const std::vector<size_t>& BlockGathers::buckets_of(size_t block) const {
  return block < config_.blocks.size() ? config_.blocks[block] : config_.others;
}

void BlockGathers::run_to(size_t end, const at::Tensor& after) {
  for (; next_ < end; ++next_) {
    const auto [kind, block] = actions_[next_];
    if (kind == Action::Kind::kReduce) {
      config_.reduce(block);
      continue;
    }
    for (const size_t bucket : buckets_of(block)) {
      switch (kind) {
        case Action::Kind::kStartGather: buckets_.start_gather(bucket, after); break;
        case Action::Kind::kWait: buckets_.wait(bucket); break;
        default: buckets_.release(bucket);
      }
    }
  }
}

void BlockGathers::begin_forward() {
  next_ = 0;
  is_in_pass_ = true;
  run_to(first_, {});
}

void BlockGathers::before_forward(size_t block, const at::Tensor& input) {
  if (!is_in_pass_) return;
  if (next_ > forward_[block]) {
    throw UsageError(fmt::format(
        "parallel.name=zero-3: block {} of the model is computed after a later one, or twice in a "
        "forward pass, when its parameters are no longer there; take parallel.name=zero-2",
        block));
  }
  run_to(forward_[block], input.defined() ? input.detach() : input);
}

void BlockGathers::after_forward(size_t block, const std::vector<at::Tensor>& outputs) {
  if (!is_in_pass_) return;
  run_to(forward_end_[block], {});
  // A hook of a tensor is called before the node that computes it.
  for (const at::Tensor& output : outputs) {
    if (!output.requires_grad()) continue;
    output.register_hook(
        [this, block](const at::Tensor& gradient) { before_backward(block, gradient); });
  }
}

void BlockGathers::end_forward() {
  if (!is_in_pass_) begin_forward();
  run_to(backward_begin_, {});
}

// All later blocks are done: the engine computes what was recorded last first.
void BlockGathers::before_backward(size_t block, const at::Tensor& gradient) {
  if (!is_in_pass_) return;
  run_to(backward_[block], gradient.detach());
}

void BlockGathers::finish() {
  end_forward();
  run_to(actions_.size(), {});
  is_in_pass_ = false;
}

void BlockGathers::abort() { is_in_pass_ = false; }

std::vector<PendingCollective> BlockGathers::forward_calls() const {
  std::vector<PendingCollective> all;
  for (size_t i = 0; i < backward_begin_; ++i) {
    if (actions_[i].kind != Action::Kind::kStartGather) continue;
    for (const size_t bucket : buckets_of(actions_[i].block)) {
      all.push_back(buckets_.gather_call(bucket));
    }
  }
  return all;
}

std::vector<PendingCollective> BlockGathers::backward_calls(
    const std::function<std::vector<PendingCollective>(size_t block)>& reduce) const {
  std::vector<PendingCollective> all;
  for (size_t i = backward_begin_; i < actions_.size(); ++i) {
    const auto [kind, block] = actions_[i];
    if (kind == Action::Kind::kStartGather) {
      for (const size_t bucket : buckets_of(block)) all.push_back(buckets_.gather_call(bucket));
    } else if (kind == Action::Kind::kReduce) {
      for (auto& call : reduce(block)) all.push_back(std::move(call));
    }
  }
  return all;
}

}  // namespace gallop::parallel
