#include "gallop/kernel/cuda/dropout.h"

#include <algorithm>
#include <bit>

#include <ATen/ops/empty_like.h>

#include "gallop/base/philox.h"
#include "gallop/kernel/cpu/dropout.h"
#include "gallop/kernel/cuda/dropout_slots.h"
#include "gallop/kernel/dropout.h"

namespace gallop::kernel {

namespace {

// More blocks than a GPU runs at once, each with several counters where there are many.
constexpr int64_t kMostBlocks = 4096;

}  // namespace

at::Tensor dropout_on_gpu(CudaLauncher& launcher, const at::Tensor& x, double p,
                          const DropoutKey& key) {
  at::Tensor y = at::empty_like(x);
  const DropoutShare share = dropout_share(p);
  const int64_t counters = (x.numel() + kDropoutGroup - 1) / kDropoutGroup * kLanes;
  std::vector<uint64_t> slots(kCudaSlots);
  slots[DropoutSlot::kX] = reinterpret_cast<uintptr_t>(x.const_data_ptr());
  slots[DropoutSlot::kY] = reinterpret_cast<uintptr_t>(y.mutable_data_ptr());
  slots[DropoutSlot::kCount] = static_cast<uint64_t>(x.numel());
  slots[DropoutSlot::kSeedAndStep] =
      reinterpret_cast<uintptr_t>(key.seed_and_step.const_data_ptr());
  slots[DropoutSlot::kCall] = static_cast<uint64_t>(key.call);
  slots[DropoutSlot::kPurpose] = Philox::key_of(0, Purpose::kDropout)[1];
  slots[DropoutSlot::kThreshold] = std::bit_cast<uint64_t>(share.threshold);
  slots[DropoutSlot::kScale] = std::bit_cast<uint64_t>(share.scale);
  if (key.share.defined()) {
    slots[DropoutSlot::kShare] = reinterpret_cast<uintptr_t>(key.share.const_data_ptr());
  }
  const int64_t blocks = (counters + kCudaThreads - 1) / kCudaThreads;
  launcher.launch({.text = kDropoutText,
                   .kernel = cuda_kernel_of("gallop_dropout", x.scalar_type()),
                   .blocks = static_cast<uint32_t>(std::min(blocks, kMostBlocks)),
                   .device = x.device(),
                   .slots = std::move(slots)});
  return y;
}

}  // namespace gallop::kernel
