#include "gallop/model/functional/stochastic_depth.h"

#include <ATen/ops/full.h>

#include "gallop/model/functional/dropout.h"

namespace gallop::model::functional {

std::vector<double> stochastic_depth_rates(double last, int64_t count) {
  std::vector<double> rates;
  for (int64_t i = 0; i < count; ++i) {
    rates.push_back(count > 1 ? last * static_cast<double>(i) / static_cast<double>(count - 1) : 0);
  }
  return rates;
}

at::Tensor drop_samples(const at::Tensor& x, double p, bool training) {
  if (!training || p == 0) return x;
  std::vector<int64_t> sizes(static_cast<size_t>(x.dim()), 1);
  sizes[0] = x.size(0);
  // In fp32, because 1 / (1 - p) rounded to bf16 would be a different scale.
  const at::Tensor ones = at::full(sizes, 1.0, x.options().dtype(at::kFloat));
  return x.mul(fixed_dropout(ones, p)).to(x.scalar_type());
}

}  // namespace gallop::model::functional
