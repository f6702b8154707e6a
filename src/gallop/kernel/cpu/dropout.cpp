#include "gallop/kernel/cpu/dropout.h"

#include "gallop/kernel/cpu/philox.h"
#include "gallop/kernel/cpu/vectors.h"

namespace gallop::kernel {
namespace {

template <typename Lanes, typename Number>
inline void drop(const DropoutDraw& draw, F32 bits, Lanes lanes, const Number* x, Number* y) {
  // A comparison with the middle between whole numbers knows no equal ones.
  const F32 limit = fill(draw.threshold - 0.5F);
  lanes.put(y, select(bits > limit, lanes.get(x) * fill(draw.scale), fill(0)));
}

template <typename Number>
void dropout(const DropoutDraw& draw, int64_t group, const Number* x, Number* y, int64_t count) {
  for (int64_t begin = 0; begin < count; begin += kDropoutGroup, ++group) {
    U32 words[4] = {count_from(static_cast<uint32_t>(group * kLanes)), fill_u32(draw.counter[0]),
                    fill_u32(draw.counter[1]), fill_u32(draw.counter[2])};
    philox4x32(draw.key[0], draw.key[1], words);
    for (int64_t v = 0; v < kDropoutGroup / kLanes; ++v) {
      const int64_t at = begin + v * kLanes;
      const F32 bits = v % 2 == 0 ? low_half(words[v / 2]) : high_half(words[v / 2]);
      if (at + kLanes <= count) {
        drop(draw, bits, Whole(), x + at, y + at);
      } else if (at < count) {
        drop(draw, bits, Part{count - at}, x + at, y + at);
      }
    }
  }
}

}  // namespace

template <>
DropoutKernels make_kernels<DropoutKernels, kIsa>() {
  return {.fp32 = dropout<float>, .bf16 = dropout<Bf16>};
}

}  // namespace gallop::kernel
