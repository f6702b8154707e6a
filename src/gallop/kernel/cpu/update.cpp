#include "gallop/kernel/cpu/update.h"

#include "gallop/kernel/cpu/integers.h"
#include "gallop/kernel/cpu/round_weights.h"
#include "gallop/kernel/cpu/simd_ieee.h"
#include "gallop/kernel/cpu/state_codes.h"

namespace gallop::kernel {
namespace {

// Functions that rules use in addition to simd.h.
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
inline void add_strides(int64_t count, F32* sums, const Body& body) {
  for (int64_t offset = 0; offset + kStride <= count; offset += kStride) body(offset, sums);
}
template <typename Body>
inline double over_strides(int64_t count, const Body& body) {
  F32 sums[kSums] = {fill(0), fill(0), fill(0), fill(0)};
  add_strides(count, sums, body);
  return total(sums);
}

// Some elements of an array, padded to a stride, and back.
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
  const bool is_finite = sum - sum == 0;  // NOLINT(misc-redundant-expression)
  return is_finite ? sum : exact_sum_of_squares(data, count);
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

// What over_strides() takes.
template <typename Rule>
inline auto update_stride(const UpdateTensor& t, const Factors<Rule>& factors) {
  return [&](int64_t offset, F32* sums) {
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
  };
}

template <typename Rule>
inline double update_strides(const UpdateTensor& t) {
  const Factors<Rule> factors(t);
  return over_strides(t.size, update_stride<Rule>(t, factors));
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

// The last elements of a chunk, padded to a stride.
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

// The elements of a chunk in fp32, which stay in the core's L1 cache.
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
  if (chunk.bf16_copy != nullptr) narrow(chunk.parameter, chunk.bf16_copy, chunk.size);
  return checked(sum, chunk.gradient, chunk.size);
}

// Elements of a chunk that share a scale, with their states in fp32.
template <typename Rule>
struct Block {
  UpdateTensor tensor;
  float states[Rule::kStates][kStateBlock];
  // For the last block, which may be smaller.
  uint8_t padded[Rule::kStates][kStateBlock];
  int64_t number;

  Block(const UpdateTensor& chunk, int64_t from) : tensor(chunk), number(from / kStateBlock) {
    tensor.size = least(kStateBlock, chunk.size - from);
    tensor.parameter += from;
    tensor.gradient += from;
    each_state([&](auto is_signed, int k) {
      const uint8_t* const codes = codes_of(chunk, k);
      if (codes == padded[k]) {
        for (uint8_t& code : padded[k]) code = 0;
        copy(chunk.codes[k] + from, padded[k]);
      }
      tensor.states[k] = states[k];
      const F32 scale = fill(chunk.scales[k][number]);
      for (int64_t i = 0; i < kStateBlock; i += kLanes) {
        store(states[k] + i, decoded<decltype(is_signed)::kValue>(codes + i, scale));
      }
    });
  }

  void write(const UpdateTensor& chunk) {
    each_state([&](auto is_signed, int k) {
      uint8_t* const codes = codes_of(chunk, k);
      for (int64_t i = tensor.size; i < kStateBlock; ++i) states[k][i] = 0;
      F32 most = fill(0);
      for (int64_t i = 0; i < kStateBlock; i += kLanes) {
        most = max(without_sign(load(states[k] + i)), most);
      }
      const float scale = largest(most);
      chunk.scales[k][number] = scale;
      const F32 inverse = fill(scale > 0 ? 1 / scale : 0);
      for (int64_t i = 0; i < kStateBlock; i += kLanes) {
        encode<decltype(is_signed)::kValue>(load(states[k] + i), inverse, codes + i);
      }
      if (codes == padded[k]) copy(padded[k], chunk.codes[k] + number * kStateBlock);
    });
  }

 private:
  template <bool kOf>
  struct Constant {
    static constexpr bool kValue = kOf;
  };
  template <typename Body>
  static void each_state(const Body& body) {
    for (int k = 0; k < Rule::kStates; ++k) {
      if ((EightBits<Rule>::kSigns >> k & 1) != 0) {
        body(Constant<true>(), k);
      } else {
        body(Constant<false>(), k);
      }
    }
  }
  uint8_t* codes_of(const UpdateTensor& chunk, int k) {
    return tensor.size == kStateBlock ? chunk.codes[k] + number * kStateBlock : padded[k];
  }
  void copy(const uint8_t* from, uint8_t* to) const {
    for (int64_t i = 0; i < tensor.size; ++i) to[i] = from[i];
  }
};

template <typename Rule>
double update_8_bits(const UpdateTensor& chunk) {
  const Factors<Rule> factors(chunk);
  F32 sums[kSums] = {fill(0), fill(0), fill(0), fill(0)};
  double rest_sum = 0;
  for (int64_t from = 0; from < chunk.size; from += kStateBlock) {
    Block<Rule> block(chunk, from);
    add_strides(block.tensor.size, sums, update_stride<Rule>(block.tensor, factors));
    if (const int64_t left = block.tensor.size % kStride; left > 0) {
      const Rest<Rule> rest(block.tensor, left);
      rest_sum = update_strides<Rule>(rest.tensor);
      rest.copy_back(block.tensor, left);
    }
    block.write(chunk);
  }
  if (chunk.bf16_copy != nullptr) narrow(chunk.parameter, chunk.bf16_copy, chunk.size);
  return checked(total(sums) + rest_sum, chunk.gradient, chunk.size);
}

// The padding of the last stride is 0, which adds 0 to the sums.
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
auto with_wide_gradient(const UpdateTensor& chunk) {
  if (chunk.bf16_gradient == nullptr) return kPass(chunk);
  const Widened gradient(chunk.bf16_gradient, chunk.size);
  UpdateTensor wide = chunk;
  wide.gradient = gradient.values;
  return kPass(wide);
}

// Computes bf16 parameters in fp32, in the core's L1 cache.
template <auto kPass, bool kUpdates>
auto in_fp32(const UpdateTensor& chunk) {
  if (chunk.bf16_parameter == nullptr) return with_wide_gradient<kPass>(chunk);
  float values[kUpdateChunk];
  widen_weights(chunk, values);
  UpdateTensor wide = chunk;
  wide.parameter = values;
  const auto sums = with_wide_gradient<kPass>(wide);
  if constexpr (kUpdates) round_weights(values, chunk);
  return sums;
}

double sum_of_squares(const ConstArray& chunk) {
  if (chunk.bf16_data == nullptr) return sum_of_squares(chunk.data, chunk.size);
  return sum_of_squares(Widened(chunk.bf16_data, chunk.size).values, chunk.size);
}

template <int kNumber>
void fill_in(UpdateKernels& kernels) {
  if constexpr (kNumber < UpdateRules::kCount) {
    using Rule = typename RuleOf<kNumber, UpdateRules>::Type;
    UpdateKernelFunction& body = kernels.rules[kNumber];
    body.update = in_fp32<update_fp32<Rule>, true>;
    if constexpr (EightBits<Rule>::kSigns >= 0) {
      body.update_8_bits = in_fp32<update_8_bits<Rule>, true>;
    }
    if constexpr (Rule::kMeasures != Measures::kNothing) {
      body.measure = in_fp32<measure_fp32<Rule>, false>;
    }
    fill_in<kNumber + 1>(kernels);
  }
}

}  // namespace

template <>
UpdateKernels make_kernels<UpdateKernels, kIsa>() {
  UpdateKernels kernels{};
  kernels.sum_of_squares = sum_of_squares;
  fill_in<0>(kernels);
  return kernels;
}

}  // namespace gallop::kernel
