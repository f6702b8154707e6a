#include "gallop/train/shared_state.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/zeros.h>

#include "gallop/base/error.h"
#include "gallop/parallel/packed.h"

namespace gallop::train {

namespace {

at::Device device_of(const std::vector<LogicalTensor>& tensors) {
  for (const LogicalTensor& tensor : tensors) {
    if (tensor.local.defined()) return tensor.local.device();
  }
  return at::kCPU;
}

at::TensorOptions options_of(const LogicalTensor& tensor, at::Device device) {
  return tensor.whole.options().device(device).requires_grad(false);
}

at::Tensor empty_whole(const LogicalTensor& tensor, at::Device device) {
  return at::empty_strided(tensor.whole.sizes(), tensor.whole.strides(),
                           options_of(tensor, device));
}

// [rows, columns] in memory order.
at::Tensor as_columns(const at::Tensor& whole, const LogicalTensor& tensor) {
  return whole.as_strided({tensor.rows, tensor.columns()}, {tensor.columns(), 1});
}

// The numbers of elements that each process gives to process `to`.
std::vector<int64_t> sizes_for(int to, const LogicalTensor& tensor, int processes) {
  std::vector<int64_t> sizes(static_cast<size_t>(processes));
  for (const LogicalTensor::Part& part : tensor.parts) {
    sizes[static_cast<size_t>(tensor.giver(part, to))] = tensor.elements_of(part);
  }
  return sizes;
}

// The elements of a part, in the order in which a process has them, as views of the whole tensor.
std::vector<at::Tensor> views_of(const LogicalTensor::Part& part, const at::Tensor& columns) {
  const int64_t width = part.size();
  if (part.last < 0) return {columns.narrow(1, part.begin, width)};
  std::vector<at::Tensor> views;
  for (int64_t element = part.first; element < part.last;) {
    const int64_t row = element / width, column = element % width, left = part.last - element;
    const bool is_whole_row = column == 0 && left >= width;
    const int64_t rows = is_whole_row ? left / width : 1;
    const int64_t length = is_whole_row ? width : std::min(width - column, left);
    views.push_back(columns.narrow(0, row, rows).narrow(1, part.begin + column, length));
    element += rows * length;
  }
  return views;
}

// What a process sends; a collective needs memory also if that is nothing.
at::Tensor sent_by(const at::Tensor& tensor, const at::TensorOptions& options) {
  if (tensor.defined() && tensor.numel() > 0) return parallel::in_memory_order(tensor);
  return at::zeros({1}, options);
}

// A tensor on its way to one process.
struct Gather {
  const LogicalTensor* tensor = nullptr;
  bool is_here = false;
  at::Tensor sent, received;  // Undefined if every process has the tensor.
};

Gather start_gather(parallel::Collectives& collectives, const LogicalTensor& tensor, int to,
                    at::Device device) {
  Gather gather{.tensor = &tensor, .is_here = collectives.rank() == to};
  if (tensor.is_replicated()) return gather;
  const std::vector<int64_t> sizes = sizes_for(to, tensor, collectives.size());
  std::vector<int64_t> send(sizes.size()), receive(sizes.size());
  send[static_cast<size_t>(to)] = sizes[static_cast<size_t>(collectives.rank())];
  if (gather.is_here) receive = sizes;
  const auto options = options_of(tensor, device);
  gather.received = at::zeros({gather.is_here ? tensor.whole.numel() : 1}, options);
  gather.sent = sent_by(tensor.local, options);
  collectives.all_to_all_async(gather.received, gather.sent, receive, send);
  return gather;
}

// Undefined in other processes than the one it goes to.
at::Tensor finish(parallel::Collectives& collectives, const Gather& gather, at::Device device) {
  const LogicalTensor& tensor = *gather.tensor;
  if (gather.received.defined()) collectives.wait(gather.received);
  if (!gather.is_here) return {};
  if (tensor.is_replicated()) return tensor.local;
  at::Tensor whole = empty_whole(tensor, device);
  const at::Tensor columns = as_columns(whole, tensor);
  const int to = collectives.rank();
  const std::vector<int64_t> sizes = sizes_for(to, tensor, collectives.size());
  for (const LogicalTensor::Part& part : tensor.parts) {
    int64_t begin =
        std::accumulate(sizes.begin(), sizes.begin() + tensor.giver(part, to), int64_t{0});
    for (const at::Tensor& view : views_of(part, columns)) {
      view.copy_(gather.received.narrow(0, begin, view.numel()).view(view.sizes()));
      begin += view.numel();
    }
  }
  return whole;
}

// `saved` is defined on rank 0.
void scatter(parallel::Collectives& collectives, const at::Tensor& saved,
             const LogicalTensor& tensor, at::Device device) {
  if (tensor.is_replicated()) {
    if (saved.defined()) tensor.local.copy_(saved);
    collectives.broadcast(tensor.local);
    return;
  }
  const auto parts_of_all = tensor.parts_of_all();
  std::vector<int64_t> sizes(static_cast<size_t>(collectives.size()));
  for (const LogicalTensor::Part& part : parts_of_all) {
    sizes[static_cast<size_t>(part.rank)] = tensor.elements_of(part);
  }
  std::vector<int64_t> send(sizes.size()), receive(sizes.size());
  receive[0] = sizes[static_cast<size_t>(collectives.rank())];
  const auto options = options_of(tensor, device);
  at::Tensor parts = at::zeros({1}, options);
  if (saved.defined()) {
    send = sizes;
    const at::Tensor whole = empty_whole(tensor, device);
    whole.copy_(saved);
    const at::Tensor columns = as_columns(whole, tensor);
    std::vector<at::Tensor> list;
    for (const LogicalTensor::Part& part : parts_of_all) {
      for (const at::Tensor& view : views_of(part, columns)) {
        list.push_back(view.reshape({-1}));
      }
    }
    if (!list.empty()) parts = at::cat(list);
  }
  const at::Tensor received = at::zeros({std::max<int64_t>(1, receive[0])}, options);
  collectives.all_to_all_async(received, parts, receive, send);
  collectives.wait(received);
  if (receive[0] > 0) parallel::in_memory_order(tensor.local).copy_(received);
}

}  // namespace

void gather_in_turn(parallel::Collectives& collectives,
                    const std::vector<std::vector<LogicalTensor>>& lists,
                    const std::function<void(const at::Tensor& whole)>& take) {
  const at::NoGradGuard no_grad;
  size_t most = 0;
  std::vector<LogicalTensor> all;
  for (const auto& list : lists) {
    most = std::max(most, list.size());
    all.insert(all.end(), list.begin(), list.end());
  }
  const at::Device device = device_of(all);
  for (size_t i = 0; i < most; ++i) {
    std::vector<Gather> started;  // In all processes at once.
    for (size_t to = 0; to < lists.size(); ++to) {
      if (i >= lists[to].size()) continue;
      started.push_back(start_gather(collectives, lists[to][i], static_cast<int>(to), device));
    }
    at::Tensor own;
    for (Gather& gather : started) {
      at::Tensor whole = finish(collectives, gather, device);
      if (whole.defined()) own = std::move(whole);
      gather = {};
    }
    if (own.defined()) take(own);
  }
}

void scatter_from_rank0(parallel::Collectives& collectives, const NamedTensors& whole,
                        const std::vector<LogicalTensor>& tensors) {
  const at::NoGradGuard no_grad;
  const auto saved_of = [&](const LogicalTensor& tensor) {
    const at::Tensor* const saved = find_tensor(whole, tensor.name);
    return saved != nullptr && !saved->is_meta() ? *saved : at::Tensor();
  };
  const auto missing = parallel::run_on_rank0(&collectives, [&] {
    std::vector<std::string> names;
    for (const LogicalTensor& tensor : tensors) {
      if (!saved_of(tensor).defined()) names.push_back(tensor.name);
    }
    return names;
  });
  const at::Device device = device_of(tensors);
  auto next_missing = missing.begin();
  for (const LogicalTensor& tensor : tensors) {
    if (next_missing != missing.end() && *next_missing == tensor.name) {
      ++next_missing;
      continue;
    }
    const bool is_first = collectives.rank() == 0;
    scatter(collectives, is_first ? saved_of(tensor) : at::Tensor(), tensor, device);
  }
}

NamedTensors replicated(const std::vector<LogicalTensor>& tensors) {
  NamedTensors all;
  for (const LogicalTensor& tensor : tensors) {
    if (tensor.is_replicated()) all.push_back({tensor.name, tensor.local});
  }
  return all;
}

}  // namespace gallop::train
