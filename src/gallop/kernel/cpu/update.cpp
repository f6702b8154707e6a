#include "gallop/kernel/cpu/update.h"

#include "gallop/kernel/cpu/simd.h"

namespace gallop::kernel {
namespace {

// Vectors that sum at once, so that an addition need not wait for the one before it. A lane sums at
// most 64 squares of a chunk before fp64 takes over, which keeps the error near one rounding.
constexpr int64_t kSums = 4;
constexpr int64_t kStride = kSums * kLanes;
static_assert(kUpdateChunk / kStride <= 64);

// Calls body(offset, sums) for each stride of `count` numbers; a body works on kStride of them.
template <typename Body>
inline double over_strides(int64_t count, const Body& body) {
  F32 sums[kSums] = {fill(0), fill(0), fill(0), fill(0)};
  for (int64_t offset = 0; offset + kStride <= count; offset += kStride) body(offset, sums);
  return sum_fp64((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

// Some numbers of an array in a stride of their own, and back.
struct Padded {
  float values[kStride] = {};

  Padded(const float* from, int64_t count) {
    for (int64_t i = 0; i < count; ++i) values[i] = from[i];
  }
  void copy_to(float* to, int64_t count) const {
    for (int64_t i = 0; i < count; ++i) to[i] = values[i];
  }
};

double exact_sum_of_squares(const float* data, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += static_cast<double>(data[i]) * static_cast<double>(data[i]);
  return sum;
}

// Squares of finite numbers can leave the range of fp32, but not that of fp64.
inline double checked(double sum, const float* data, int64_t count) {
  return sum - sum == 0 ? sum : exact_sum_of_squares(data, count);
}

inline double squares_of_strides(const float* gradient, int64_t count) {
  return over_strides(count, [&](int64_t offset, F32* sums) {
    for (int64_t i = 0; i < kSums; ++i) {
      const F32 g = load(gradient + offset + i * kLanes);
      sums[i] = fma(g, g, sums[i]);
    }
  });
}

double sum_of_squares(const float* gradient, int64_t count) {
  double sum = squares_of_strides(gradient, count);
  if (const int64_t left = count % kStride; left > 0) {
    sum += squares_of_strides(Padded(gradient + count - left, left).values, kStride);
  }
  return checked(sum, gradient, count);
}

inline double adamw_strides(const AdamwTensor& t) {
  const F32 gradient_scale = fill(t.gradient_scale), keep = fill(t.keep), rate = fill(t.rate);
  const F32 take1 = fill(t.take1), beta2 = fill(t.beta2), take2 = fill(t.take2);
  const F32 root_scale = fill(t.root_scale), eps = fill(t.eps);
  return over_strides(t.size, [&](int64_t offset, F32* sums) {
    for (int64_t i = 0; i < kSums; ++i) {
      const int64_t at = offset + i * kLanes;
      const F32 raw = load(t.gradient + at);
      sums[i] = fma(raw, raw, sums[i]);
      const F32 g = raw * gradient_scale;
      const F32 old_m = load(t.exp_avg + at);
      const F32 m = fma(g - old_m, take1, old_m);
      const F32 v = fma(g * g, take2, load(t.exp_avg_sq + at) * beta2);
      const F32 change = quotient(m, fma(root(v), root_scale, eps));
      store(t.exp_avg + at, m);
      store(t.exp_avg_sq + at, v);
      store(t.parameter + at, fnma(rate, change, load(t.parameter + at) * keep));
    }
  });
}

double adamw(const AdamwTensor& chunk) {
  double sum = adamw_strides(chunk);
  if (const int64_t left = chunk.size % kStride; left > 0) {
    const int64_t from = chunk.size - left;
    Padded parameter(chunk.parameter + from, left), gradient(chunk.gradient + from, left);
    Padded m(chunk.exp_avg + from, left), v(chunk.exp_avg_sq + from, left);
    AdamwTensor rest = chunk;
    rest.parameter = parameter.values;
    rest.gradient = gradient.values;
    rest.exp_avg = m.values;
    rest.exp_avg_sq = v.values;
    rest.size = kStride;
    sum += adamw_strides(rest);
    parameter.copy_to(chunk.parameter + from, left);
    m.copy_to(chunk.exp_avg + from, left);
    v.copy_to(chunk.exp_avg_sq + from, left);
  }
  return checked(sum, chunk.gradient, chunk.size);
}

enum class Momentum { kNone, kPlain, kNesterov };

template <Momentum kMomentum>
inline double sgd_strides(const SgdTensor& t) {
  const F32 gradient_scale = fill(t.gradient_scale), lr = fill(t.lr);
  const F32 decay = fill(t.weight_decay), momentum = fill(t.momentum), take = fill(t.take);
  return over_strides(t.size, [&](int64_t offset, F32* sums) {
    for (int64_t i = 0; i < kSums; ++i) {
      const int64_t at = offset + i * kLanes;
      const F32 raw = load(t.gradient + at);
      sums[i] = fma(raw, raw, sums[i]);
      const F32 p = load(t.parameter + at);
      const F32 g = fma(decay, p, raw * gradient_scale);
      F32 change = g;
      if constexpr (kMomentum != Momentum::kNone) {
        const F32 b = fma(momentum, load(t.momentum_buffer + at), take * g);
        store(t.momentum_buffer + at, b);
        change = kMomentum == Momentum::kNesterov ? fma(momentum, b, g) : b;
      }
      store(t.parameter + at, fnma(lr, change, p));
    }
  });
}

inline double sgd_strides(const SgdTensor& t) {
  if (t.momentum_buffer == nullptr) return sgd_strides<Momentum::kNone>(t);
  return t.nesterov ? sgd_strides<Momentum::kNesterov>(t) : sgd_strides<Momentum::kPlain>(t);
}

double sgd(const SgdTensor& chunk) {
  double sum = sgd_strides(chunk);
  if (const int64_t left = chunk.size % kStride; left > 0) {
    const int64_t from = chunk.size - left;
    const bool has_momentum = chunk.momentum_buffer != nullptr;
    Padded parameter(chunk.parameter + from, left), gradient(chunk.gradient + from, left);
    Padded buffer(has_momentum ? chunk.momentum_buffer + from : nullptr, has_momentum ? left : 0);
    SgdTensor rest = chunk;
    rest.parameter = parameter.values;
    rest.gradient = gradient.values;
    if (has_momentum) rest.momentum_buffer = buffer.values;
    rest.size = kStride;
    sum += sgd_strides(rest);
    parameter.copy_to(chunk.parameter + from, left);
    if (has_momentum) buffer.copy_to(chunk.momentum_buffer + from, left);
  }
  return checked(sum, chunk.gradient, chunk.size);
}

// The numbers of a chunk in fp32, which stay in the core's first cache.
struct Widened {
  float values[kUpdateChunk];

  Widened(const Bf16* from, int64_t count) {
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) store(values + i, load(from + i));
    if (i < count) store(values + i, load(from + i, count - i), count - i);
  }
};

void narrow(const float* from, Bf16* to, int64_t count) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(to + i, load(from + i));
  if (i < count) store(to + i, load(from + i, count - i), count - i);
}

template <typename Tensor, double (*kUpdate)(const Tensor&)>
double update_with_shadow(const Tensor& chunk) {
  const double sum = kUpdate(chunk);
  if (chunk.shadow != nullptr) narrow(chunk.parameter, chunk.shadow, chunk.size);
  return sum;
}

template <typename Tensor, double (*kUpdate)(const Tensor&)>
double update(const Tensor& chunk) {
  if (chunk.bf16_gradient == nullptr) return update_with_shadow<Tensor, kUpdate>(chunk);
  const Widened gradient(chunk.bf16_gradient, chunk.size);
  Tensor wide = chunk;
  wide.gradient = gradient.values;
  return update_with_shadow<Tensor, kUpdate>(wide);
}

double sum_of_squares(const ConstArray& chunk) {
  if (chunk.bf16_data == nullptr) return sum_of_squares(chunk.data, chunk.size);
  return sum_of_squares(Widened(chunk.bf16_data, chunk.size).values, chunk.size);
}

}  // namespace

template <>
UpdateBodies make_bodies<UpdateBodies, kIsa>() {
  return {.adamw = update<AdamwTensor, adamw>,
          .sgd = update<SgdTensor, sgd>,
          .sum_of_squares = sum_of_squares};
}

}  // namespace gallop::kernel
