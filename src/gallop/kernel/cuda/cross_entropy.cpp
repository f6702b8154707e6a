#include "gallop/kernel/cuda/cross_entropy.h"

#include <algorithm>
#include <bit>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "gallop/kernel/cuda/cross_entropy_slots.h"

namespace gallop::kernel {

namespace {

// Enough to fill a GPU, and few for the one block that adds up their sums.
constexpr int64_t kMostBlocks = 4096;

uint64_t address(const at::Tensor& tensor) {
  return tensor.defined() ? reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) : 0;
}

// Blocks for all rows, which have one at a time, or one in each thread.
uint32_t blocks_of(const at::Tensor& logits) {
  const int64_t rows_of_block =
      logits.size(1) <= kNarrowClasses ? static_cast<int64_t>(kCudaThreads) : 1;
  const int64_t blocks = (logits.size(0) + rows_of_block - 1) / rows_of_block;
  return static_cast<uint32_t>(std::min(blocks, kMostBlocks));
}

/// The arguments that both directions share.
CudaLaunch launch_of(const at::Tensor& logits, const at::Tensor& target, const at::Tensor& rows,
                     const CrossEntropyOptions& options) {
  CudaLaunch launch{.text = kCrossEntropyText,
                    .kernel = {},
                    .blocks = blocks_of(logits),
                    .device = logits.device(),
                    .slots = std::vector<uint64_t>(kCudaSlots)};
  auto& slots = launch.slots;
  const auto format = target.scalar_type();
  slots[CrossEntropySlot::kLogits] = address(logits);
  slots[CrossEntropySlot::kClasses] = format == at::kLong ? address(target) : 0;
  slots[CrossEntropySlot::kSharesFp32] = format == at::kFloat ? address(target) : 0;
  slots[CrossEntropySlot::kSharesBf16] = format == at::kBFloat16 ? address(target) : 0;
  slots[CrossEntropySlot::kRows] = address(rows);
  slots[CrossEntropySlot::kRowCount] = static_cast<uint64_t>(logits.size(0));
  slots[CrossEntropySlot::kColumns] = static_cast<uint64_t>(logits.size(1));
  slots[CrossEntropySlot::kIgnored] = static_cast<uint64_t>(options.ignored);
  slots[CrossEntropySlot::kSmoothing] = std::bit_cast<uint64_t>(options.label_smoothing);
  return launch;
}

}  // namespace

CrossEntropyResult cross_entropy_on_gpu(CudaLauncher& launcher, const at::Tensor& logits,
                                        const at::Tensor& target,
                                        const CrossEntropyOptions& options) {
  // The kernel reads 16 bytes at a time. Only views can begin elsewhere.
  const at::Tensor aligned = address(logits) % 16 == 0 ? logits : logits.clone();
  CrossEntropyResult result{
      .loss = at::empty({}, logits.options().dtype(at::kFloat)),
      .correct = {},
      .rows = at::empty({logits.size(0), 2}, logits.options().dtype(at::kFloat))};
  if (target.scalar_type() == at::kLong) {
    result.correct = at::empty({}, logits.options().dtype(at::kLong));
  }
  CudaLaunch launch = launch_of(aligned, target, result.rows, options);
  const at::Tensor by_block =
      at::empty({2, int64_t{launch.blocks}}, logits.options().dtype(at::kDouble));
  launch.slots[CrossEntropySlot::kBlockLosses] = address(by_block);
  launch.slots[CrossEntropySlot::kBlockCorrect] =
      address(by_block) + launch.blocks * sizeof(double);
  launch.slots[CrossEntropySlot::kBlocks] = launch.blocks;
  launch.slots[CrossEntropySlot::kLoss] = address(result.loss);
  launch.slots[CrossEntropySlot::kAllCorrect] = address(result.correct);
  launch.kernel = cuda_kernel_of("gallop_cross_entropy", logits.scalar_type());
  launcher.launch(launch);
  launch.kernel = "gallop_cross_entropy_sum";
  launch.blocks = 1;
  launcher.launch(launch);
  return result;
}

at::Tensor cross_entropy_backward_on_gpu(CudaLauncher& launcher, const at::Tensor& gradient,
                                         const at::Tensor& logits, const at::Tensor& target,
                                         const at::Tensor& rows,
                                         const CrossEntropyOptions& options) {
  at::Tensor result = at::empty_like(logits);
  CudaLaunch launch = launch_of(logits, target, rows, options);
  launch.slots[CrossEntropySlot::kGradient] = address(gradient);
  launch.slots[CrossEntropySlot::kResult] = address(result);
  launch.kernel = cuda_kernel_of("gallop_cross_entropy_backward", logits.scalar_type());
  launcher.launch(launch);
  return result;
}

}  // namespace gallop::kernel
