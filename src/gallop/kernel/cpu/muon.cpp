#include "gallop/kernel/cpu/muon.h"

#include "gallop/kernel/cpu/vectors.h"

namespace gallop::kernel {
namespace {

inline F32 direction(F32 momentum, F32 gradient, F32 memory, bool nesterov) {
  return nesterov ? fma(memory, momentum - gradient, gradient) : momentum;
}

double move(const MuonNumbers& at) {
  const F32 scale = fill(at.scale), memory = fill(at.memory), rest = fill(1 - at.memory);
  F32 sums[4] = {fill(0), fill(0), fill(0), fill(0)};
  over_vectors(0, at.count, [&](int64_t i, auto lanes) {
    const F32 g = lanes.get(at.gradient + i) * scale, before = lanes.get(at.momentum + i);
    const F32 m = fma(rest, g - before, before);
    lanes.put(at.momentum + i, m);
    const F32 u = direction(m, g, memory, at.nesterov);
    F32& sum = sums[i / kLanes % 4];
    sum = fma(u, u, sum);
  });
  return sum_fp64((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

template <typename Number>
void put(const MuonNumbers& at, float factor, Number* to) {
  const F32 scale = fill(at.scale), memory = fill(at.memory), f = fill(factor);
  over_vectors(0, at.count, [&](int64_t i, auto lanes) {
    const F32 g = lanes.get(at.gradient + i) * scale;
    lanes.put(to + i, direction(lanes.get(at.momentum + i), g, memory, at.nesterov) * f);
  });
}

template <typename Number>
void update(float* parameter, const Number* change, float keep, float rate, int64_t count) {
  const F32 k = fill(keep), r = fill(rate);
  over_vectors(0, count, [&](int64_t i, auto lanes) {
    lanes.put(parameter + i, fnma(r, lanes.get(change + i), lanes.get(parameter + i) * k));
  });
}

}  // namespace

template <>
MuonKernels make_kernels<MuonKernels, kIsa>() {
  return {.move = move,
          .put_fp32 = put<float>,
          .put_bf16 = put<Bf16>,
          .update_fp32 = update<float>,
          .update_bf16 = update<Bf16>};
}

}  // namespace gallop::kernel
