#include "gallop/parallel/packed.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <utility>

#include <ATen/ops/empty.h>

#include "gallop/parallel/sums.h"

namespace gallop::parallel {

namespace {

constexpr size_t kPieceBytes = 25 << 20;

}  // namespace

std::vector<at::Tensor> trained(const NamedTensors& parameters) {
  std::vector<at::Tensor> all;
  for (const auto& [name, tensor] : parameters) {
    if (tensor.requires_grad()) all.push_back(tensor);
  }
  return all;
}

int64_t count_numbers(const std::vector<at::Tensor>& tensors) {
  int64_t count = 0;
  for (const at::Tensor& tensor : tensors) count += tensor.numel();
  return count;
}

at::ScalarType type_of_means(const std::vector<at::Tensor>& tensors) {
  const bool needs_fp64 = std::any_of(tensors.begin(), tensors.end(), [](const at::Tensor& one) {
    return !one.is_floating_point() || one.scalar_type() == at::kDouble;
  });
  return needs_fp64 ? at::kDouble : at::kFloat;
}

std::vector<at::Tensor> places_in(const at::Tensor& packed, int64_t offset,
                                  const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> places;
  for (const at::Tensor& tensor : tensors) {
    places.push_back(packed.as_strided(tensor.sizes(), tensor.strides(), offset));
    offset += tensor.numel();
  }
  return places;
}

void copy_all(const std::vector<at::Tensor>& from, const std::vector<at::Tensor>& to) {
  for (size_t i = 0; i < from.size(); ++i) to[i].copy_(from[i]);
}

at::Tensor in_memory_order(const at::Tensor& dense) {
  return dense.detach().as_strided({dense.numel()}, {1}, dense.storage_offset());
}

namespace {

// Runs a collective, which `start` starts, on the tensors in pieces, of which two are under way.
void run_packed(const std::vector<at::Tensor>& tensors,
                const std::function<void(const at::Tensor& packed)>& start) {
  struct Piece {
    at::Tensor packed;
    std::vector<at::Tensor> tensors, places;
  };
  std::deque<Piece> started;
  const auto finish_first = [&started] {
    wait_tensor(started.front().packed);
    copy_all(started.front().places, started.front().tensors);
    started.pop_front();
  };
  for (size_t i = 0; i < tensors.size();) {
    Piece piece;
    const auto options = tensors[i].options().requires_grad(false);
    for (size_t bytes = 0; i < tensors.size() && bytes < kPieceBytes &&
                           tensors[i].scalar_type() == options.dtype().toScalarType();
         ++i) {
      bytes += tensors[i].nbytes();
      piece.tensors.push_back(tensors[i]);
    }
    piece.packed = at::empty({count_numbers(piece.tensors)}, options);
    if (piece.packed.numel() == 0) continue;
    piece.places = places_in(piece.packed, 0, piece.tensors);
    copy_all(piece.tensors, piece.places);
    start(piece.packed);
    started.push_back(std::move(piece));
    if (started.size() > 1) finish_first();
  }
  while (!started.empty()) finish_first();
}

}  // namespace

void all_reduce_packed(const std::vector<at::Tensor>& tensors) {
  run_packed(tensors, [](const at::Tensor& packed) { all_reduce_async(packed); });
}

void broadcast_packed(const std::vector<at::Tensor>& tensors, int processes) {
  run_packed(tensors, [&](const at::Tensor& packed) {
    std::vector<int64_t> sizes(static_cast<size_t>(processes));
    sizes.front() = packed.numel();
    all_gather_async(packed, sizes);
  });
}

}  // namespace gallop::parallel
