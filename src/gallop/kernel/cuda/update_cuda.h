#pragma once

// Updates of many tensors at once, with the norm of their gradients: what kernel/cpu/update.cpp is
// on the CPU. Behind loop_cuda.h, loop_cuda_reductions.h and update_slots.h.

namespace gallop_cuda {

struct UpdateSlots {
  unsigned long long slots[512];
};
using gallop::kernel::UpdateField;
using gallop::kernel::UpdateSlot;

__device__ inline int field_of(int tensor, int field) {
  return UpdateSlot::kFirstTensor + tensor * UpdateField::kFields + field;
}

/// The part of a tensor that a block has.
struct UpdatePart {
  float* parameter;
  const float* gradient;
  const Bf16* bf16_gradient;
  float* state;
  float* second_state;
  Bf16* shadow;
  Int64 begin, end;
  double weight_decay;
  int step_index;

  __device__ explicit UpdatePart(const UpdateSlots& a) {
    int tensor = 0, end_tensor = static_cast<int>(a.slots[UpdateSlot::kTensors]);
    while (end_tensor - tensor > 1) {
      const int middle = (tensor + end_tensor) / 2;
      if (a.slots[field_of(middle, UpdateField::kFirstBlock)] <= blockIdx.x) {
        tensor = middle;
      } else {
        end_tensor = middle;
      }
    }
    parameter = address<float>(a, field_of(tensor, UpdateField::kParameter));
    const bool is_bf16 = a.slots[field_of(tensor, UpdateField::kIsBf16)] != 0;
    const int given = field_of(tensor, UpdateField::kGradient);
    gradient = is_bf16 ? nullptr : address<const float>(a, given);
    bf16_gradient = is_bf16 ? address<const Bf16>(a, given) : nullptr;
    state = address<float>(a, field_of(tensor, UpdateField::kState));
    second_state = address<float>(a, field_of(tensor, UpdateField::kSecondState));
    shadow = address<Bf16>(a, field_of(tensor, UpdateField::kShadow));
    const auto size = static_cast<Int64>(a.slots[field_of(tensor, UpdateField::kSize)]);
    const auto first = static_cast<Int64>(a.slots[field_of(tensor, UpdateField::kFirstBlock)]);
    begin = (static_cast<Int64>(blockIdx.x) - first) * gallop::kernel::kUpdateBlock;
    end = size - begin < gallop::kernel::kUpdateBlock ? size : begin + gallop::kernel::kUpdateBlock;
    weight_decay = number(a, field_of(tensor, UpdateField::kWeightDecay));
    step_index = static_cast<int>(a.slots[field_of(tensor, UpdateField::kStepIndex)]);
  }

  __device__ void put(Int64 i, float p) const {
    parameter[i] = p;
    if (shadow != nullptr) write(shadow[i], p);
  }

  /// Calls body(i, gradient) for each number, and leaves the sum of squares where it belongs.
  template <typename Body>
  __device__ void over(const UpdateSlots& a, Body body) const {
    __shared__ double shared[256];
    double sum = 0;
    for (Int64 i = begin + threadIdx.x; i < end; i += blockDim.x) {
      const float g = bf16_gradient != nullptr ? read(bf16_gradient[i]) : gradient[i];
      sum += static_cast<double>(g) * static_cast<double>(g);
      body(i, g);
    }
    sum = join_block<Plus>(sum, shared);
    if (threadIdx.x == 0) address<double>(a, UpdateSlot::kSums)[blockIdx.x] = sum;
  }
};

__device__ inline bool is_skipped(const UpdateSlots& a) {
  const auto* const skip = address<const float>(a, UpdateSlot::kSkip);
  return skip != nullptr && *skip != 0;
}
__device__ inline float gradient_scale(const UpdateSlots& a) {
  const auto* const divisor = address<const float>(a, UpdateSlot::kDivisor);
  return divisor != nullptr ? 1 / *divisor : 1;
}
// Of the update that is at hand; gallop_finish_update counts it.
__device__ inline float step_of(const UpdateSlots& a, const UpdatePart& part) {
  const auto* const steps = address<const float>(a, UpdateSlot::kSteps);
  return steps != nullptr ? steps[part.step_index] + 1 : 1;
}

extern "C" __global__ void __launch_bounds__(256)
    gallop_norm(const __grid_constant__ UpdateSlots a) {
  const UpdatePart part(a);
  part.over(a, [](Int64, float) {});
}

// p = keep * p - rate * m / (root_scale * sqrt(v) + eps); see AdamwTensor of kernel/update.h.
extern "C" __global__ void __launch_bounds__(256)
    gallop_adamw(const __grid_constant__ UpdateSlots a) {
  const UpdatePart part(a);
  if (is_skipped(a)) {
    part.over(a, [](Int64, float) {});
    return;
  }
  const double beta1 = number(a, UpdateSlot::kFirstNumber);
  const double beta2 = number(a, UpdateSlot::kFirstNumber + 1);
  const float eps = static_cast<float>(number(a, UpdateSlot::kFirstNumber + 2));
  const double lr = static_cast<double>(*address<const float>(a, UpdateSlot::kLr));
  // A power costs as much as many numbers.
  __shared__ float factors[2];
  if (threadIdx.x == 0) {
    const double step = static_cast<double>(step_of(a, part));
    factors[0] = static_cast<float>(lr / (1 - op_power(beta1, step)));
    factors[1] = static_cast<float>(1 / op_sqrt(1 - op_power(beta2, step)));
  }
  __syncthreads();
  const float rate = factors[0], root_scale = factors[1], scale = gradient_scale(a);
  const float keep = static_cast<float>(1 - lr * part.weight_decay);
  const float take1 = static_cast<float>(1 - beta1), take2 = static_cast<float>(1 - beta2);
  const float kept2 = static_cast<float>(beta2);
  part.over(a, [&](Int64 i, float raw) {
    const float g = raw * scale, old_m = part.state[i];
    const float m = fmaf(g - old_m, take1, old_m);
    const float v = fmaf(g * g, take2, part.second_state[i] * kept2);
    const float change = m / fmaf(op_sqrt(v), root_scale, eps);
    part.state[i] = m;
    part.second_state[i] = v;
    part.put(i, fmaf(-rate, change, part.parameter[i] * keep));
  });
}

// p = p - lr * change; see SgdTensor of kernel/update.h.
extern "C" __global__ void __launch_bounds__(256)
    gallop_sgd(const __grid_constant__ UpdateSlots a) {
  const UpdatePart part(a);
  if (is_skipped(a)) {
    part.over(a, [](Int64, float) {});
    return;
  }
  const float momentum = static_cast<float>(number(a, UpdateSlot::kFirstNumber));
  const double dampening = number(a, UpdateSlot::kFirstNumber + 1);
  const bool nesterov = a.slots[UpdateSlot::kNesterov] != 0;
  const float lr = *address<const float>(a, UpdateSlot::kLr), scale = gradient_scale(a);
  const float decay = static_cast<float>(part.weight_decay);
  const float take = step_of(a, part) > 1 ? static_cast<float>(1 - dampening) : 1.0F;
  part.over(a, [&](Int64 i, float raw) {
    const float p = part.parameter[i], g = fmaf(decay, p, raw * scale);
    float change = g;
    if (part.state != nullptr) {
      const float b = fmaf(momentum, part.state[i], take * g);
      part.state[i] = b;
      change = nesterov ? fmaf(momentum, b, g) : b;
    }
    part.put(i, fmaf(-lr, change, p));
  });
}

// Behind a start: counts its updates; behind the last, joins all sums. One block.
extern "C" __global__ void __launch_bounds__(256)
    gallop_finish_update(const __grid_constant__ UpdateSlots a) {
  auto* const steps = address<float>(a, UpdateSlot::kSteps);
  const int tensors = static_cast<int>(a.slots[UpdateSlot::kTensors]);
  if (steps != nullptr && !is_skipped(a)) {
    for (int tensor = static_cast<int>(threadIdx.x); tensor < tensors; tensor += 256) {
      steps[a.slots[field_of(tensor, UpdateField::kStepIndex)]] += 1;
    }
  }
  auto* const norm = address<double>(a, UpdateSlot::kNorm);
  if (norm == nullptr) return;
  __shared__ double shared[256];
  const auto* const sums = address<const double>(a, UpdateSlot::kAllSums);
  const auto blocks = static_cast<Int64>(a.slots[UpdateSlot::kAllBlocks]);
  double sum = 0;
  for (Int64 i = threadIdx.x; i < blocks; i += blockDim.x) sum += sums[i];
  sum = join_block<Plus>(sum, shared);
  if (threadIdx.x == 0) *norm = op_sqrt(sum);
}

}  // namespace gallop_cuda
