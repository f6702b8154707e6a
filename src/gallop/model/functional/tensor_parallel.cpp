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

at::Tensor gathered(const at::Tensor& x, int64_t dim, int64_t size, const TensorGroup& group) {
  const std::vector<int64_t> lengths = lengths_of(size, group.size());
  int64_t others = 1;
  for (int64_t i = 0; i < x.dim(); ++i) others *= i == dim ? 1 : x.size(i);
  std::vector<int64_t> elements;
  for (const int64_t length : lengths) elements.push_back(length * others);
  const at::Tensor flat = at::empty({size * others}, x.options());
  std::vector<at::Tensor> parts;
  int64_t begin = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    std::vector<int64_t> sizes = x.sizes().vec();
    sizes[static_cast<size_t>(dim)] = lengths[i];
    parts.push_back(flat.narrow(0, begin, elements[i]).view(sizes));
    begin += elements[i];
  }
  parts[static_cast<size_t>(group.rank())].copy_(x);
  group.all_gather(flat, elements);
  return at::cat(parts, dim);
}

// Parts are summed in the order of ranks.
at::Tensor reduced(const at::Tensor& x, int64_t dim, const TensorGroup& group) {
  const std::vector<int64_t> lengths = lengths_of(x.size(dim), group.size());
  std::vector<at::Tensor> parts;
  std::vector<int64_t> send;
  int64_t begin = 0;
  for (const int64_t length : lengths) {
    const at::Tensor part = x.narrow(dim, begin, length);
    parts.push_back(part.reshape({-1}));
    send.push_back(part.numel());
    begin += length;
  }
  const auto rank = static_cast<size_t>(group.rank());
  const std::vector<int64_t> receive(lengths.size(), send[rank]);
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes[static_cast<size_t>(dim)] = lengths[rank];
  std::vector<int64_t> all = sizes;
  all.insert(all.begin(), group.size());
  const at::Tensor received = at::empty(all, x.options());
  group.all_to_all(received.view({-1}), at::cat(parts), receive, send);
  at::Tensor sum =
      is_narrow(x) ? received.select(0, 0).to(at::kFloat) : received.select(0, 0).clone();
  for (int64_t i = 1; i < group.size(); ++i) sum.add_(received.select(0, i));
  return sum.to(x.scalar_type());
}

at::Tensor redistributed(const at::Tensor& x, int64_t from, int64_t size, int64_t to,
                         const TensorGroup& group) {
  const std::vector<int64_t> bounds = part_bounds(x.size(to), group.size());
  std::vector<at::Tensor> parts;
  std::vector<int64_t> send, receive;
  for (size_t i = 1; i < bounds.size(); ++i) {
    const at::Tensor part = x.narrow(to, bounds[i - 1], bounds[i] - bounds[i - 1]);
    parts.push_back(part.reshape({-1}));
    send.push_back(part.numel());
  }
  std::vector<std::vector<int64_t>> sizes;
  int64_t all = 0;
  for (const int64_t length : lengths_of(size, group.size())) {
    std::vector<int64_t> one = x.sizes().vec();
    one[static_cast<size_t>(from)] = length;
    one[static_cast<size_t>(to)] = part_range(x.size(to), group).size();
    sizes.push_back(one);
    receive.push_back(c10::multiply_integers(one));
    all += receive.back();
  }
  const at::Tensor received = at::empty({all}, x.options());
  group.all_to_all(received, at::cat(parts), receive, send);
  int64_t begin = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    parts[i] = received.narrow(0, begin, receive[i]).view(sizes[i]);
    begin += receive[i];
  }
  return at::cat(parts, from);
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
                                 const TensorGroup& group) {
  kernel::DropoutPart part{.rows = 1, .columns = size};
  for (int64_t i = 0; i < x.dim(); ++i) {
    if (i < dim) part.rows *= x.size(i);
    if (i > dim) part.columns *= x.size(i);
  }
  part.begin = part_range(size, group).begin * (part.columns / size);
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
