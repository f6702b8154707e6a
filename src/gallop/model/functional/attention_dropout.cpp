#include "gallop/model/functional/attention_dropout.h"

#include <cmath>
#include <limits>

#include <ATen/ops/_safe_softmax.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>

#include "gallop/model/functional/dropout.h"

namespace gallop::model::functional {

namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

// The heads of keys or values, each as often as queries need it.
at::Tensor for_heads(const at::Tensor& x, int64_t heads) {
  const int64_t times = heads / x.size(-3);
  return times == 1 ? x : x.repeat_interleave(times, -3);
}

}  // namespace

at::Tensor attention_with_dropout(const at::Tensor& query, const at::Tensor& key,
                                  const at::Tensor& value, const AttentionDropout& options) {
  const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1))));
  const bool has_heads = query.dim() > 2;
  const at::Tensor keys = has_heads ? for_heads(key, query.size(-3)) : key;
  const at::Tensor values = has_heads ? for_heads(value, query.size(-3)) : value;
  at::Tensor scores = at::matmul(query.mul(scale), keys.transpose(-2, -1));
  if (options.is_causal) {
    const at::Tensor seen =
        at::ones({query.size(-2), key.size(-2)}, query.options().dtype(at::kBool)).tril();
    scores = scores.masked_fill(seen.logical_not(), kNever);
  }
  if (options.mask) {
    scores = options.mask->scalar_type() == at::kBool
                 ? scores.masked_fill(options.mask->logical_not(), kNever)
                 : scores.add(*options.mask);
  }
  // With a mask, rows without any key that is attended to are 0.
  const at::Tensor weights = options.mask ? at::_safe_softmax(scores, -1) : at::softmax(scores, -1);
  const kernel::DropoutPart part = options.part ? options.part(weights) : kernel::DropoutPart();
  return at::matmul(functional::dropout(weights.to(query.scalar_type()), options.p, true, part),
                    values);
}

}  // namespace gallop::model::functional
