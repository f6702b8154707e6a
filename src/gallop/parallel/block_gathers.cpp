#include "gallop/parallel/block_gathers.h"

#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"

namespace gallop::parallel {

BlockGathers::BlockGathers(const ParameterBuckets& buckets, Config config)
    : buckets_(buckets),
      config_(std::move(config)),
      step_(plan_step()),
      inference_(plan_inference()) {}

BlockGathers::Plan BlockGathers::plan_step() const {
  using enum Action::Kind;
  const size_t blocks = config_.blocks.size(), others = blocks;
  Plan plan;
  const auto add = [&](Action::Kind kind, size_t block) { plan.actions.push_back({kind, block}); };
  // The last block begins the backward pass.
  const auto releases = [&](size_t block) {
    return config_.reshard_after_forward && block + 1 < blocks;
  };
  add(kStartGather, others);
  if (blocks > 0) add(kStartGather, 0);
  add(kWait, others);
  plan.first = plan.actions.size();
  for (size_t block = 0; block < blocks; ++block) {
    add(kWait, block);
    if (block + 1 < blocks) add(kStartGather, block + 1);
    plan.forward.push_back(plan.actions.size());
    if (releases(block)) add(kRelease, block);
    plan.forward_end.push_back(plan.actions.size());
  }
  plan.backward_begin = plan.actions.size();
  plan.backward.resize(blocks);
  for (size_t block = blocks; block-- > 0;) {
    if (releases(block)) add(kWait, block);
    if (block > 0 && releases(block - 1)) add(kStartGather, block - 1);
    plan.backward[block] = plan.actions.size();
    add(kReduce, block);
    add(kRelease, block);
  }
  add(kReduce, others);
  add(kRelease, others);
  return plan;
}

// The forward pass of a step that releases each block, and everything at its end.
BlockGathers::Plan BlockGathers::plan_inference() const {
  using enum Action::Kind;
  const size_t blocks = config_.blocks.size(), others = blocks;
  Plan plan;
  plan.first = step_.first;
  plan.actions.assign(step_.actions.begin(),
                      step_.actions.begin() + static_cast<std::ptrdiff_t>(plan.first));
  const auto add = [&](Action::Kind kind, size_t block) { plan.actions.push_back({kind, block}); };
  for (size_t block = 0; block < blocks; ++block) {
    add(kWait, block);
    if (block + 1 < blocks) add(kStartGather, block + 1);
    plan.forward.push_back(plan.actions.size());
    add(kRelease, block);
    plan.forward_end.push_back(plan.actions.size());
  }
  add(kRelease, others);
  plan.backward_begin = plan.actions.size();
  return plan;
}

const std::vector<size_t>& BlockGathers::buckets_of(size_t block) const {
  return block < config_.blocks.size() ? config_.blocks[block] : config_.others;
}

void BlockGathers::run_to(size_t end, const at::Tensor& after) {
  for (; next_ < end; ++next_) {
    const auto [kind, block] = pass_->actions[next_];
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

void BlockGathers::begin(const Plan& plan) {
  pass_ = &plan;
  next_ = 0;
  run_to(plan.first, {});
}

void BlockGathers::begin_forward() { begin(step_); }

void BlockGathers::begin_inference() {
  end_inference();
  if (!are_whole()) begin(inference_);
}

void BlockGathers::end_inference() {
  if (pass_ == nullptr) return;
  run_to(pass_->actions.size(), {});
  pass_ = nullptr;
}

void BlockGathers::before_forward(size_t block, const at::Tensor& input) {
  if (pass_ == nullptr) return;
  if (next_ > pass_->forward[block]) {
    throw UsageError(fmt::format(
        "parallel.name=zero-3: block {} of the model runs after a later block, or twice in a "
        "forward pass, when its parameters are already released; use parallel.name=zero-2",
        block));
  }
  run_to(pass_->forward[block], input.defined() ? input.detach() : input);
}

void BlockGathers::after_forward(size_t block, const std::vector<at::Tensor>& outputs) {
  if (pass_ == nullptr) return;
  run_to(pass_->forward_end[block], {});
  // A hook of a tensor is called before the node that computes it.
  for (const at::Tensor& output : outputs) {
    if (!output.requires_grad()) continue;
    output.register_hook(
        [this, block](const at::Tensor& gradient) { before_backward(block, gradient); });
  }
}

void BlockGathers::end_forward() {
  if (pass_ == nullptr) begin_forward();
  run_to(pass_->backward_begin, {});
}

// All later blocks are done: the engine computes what was recorded last first.
void BlockGathers::before_backward(size_t block, const at::Tensor& gradient) {
  if (pass_ == nullptr) return;
  run_to(pass_->backward[block], gradient.detach());
}

void BlockGathers::finish() {
  end_forward();
  run_to(pass_->actions.size(), {});
  pass_ = nullptr;
}

void BlockGathers::abort() { pass_ = nullptr; }

std::vector<PendingCollective> BlockGathers::forward_calls() const {
  std::vector<PendingCollective> all;
  for (size_t i = 0; i < step_.backward_begin; ++i) {
    if (step_.actions[i].kind != Action::Kind::kStartGather) continue;
    for (const size_t bucket : buckets_of(step_.actions[i].block)) {
      all.push_back(buckets_.gather_call(bucket));
    }
  }
  return all;
}

std::vector<PendingCollective> BlockGathers::backward_calls(
    const std::function<std::vector<PendingCollective>(size_t block)>& reduce) const {
  std::vector<PendingCollective> all;
  for (size_t i = step_.backward_begin; i < step_.actions.size(); ++i) {
    const auto [kind, block] = step_.actions[i];
    if (kind == Action::Kind::kStartGather) {
      for (const size_t bucket : buckets_of(block)) all.push_back(buckets_.gather_call(bucket));
    } else if (kind == Action::Kind::kReduce) {
      for (auto& call : reduce(block)) all.push_back(std::move(call));
    }
  }
  return all;
}

BlockGathers* block_gathers_of(Strategy& strategy) {
  return dynamic_cast<BlockGathers*>(strategy.block_hooks());
}

}  // namespace gallop::parallel
