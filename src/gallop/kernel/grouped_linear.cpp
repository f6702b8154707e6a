#include "gallop/kernel/grouped_linear.h"

#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include "gallop/base/error.h"
#include "gallop/kernel/operator.h"

namespace gallop::kernel {

namespace {

struct Range {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

std::vector<Range> ranges_of(const at::Tensor& ranges, int64_t rows) {
  const at::Tensor host = ranges.cpu().contiguous();
  const auto* const bounds = host.const_data_ptr<int64_t>();
  std::vector<Range> all;
  int64_t last = 0;
  for (int64_t i = 0; i < host.size(0); ++i) {
    all.push_back({bounds[2 * i], bounds[2 * i + 1]});
    if (all.back().begin < last || all.back().end < all.back().begin || all.back().end > rows) {
      throw InternalError("grouped_linear: ranges of rows that are not ascending");
    }
    last = all.back().end;
  }
  return all;
}

void require(bool condition) {
  if (!condition) throw InternalError("grouped_linear: tensors of unexpected sizes or types");
}

// The product of each expert's rows with its matrix [in, out], in one tensor [R, out].
at::Tensor products(const at::Tensor& x, const at::Tensor& matrices, const at::Tensor& ranges) {
  require(x.dim() == 2 && matrices.dim() == 3 && x.size(1) == matrices.size(1) &&
          ranges.size(0) == matrices.size(0) && x.scalar_type() == matrices.scalar_type());
  at::Tensor y = at::empty({x.size(0), matrices.size(2)}, x.options());
  int64_t last = 0;
  const auto clear_to = [&](int64_t row) {
    if (row > last) y.narrow(0, last, row - last).zero_();
  };
  int64_t expert = 0;
  for (const Range& range : ranges_of(ranges, x.size(0))) {
    clear_to(range.begin);
    if (range.size() > 0) {
      at::Tensor rows = y.narrow(0, range.begin, range.size());
      at::mm_out(rows, x.narrow(0, range.begin, range.size()), matrices.select(0, expert));
    }
    last = range.end;
    expert += 1;
  }
  clear_to(y.size(0));
  return y;
}

at::Tensor forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& ranges) {
  return products(x, weight.transpose(1, 2), ranges);
}

at::Tensor dgrad(const at::Tensor& dy, const at::Tensor& weight, const at::Tensor& ranges) {
  return products(dy, weight, ranges);
}

at::Tensor wgrad(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& ranges) {
  require(dy.dim() == 2 && x.dim() == 2 && dy.size(0) == x.size(0) &&
          dy.scalar_type() == x.scalar_type());
  at::Tensor weight = at::empty({ranges.size(0), dy.size(1), x.size(1)}, x.options());
  int64_t expert = 0;
  for (const Range& range : ranges_of(ranges, x.size(0))) {
    at::Tensor own = weight.select(0, expert++);
    if (range.size() == 0) {
      own.zero_();
    } else {
      at::mm_out(own, dy.narrow(0, range.begin, range.size()).t(),
                 x.narrow(0, range.begin, range.size()));
    }
  }
  return weight;
}

at::Tensor forward_on_meta(const at::Tensor& x, const at::Tensor& weight,
                           const at::Tensor& /*ranges*/) {
  return at::empty({x.size(0), weight.size(1)}, x.options());
}

at::Tensor dgrad_on_meta(const at::Tensor& dy, const at::Tensor& weight,
                         const at::Tensor& /*ranges*/) {
  return at::empty({dy.size(0), weight.size(2)}, dy.options());
}

at::Tensor wgrad_on_meta(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& ranges) {
  return at::empty({ranges.size(0), dy.size(1), x.size(1)}, x.options());
}

}  // namespace

at::Tensor grouped_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& ranges) {
  static const Operator kForward("grouped_linear(Tensor x, Tensor weight, Tensor ranges) -> Tensor",
                                 forward, forward_on_meta, forward);
  return kForward(x, weight, ranges);
}

at::Tensor grouped_linear_dgrad(const at::Tensor& dy, const at::Tensor& weight,
                                const at::Tensor& ranges) {
  static const Operator kGradient(
      "grouped_linear_dgrad(Tensor dy, Tensor weight, Tensor ranges) -> Tensor", dgrad,
      dgrad_on_meta, dgrad);
  return kGradient(dy, weight, ranges);
}

at::Tensor grouped_linear_wgrad(const at::Tensor& dy, const at::Tensor& x,
                                const at::Tensor& ranges) {
  static const Operator kGradient(
      "grouped_linear_wgrad(Tensor dy, Tensor x, Tensor ranges) -> Tensor", wgrad, wgrad_on_meta,
      wgrad);
  return kGradient(dy, x, ranges);
}

}  // namespace gallop::kernel
