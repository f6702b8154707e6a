#include "gallop/model/functional/ring_attention.h"

#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include "gallop/model/functional/attention_block.h"
#include "gallop/model/functional/dropout.h"
#include "gallop/model/functional/first_order.h"
#include "gallop/model/functional/zigzag.h"

namespace gallop::model::functional {

namespace {

using kernel::AttentionParts;
using kernel::BlockAttentionOutput;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The type of sums over the steps of a ring.
at::ScalarType wide_type(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

at::Tensor rows(const at::Tensor& x, const PartRange& range) {
  return x.narrow(2, range.begin, range.size());
}

// A tensor on its way to the next process, while that of the previous one arrives.
class Shift {
 public:
  // `sizes`: of what arrives.
  Shift(const TensorGroup& group, at::Tensor sent, c10::IntArrayRef sizes)
      : group_(group), sent_(std::move(sent)), received_(at::empty(sizes, sent_.options())) {
    group_.shift_async(received_, sent_);
  }
  at::Tensor wait() const {
    group_.wait_shift(received_, sent_);
    return received_;
  }

 private:
  const TensorGroup& group_;
  at::Tensor sent_, received_;
};

// What a process computes in a step: attention of some of its queries to some of the keys of rank
// `source`. Ranges are of the tokens of the one and the other process.
struct Step {
  int source = 0;
  PartRange queries{}, keys{};
  bool is_diagonal = false;  // The keys are its own.
};

class Ring {
 public:
  // `multiplier`: of the weights [B, H, t, T] of its queries to all keys, or undefined.
  Ring(const RingAttentionOptions& options, const TensorGroup& group, at::Tensor multiplier)
      : options_(options),
        group_(group),
        zigzag_(options.tokens, group.size()),
        multiplier_(std::move(multiplier)) {}

  const RingAttentionOptions& options() const { return options_; }
  const TensorGroup& group() const { return group_; }
  const at::Tensor& multiplier() const { return multiplier_; }

  BlockAttentionOutput forward(const at::Tensor& query, const at::Tensor& key,
                               const at::Tensor& value) const {
    BlockAttentionOutput whole = empty_output(query);
    at::Tensor key_value = at::stack({key, value});
    for (int i = 0; i < group_.size(); ++i) {
      std::optional<Shift> next;
      if (i + 1 < group_.size()) next.emplace(group_, key_value, sizes_at(i + 1, key_value));
      const Step step = step_at(i);
      const auto block = block_of(step, query, key_value);
      if (block) merge(attention_block(*block), step, whole);
      if (next) key_value = next->wait();
    }
    whole.y_BHTD = whole.y_BHTD.to(query.scalar_type());
    return whole;
  }

  AttentionParts backward(const at::Tensor& dy, const at::Tensor& query, const at::Tensor& key,
                          const at::Tensor& value, const BlockAttentionOutput& whole) const {
    const auto wide = query.options().dtype(wide_type(query));
    const at::Tensor dquery = at::zeros(query.sizes(), wide);
    at::Tensor key_value = at::stack({key, value});
    at::Tensor dkey_value = at::zeros(key_value.sizes(), wide);
    std::optional<Shift> next_gradient;
    for (int i = 0; i < group_.size(); ++i) {
      std::optional<Shift> next;
      if (i + 1 < group_.size()) next.emplace(group_, key_value, sizes_at(i + 1, key_value));
      const Step step = step_at(i);
      const auto block = block_of(step, query, key_value);
      AttentionParts own;
      if (block) {
        own = attention_block_backward(rows(dy, step.queries), *block,
                                       {.y_BHTD = rows(whole.y_BHTD, step.queries),
                                        .log_sums_BHT = rows(whole.log_sums_BHT, step.queries)});
        rows(dquery, step.queries).add_(own.query_BHTD);
      }
      // What other processes have added so far has had the time of this block to arrive.
      if (next_gradient) dkey_value = next_gradient->wait();
      if (block) {
        rows(dkey_value[0], step.keys).add_(own.key_BHSD);
        rows(dkey_value[1], step.keys).add_(own.value_BHSD);
      }
      // The last one goes home, where there are no keys and values to be received.
      next_gradient.emplace(group_, dkey_value, sizes_at(i + 1, dkey_value));
      if (next) key_value = next->wait();
    }
    dkey_value = next_gradient->wait();
    const auto type = query.scalar_type();
    return {dquery.to(type), dkey_value[0].to(type), dkey_value[1].to(type)};
  }

 private:
  int source_at(int step) const {
    return (group_.rank() - step % group_.size() + group_.size()) % group_.size();
  }
  std::vector<int64_t> sizes_at(int step, const at::Tensor& key_value) const {
    std::vector<int64_t> sizes = key_value.sizes().vec();
    sizes[3] = zigzag_.tokens_of(source_at(step));
    return sizes;
  }

  // Under a causal mask, keys of an earlier rank are later than all own queries in their second
  // half, and earlier in their first. Keys of a later rank lie between the own chunks.
  Step step_at(int number) const {
    const int rank = group_.rank(), source = source_at(number);
    Step step{.source = source,
              .queries = {0, zigzag_.tokens_of(rank)},
              .keys = {0, zigzag_.tokens_of(source)},
              .is_diagonal = number == 0};
    if (options_.causal && source < rank) step.keys.end = zigzag_.early(source).size();
    if (options_.causal && source > rank) step.queries.begin = zigzag_.early(rank).size();
    return step;
  }

  // Nothing if no query attends to any of the keys.
  std::optional<AttentionBlock> block_of(const Step& step, const at::Tensor& query,
                                         const at::Tensor& key_value) const {
    if (step.queries.size() == 0 || step.keys.size() == 0) return std::nullopt;
    AttentionBlock block{.parts = {.query_BHTD = rows(query, step.queries),
                                   .key_BHSD = rows(key_value[0], step.keys),
                                   .value_BHSD = rows(key_value[1], step.keys)},
                         .causal = options_.causal && step.is_diagonal,
                         .scale = options_.scale};
    if (options_.position_ids_BT.defined()) {
      block.mask = documents_mask(step, wide_type(query));
      if (block.mask.lt(0).all().item<bool>()) return std::nullopt;
      block.causal = false;  // It is part of the mask.
    }
    if (multiplier_.defined()) {
      const at::Tensor keys = positions(step.source, step.keys);
      block.multiplier = rows(multiplier_, step.queries).index_select(3, keys);
    }
    return block;
  }

  // In the sequence, of some tokens of a rank.
  at::Tensor positions(int rank, const PartRange& range) const {
    return zigzag_.positions_of(rank).narrow(0, range.begin, range.size());
  }

  // [B, 1, T, S], of rows that contain several documents. It is finite, so that the log-sum-exp of
  // a query that attends to none of the keys is a number, next to which that of others is all.
  at::Tensor documents_mask(const Step& step, at::ScalarType type) const {
    constexpr double kExcluded = -1e30;
    const at::Tensor& position_ids = options_.position_ids_BT;
    const at::Tensor begins =
        at::arange(position_ids.size(1), position_ids.options()).sub(position_ids);
    const at::Tensor queries = positions(group_.rank(), step.queries),
                     keys = positions(step.source, step.keys);
    at::Tensor hidden =
        begins.index_select(1, queries).unsqueeze(2).ne(begins.index_select(1, keys).unsqueeze(1));
    if (options_.causal && step.is_diagonal) {
      hidden = hidden.logical_or(queries.unsqueeze(1).lt(keys));
    }
    return hidden.to(type).mul_(kExcluded).unsqueeze(1);
  }

  // Attention to no key at all.
  static BlockAttentionOutput empty_output(const at::Tensor& query) {
    const auto wide = query.options().dtype(wide_type(query));
    const int64_t batch = query.size(0), heads = query.size(1), tokens = query.size(2);
    return {.y_BHTD = at::zeros({batch, tokens, heads, query.size(3)}, wide).transpose(1, 2),
            .log_sums_BHT =
                at::full({batch, heads, tokens}, -std::numeric_limits<double>::infinity(), wide)};
  }

  static void merge(const BlockAttentionOutput& block, const Step& step,
                    const BlockAttentionOutput& whole) {
    const at::Tensor y = rows(whole.y_BHTD, step.queries),
                     log_sums = rows(whole.log_sums_BHT, step.queries);
    const at::Tensor weight = at::sigmoid(block.log_sums_BHT.sub(log_sums));
    y.lerp_(block.y_BHTD.to(y.scalar_type()), weight.unsqueeze(3));
    log_sums.copy_(at::logaddexp(log_sums, block.log_sums_BHT));
  }

  const RingAttentionOptions& options_;
  const TensorGroup& group_;
  Zigzag zigzag_;
  at::Tensor multiplier_;
};

struct RingAttention : torch::autograd::Function<RingAttention> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& query,
                            const at::Tensor& key, const at::Tensor& value, const Ring& ring) {
    const RingAttentionOptions& options = ring.options();
    const BlockAttentionOutput whole = ring.forward(query, key, value);
    context->save_for_backward({query, key, value, whole.y_BHTD, whole.log_sums_BHT,
                                options.position_ids_BT, ring.multiplier()});
    context->saved_data["group"] = reinterpret_cast<int64_t>(&ring.group());
    context->saved_data["tokens"] = options.tokens;
    context->saved_data["causal"] = options.causal;
    context->saved_data["scale"] = options.scale;
    return whole.y_BHTD;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    require_first_order("ring_attention");
    const variable_list saved = context->get_saved_variables();
    const RingAttentionOptions options{.tokens = context->saved_data["tokens"].toInt(),
                                       .causal = context->saved_data["causal"].toBool(),
                                       .scale = context->saved_data["scale"].toDouble(),
                                       .position_ids_BT = saved[5]};
    const auto& group = *reinterpret_cast<const TensorGroup*>(context->saved_data["group"].toInt());
    // The kernels require rows without gaps.
    const at::Tensor dy = gradients[0].transpose(1, 2).contiguous().transpose(1, 2);
    const AttentionParts own = Ring(options, group, saved[6])
                                   .backward(dy, saved[0], saved[1], saved[2],
                                             {.y_BHTD = saved[3], .log_sums_BHT = saved[4]});
    return {own.query_BHTD, own.key_BHSD, own.value_BHSD, {}};
  }
};

// Dropout of the weights of this process's queries to all keys, [B, H, t, T], with the random
// numbers of one process.
at::Tensor multiplier_of(const at::Tensor& query, const RingAttentionOptions& options,
                         const TensorGroup& group) {
  if (options.dropout == 0) return {};
  const at::NoGradGuard no_grad;
  const Zigzag zigzag(options.tokens, group.size());
  const at::Tensor ones =
      at::ones({query.size(0), query.size(1), query.size(2), options.tokens}, at::kFloat);
  return dropout(ones, options.dropout, /*training=*/true,
                 dropout_part(ones, 2, options.tokens,
                              {zigzag.early(group.rank()), zigzag.late(group.rank())}));
}

}  // namespace

at::Tensor ring_attention(const at::Tensor& query_BHTD, const at::Tensor& key_BHTD,
                          const at::Tensor& value_BHTD, const RingAttentionOptions& options,
                          const TensorGroup& group) {
  return RingAttention::apply(query_BHTD, key_BHTD, value_BHTD,
                              Ring(options, group, multiplier_of(query_BHTD, options, group)));
}

}  // namespace gallop::model::functional
