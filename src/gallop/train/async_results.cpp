#include "gallop/train/async_results.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "gallop/base/error.h"

namespace gallop::train {

namespace {

constexpr int64_t kSlots = 32;  // The maximum number of steps in flight.

/// Copies to pinned memory, recording an event after each copy.
class CopiedResults final : public AsyncResults {
 public:
  CopiedResults(c10::Device device, int64_t most_numbers)
      : device_(device),
        memory_(at::empty(
            {kSlots, most_numbers},
            at::TensorOptions(at::kDouble).device(at::kCPU).pinned_memory(device.is_cuda()))) {
    slots_.reserve(kSlots);
    for (int64_t i = 0; i < kSlots; ++i) {
      slots_.push_back({.copied = c10::Event(device.type()), .source = {}, .numbers = {}});
    }
  }

  void push(const at::Tensor& numbers) override {
    if (is_full() || numbers.dim() != 1 || numbers.size(0) > memory_.size(1) ||
        numbers.scalar_type() != at::kDouble) {
      throw InternalError("step readings: no room for these numbers");
    }
    const at::NoGradGuard no_grad;
    const int64_t at = (first_ + count_) % kSlots;
    Slot& slot = slots_[static_cast<size_t>(at)];
    slot.source = numbers;
    slot.numbers = memory_.select(0, at).narrow(0, 0, numbers.size(0));
    slot.numbers.copy_(numbers, /*non_blocking=*/true);
    slot.copied.record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
    count_ += 1;
  }

  int64_t max_in_flight() const override { return kSlots; }
  bool is_there() const override { return count_ == 0 || oldest().copied.query(); }
  bool is_full() const override { return count_ == kSlots; }

  std::vector<double> pop() override {
    if (count_ == 0) throw InternalError("step readings: nothing is under way");
    Slot& slot = slots_[static_cast<size_t>(first_)];
    slot.copied.synchronize();
    const auto* data = slot.numbers.const_data_ptr<double>();
    std::vector<double> numbers(data, data + slot.numbers.size(0));
    slot.source.reset();
    first_ = (first_ + 1) % kSlots;
    count_ -= 1;
    return numbers;
  }

 private:
  struct Slot {
    c10::Event copied;
    at::Tensor source, numbers;  // On the device, until copied; on the host.
  };

  const Slot& oldest() const { return slots_[static_cast<size_t>(first_)]; }

  c10::Device device_;
  at::Tensor memory_;
  std::vector<Slot> slots_;
  int64_t first_ = 0, count_ = 0;
};

}  // namespace

std::unique_ptr<AsyncResults> make_async_results(c10::Device device, int64_t most_numbers) {
  if (device.is_cpu()) return nullptr;
  return std::make_unique<CopiedResults>(device, most_numbers);
}

}  // namespace gallop::train
