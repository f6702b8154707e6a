#include "gallop/kernel/cpu/update.h"

#include "gallop/kernel/cpu/simd_more.h"

namespace gallop::kernel {
namespace {

// What rules use besides simd.h.
inline F32 magnitude(const F32& a) { return without_sign(a); }
inline F32 sign(const F32& a) {
  const F32 zero = fill(0);
  return select(a > zero, fill(1), select(zero > a, fill(-1), a));
}

// Vectors that sum at once, so that an addition need not wait for the one before it. A lane sums at
// most 64 squares of a chunk before fp64 takes over, which keeps the error near one rounding.
constexpr int64_t kSums = 4;
constexpr int64_t kStride = kSums * kLanes;
static_assert(kUpdateChunk / kStride <= 64);

inline double total(const F32* sums) { return sum_fp64((sums[0] + sums[1]) + (sums[2] + sums[3])); }

// Calls body(offset, sums) for each stride of `count` numbers; a body works on kStride of them.
template <typename Body>
inline double over_strides(int64_t count, const Body& body) {
  F32 sums[kSums] = {fill(0), fill(0), fill(0), fill(0)};
  for (int64_t offset = 0; offset + kStride <= count; offset += kStride) body(offset, sums);
  return total(sums);
}

// Some numbers of an array in a stride of their own, and back.
struct Padded {
  float values[kStride] = {};

  void copy_from(const float* from, int64_t count) {
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
    Padded rest;
    rest.copy_from(gradient + count - left, left);
    sum += squares_of_strides(rest.values, kStride);
  }
  return checked(sum, gradient, count);
}

// What a rule is given of a vector, and back.
template <typename Rule>
struct Numbers {
  F32 p, s[Rule::kStates > 0 ? Rule::kStates : 1];

  Numbers(const UpdateTensor& t, int64_t at) : p(load(t.parameter + at)) {
    for (int k = 0; k < Rule::kStates; ++k) s[k] = load(t.states[k] + at);
  }
  void store_states(const UpdateTensor& t, int64_t at) const {
    for (int k = 0; k < Rule::kStates; ++k) store(t.states[k] + at, s[k]);
  }
};

template <typename Rule>
struct Factors {
  F32 f[Rule::kFactors], ratio, gradient_scale;

  explicit Factors(const UpdateTensor& t)
      : ratio(fill(t.factors[Rule::kFactors])), gradient_scale(fill(t.gradient_scale)) {
    for (int i = 0; i < Rule::kFactors; ++i) f[i] = fill(t.factors[i]);
  }
};

template <typename Rule>
inline double update_strides(const UpdateTensor& t) {
  const Factors<Rule> factors(t);
  return over_strides(t.size, [&](int64_t offset, F32* sums) {
    for (int64_t i = 0; i < kSums; ++i) {
      const int64_t at = offset + i * kLanes;
      const F32 raw = load(t.gradient + at);
      sums[i] = fma(raw, raw, sums[i]);
      Numbers<Rule> n(t, at);
      if constexpr (Rule::kMeasures == Measures::kNothing) {
        Rule::apply(raw * factors.gradient_scale, n.p, n.s, factors.f);
      } else {
        Rule::apply(raw * factors.gradient_scale, n.p, n.s, factors.f, factors.ratio);
      }
      if constexpr (Rule::kMeasures != Measures::kAndUpdates) n.store_states(t, at);
      store(t.parameter + at, n.p);
    }
  });
}

template <typename Rule>
inline MeasuredSums measure_strides(const UpdateTensor& t) {
  const Factors<Rule> factors(t);
  F32 measured[kSums] = {fill(0), fill(0), fill(0), fill(0)};
  const double parameter = over_strides(t.size, [&](int64_t offset, F32* sums) {
    for (int64_t i = 0; i < kSums; ++i) {
      const int64_t at = offset + i * kLanes;
      Numbers<Rule> n(t, at);
      sums[i] = fma(n.p, n.p, sums[i]);
      const F32 g = load(t.gradient + at) * factors.gradient_scale;
      const F32 m = Rule::measure(g, n.p, n.s, factors.f);
      measured[i] = fma(m, m, measured[i]);
      if constexpr (Rule::kMeasures == Measures::kAndUpdates) n.store_states(t, at);
    }
  });
  return {.parameter = parameter, .measured = total(measured)};
}

// The last numbers of a chunk in a stride of their own.
template <typename Rule>
struct Rest {
  UpdateTensor tensor;
  Padded gradient, parameter, states[Rule::kStates > 0 ? Rule::kStates : 1];

  Rest(const UpdateTensor& chunk, int64_t left) : tensor(chunk) {
    const int64_t from = chunk.size - left;
    gradient.copy_from(chunk.gradient + from, left);
    parameter.copy_from(chunk.parameter + from, left);
    tensor.gradient = gradient.values;
    tensor.parameter = parameter.values;
    for (int k = 0; k < Rule::kStates; ++k) {
      states[k].copy_from(chunk.states[k] + from, left);
      tensor.states[k] = states[k].values;
    }
    tensor.size = kStride;
  }
  void copy_back(const UpdateTensor& chunk, int64_t left) const {
    const int64_t to = chunk.size - left;
    parameter.copy_to(chunk.parameter + to, left);
    for (int k = 0; k < Rule::kStates; ++k) states[k].copy_to(chunk.states[k] + to, left);
  }
};

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

template <typename Rule>
double update_fp32(const UpdateTensor& chunk) {
  double sum = update_strides<Rule>(chunk);
  if (const int64_t left = chunk.size % kStride; left > 0) {
    const Rest<Rule> rest(chunk, left);
    sum += update_strides<Rule>(rest.tensor);
    rest.copy_back(chunk, left);
  }
  if (chunk.shadow != nullptr) narrow(chunk.parameter, chunk.shadow, chunk.size);
  return checked(sum, chunk.gradient, chunk.size);
}

// What is left of a stride counts as 0, whose measure is 0.
template <typename Rule>
MeasuredSums measure_fp32(const UpdateTensor& chunk) {
  MeasuredSums sums = measure_strides<Rule>(chunk);
  if (const int64_t left = chunk.size % kStride; left > 0) {
    const Rest<Rule> rest(chunk, left);
    const MeasuredSums more = measure_strides<Rule>(rest.tensor);
    sums.parameter += more.parameter;
    sums.measured += more.measured;
    if (Rule::kMeasures == Measures::kAndUpdates) rest.copy_back(chunk, left);
  }
  return sums;
}

template <auto kPass>
auto in_fp32(const UpdateTensor& chunk) {
  if (chunk.bf16_gradient == nullptr) return kPass(chunk);
  const Widened gradient(chunk.bf16_gradient, chunk.size);
  UpdateTensor wide = chunk;
  wide.gradient = gradient.values;
  return kPass(wide);
}

double sum_of_squares(const ConstArray& chunk) {
  if (chunk.bf16_data == nullptr) return sum_of_squares(chunk.data, chunk.size);
  return sum_of_squares(Widened(chunk.bf16_data, chunk.size).values, chunk.size);
}

template <int kNumber>
void fill_in(UpdateBodies& bodies) {
  if constexpr (kNumber < UpdateRules::kCount) {
    using Rule = typename RuleOf<kNumber, UpdateRules>::Type;
    UpdateBody& body = bodies.rules[kNumber];
    body.update = in_fp32<update_fp32<Rule>>;
    if constexpr (Rule::kMeasures != Measures::kNothing) body.measure = in_fp32<measure_fp32<Rule>>;
    fill_in<kNumber + 1>(bodies);
  }
}

}  // namespace

template <>
UpdateBodies make_bodies<UpdateBodies, kIsa>() {
  UpdateBodies bodies{};
  bodies.sum_of_squares = sum_of_squares;
  fill_in<0>(bodies);
  return bodies;
}

}  // namespace gallop::kernel
