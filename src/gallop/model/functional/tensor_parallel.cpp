#include "gallop/model/functional/tensor_parallel.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include "gallop/model/functional/first_order.h"

namespace gallop::model::functional {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Sums of numbers in 16 bits are computed in fp32, and rounded once.
bool is_narrow(const at::Tensor& x) {
  return x.scalar_type() == at::kBFloat16 || x.scalar_type() == at::kHalf;
}

at::Tensor all_reduced(const at::Tensor& x, const TensorGroup& group) {
  const at::Tensor sum =
      is_narrow(x) ? x.to(at::kFloat).contiguous() : x.clone(at::MemoryFormat::Contiguous);
  group.all_reduce(sum);
  return sum.to(x.scalar_type());
}

std::vector<int64_t> lengths_of(int64_t size, int parts) {
  const std::vector<int64_t> bounds = part_bounds(size, parts);
  std::vector<int64_t> lengths;
  for (size_t i = 1; i < bounds.size(); ++i) lengths.push_back(bounds[i] - bounds[i - 1]);
  return lengths;
}

at::Tensor own_part(const at::Tensor& x, int64_t dim, const TensorGroup& group) {
  const PartRange own = part_range(x.size(dim), group);
  return x.narrow(dim, own.begin, own.size());
}

// Slices of x along a dimension, one for each rank, one after the other in memory.
struct Packed {
  at::Tensor elements;  // One-dimensional.
  std::vector<int64_t> counts;
};

Packed split_by_rank(const at::Tensor& x, int64_t dim, const TensorGroup& group) {
  std::vector<at::Tensor> parts;
  Packed packed;
  int64_t begin = 0;
  for (const int64_t length : lengths_of(x.size(dim), group.size())) {
    parts.push_back(x.narrow(dim, begin, length).reshape({-1}));
    packed.counts.push_back(parts.back().numel());
    begin += length;
  }
  packed.elements = at::cat(parts);
  return packed;
}

// Memory for a slice of each rank along a dimension of `size`, whose other sizes are given, and
// views of the slices.
struct Slices {
  Packed packed;
  std::vector<at::Tensor> slices;
};

Slices slices_by_rank(std::vector<int64_t> sizes, int64_t dim, int64_t size,
                      const at::TensorOptions& options, const TensorGroup& group) {
  auto& length = sizes[static_cast<size_t>(dim)];
  length = size;
  Slices all{.packed = {.elements = at::empty({c10::multiply_integers(sizes)}, options)}};
  int64_t begin = 0;
  for (const int64_t part : lengths_of(size, group.size())) {
    length = part;
    const int64_t count = c10::multiply_integers(sizes);
    all.packed.counts.push_back(count);
    all.slices.push_back(all.packed.elements.narrow(0, begin, count).view(sizes));
    begin += count;
  }
  return all;
}

at::Tensor gathered(const at::Tensor& x, int64_t dim, int64_t size, const TensorGroup& group) {
  const Slices all = slices_by_rank(x.sizes().vec(), dim, size, x.options(), group);
  all.slices[static_cast<size_t>(group.rank())].copy_(x);
  group.all_gather(all.packed.elements, all.packed.counts);
  return at::cat(all.slices, dim);
}

// Parts are summed in the order of ranks.
at::Tensor reduced(const at::Tensor& x, int64_t dim, const TensorGroup& group) {
  const Packed sent = split_by_rank(x, dim, group);
  const int64_t own = sent.counts[static_cast<size_t>(group.rank())];
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes[static_cast<size_t>(dim)] = part_range(x.size(dim), group).size();
  sizes.insert(sizes.begin(), group.size());
  const at::Tensor received = at::empty(sizes, x.options());
  group.all_to_all(received.view({-1}), sent.elements,
                   std::vector<int64_t>(sent.counts.size(), own), sent.counts);
  at::Tensor sum =
      is_narrow(x) ? received.select(0, 0).to(at::kFloat) : received.select(0, 0).clone();
  for (int64_t i = 1; i < group.size(); ++i) sum.add_(received.select(0, i));
  return sum.to(x.scalar_type());
}

at::Tensor redistributed(const at::Tensor& x, int64_t from, int64_t size, int64_t to,
                         const TensorGroup& group) {
  const Packed sent = split_by_rank(x, to, group);
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes[static_cast<size_t>(to)] = part_range(x.size(to), group).size();
  const Slices received = slices_by_rank(sizes, from, size, x.options(), group);
  group.all_to_all(received.packed.elements, sent.elements, received.packed.counts, sent.counts);
  return at::cat(received.slices, from);
}

const TensorGroup& group_of(AutogradContext* context) {
  return *reinterpret_cast<const TensorGroup*>(context->saved_data["group"].toInt());
}

void keep(AutogradContext* context, const TensorGroup& group, int64_t dim = 0, int64_t size = 0) {
  context->saved_data["group"] = reinterpret_cast<int64_t>(&group);
  context->saved_data["dim"] = dim;
  context->saved_data["size"] = size;
}

struct Copy : torch::autograd::Function<Copy> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const TensorGroup& group) {
    keep(context, group);
    return x.view_as(x);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    require_first_order("copy_to_tensor_parallel_region");
    return {all_reduced(gradients[0], group_of(context)), {}};
  }
};

struct Reduce : torch::autograd::Function<Reduce> {
  static at::Tensor forward(AutogradContext* /*context*/, const at::Tensor& x,
                            const TensorGroup& group) {
    return all_reduced(x, group);
  }
  static variable_list backward(AutogradContext* /*context*/, const variable_list& gradients) {
    return {gradients[0], {}};
  }
};

struct Gather : torch::autograd::Function<Gather> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, int64_t dim,
                            int64_t size, bool sums_gradient, const TensorGroup& group) {
    keep(context, group, dim, size);
    context->saved_data["sums"] = sums_gradient;
    return gathered(x, dim, size, group);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    require_first_order("gather_parts");
    const int64_t dim = context->saved_data["dim"].toInt();
    const bool sums = context->saved_data["sums"].toBool();
    const TensorGroup& group = group_of(context);
    return {
        sums ? reduced(gradients[0], dim, group) : own_part(gradients[0], dim, group).contiguous(),
        {},
        {},
        {},
        {}};
  }
};

struct ReduceScatter : torch::autograd::Function<ReduceScatter> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, int64_t dim,
                            const TensorGroup& group) {
    keep(context, group, dim, x.size(dim));
    return reduced(x, dim, group);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    require_first_order("reduce_scatter");
    return {gathered(gradients[0], context->saved_data["dim"].toInt(),
                     context->saved_data["size"].toInt(), group_of(context)),
            {},
            {}};
  }
};

struct Scatter : torch::autograd::Function<Scatter> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, int64_t dim,
                            const TensorGroup& group) {
    keep(context, group, dim, x.size(dim));
    return own_part(x, dim, group).contiguous();
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    require_first_order("scatter_parts");
    return {gathered(gradients[0], context->saved_data["dim"].toInt(),
                     context->saved_data["size"].toInt(), group_of(context)),
            {},
            {}};
  }
};

struct Redistribute : torch::autograd::Function<Redistribute> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, int64_t from,
                            int64_t size, int64_t to, const TensorGroup& group) {
    keep(context, group, from, x.size(to));
    context->saved_data["to"] = to;
    return redistributed(x, from, size, to, group);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    require_first_order("redistribute");
    return {redistributed(gradients[0], context->saved_data["to"].toInt(),
                          context->saved_data["size"].toInt(), context->saved_data["dim"].toInt(),
                          group_of(context)),
            {},
            {},
            {},
            {}};
  }
};

}  // namespace

std::vector<int64_t> part_bounds(int64_t size, int parts) {
  std::vector<int64_t> bounds;
  for (int i = 0; i <= parts; ++i) bounds.push_back(size * i / parts);
  return bounds;
}

PartRange part_range(int64_t size, const TensorGroup& group) {
  const std::vector<int64_t> bounds = part_bounds(size, group.size());
  const auto rank = static_cast<size_t>(group.rank());
  return {bounds[rank], bounds[rank + 1]};
}

kernel::DropoutPart dropout_part(const at::Tensor& x, int64_t dim, int64_t size,
                                 const std::vector<PartRange>& ranges) {
  int64_t rows = 1, below = 1;
  for (int64_t i = 0; i < x.dim(); ++i) {
    if (i < dim) rows *= x.size(i);
    if (i > dim) below *= x.size(i);
  }
  kernel::DropoutPart part{.rows = rows, .columns = size * below};
  for (const PartRange& range : ranges) {
    part.ranges.push_back({range.begin * below, range.size() * below});
  }
  return part;
}

at::Tensor copy_to_tensor_parallel_region(const at::Tensor& x, const TensorGroup& group) {
  return Copy::apply(x, group);
}

at::Tensor reduce_from_tensor_parallel_region(const at::Tensor& x, const TensorGroup& group) {
  return Reduce::apply(x, group);
}

at::Tensor gather_parts(const at::Tensor& x, int64_t dim, int64_t size, bool sums_gradient,
                        const TensorGroup& group) {
  return Gather::apply(x, dim < 0 ? dim + x.dim() : dim, size, sums_gradient, group);
}

at::Tensor reduce_scatter(const at::Tensor& x, int64_t dim, const TensorGroup& group) {
  return ReduceScatter::apply(x, dim, group);
}

at::Tensor scatter_parts(const at::Tensor& x, int64_t dim, const TensorGroup& group) {
  return Scatter::apply(x, dim, group);
}

at::Tensor redistribute(const at::Tensor& x, int64_t from, int64_t size, int64_t to,
                        const TensorGroup& group) {
  return Redistribute::apply(x, from, size, to, group);
}

}  // namespace gallop::model::functional
