#pragma once

// What generated kernels for GPUs are written in. Given to NVRTC as it is, hence without includes;
// the tests compile it for the CPU (tests/fixtures/cuda_on_cpu.h). One number is a float, double,
// Int64 or bool. Functions are CUDA's of the number's own width, as in LibTorch's kernels.

namespace gallop_cuda {

using Int64 = long long;
struct Bf16 {
  unsigned short bits;
};
struct Fp16 {
  unsigned short bits;
};

#ifdef __CUDACC_RTC__  // The tests have these of their own.
__device__ inline float fp16_number(unsigned short bits) {
  float a;
  asm("cvt.f32.f16 %0, %1;" : "=f"(a) : "h"(bits));
  return a;
}
__device__ inline unsigned short fp16_bits(float a) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(a));
  return bits;
}
#endif

/// Division by a number that the host knows, by a multiplication (Granlund and Montgomery,
/// "Division by invariant integers using multiplication", 1994): `slot` has the factor below the
/// shift, and dividends are less than 2^31. 64-bit positions are divided as they are.
template <typename Index>
struct Divisor {
  Index number;
  unsigned factor, shift;

  __device__ Divisor(Index number, unsigned long long slot)
      : number(number),
        factor(static_cast<unsigned>(slot)),
        shift(static_cast<unsigned>(slot >> 32)) {}
};
__device__ inline int operator/(int a, const Divisor<int>& b) {
  const auto number = static_cast<unsigned>(a);
  const auto high = static_cast<unsigned>(static_cast<unsigned long long>(number) * b.factor >> 32);
  return static_cast<int>((high + number) >> b.shift);
}
__device__ inline Int64 operator/(Int64 a, const Divisor<Int64>& b) { return a / b.number; }

/// Numbers side by side in memory, in pieces of up to 16 bytes.
template <typename T, int kWidth>
struct alignas(sizeof(T) * kWidth < 16 ? sizeof(T) * kWidth : 16) Pack {
  T v[kWidth];
};
template <bool kAligned, int kWidth, typename T>
__device__ inline Pack<T, kWidth> fetch(const T* p) {
  if constexpr (kAligned) return *reinterpret_cast<const Pack<T, kWidth>*>(p);
  Pack<T, kWidth> a;
  for (int u = 0; u < kWidth; ++u) a.v[u] = p[u];
  return a;
}
template <bool kAligned, int kWidth, typename T>
__device__ inline void deposit(T* p, const Pack<T, kWidth>& a) {
  if constexpr (kAligned) {
    *reinterpret_cast<Pack<T, kWidth>*>(p) = a;
  } else {
    for (int u = 0; u < kWidth; ++u) p[u] = a.v[u];
  }
}

// What a kernel is given, in 64 bits each.
template <typename T, typename Slots>
__device__ inline T* address(const Slots& a, int at) {
  return reinterpret_cast<T*>(a.slots[at]);
}
template <typename Slots>
__device__ inline double number(const Slots& a, int at) {
  return __longlong_as_double(static_cast<Int64>(a.slots[at]));
}

// A bool is a byte; bf16 and fp16 are rounded to nearest even.
__device__ inline float read(float a) { return a; }
__device__ inline float read(Bf16 a) {
  return __uint_as_float(static_cast<unsigned>(a.bits) << 16);
}
__device__ inline float read(Fp16 a) { return fp16_number(a.bits); }
__device__ inline double read(double a) { return a; }
__device__ inline bool read(unsigned char a) { return a != 0; }
__device__ inline Int64 read(int a) { return a; }
__device__ inline Int64 read(Int64 a) { return a; }
__device__ inline Bf16 rounded(float a) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  // Conversions of one number have a quarter of the throughput of those of two.
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(0.0F), "f"(a));
  return {static_cast<unsigned short>(pair)};
#else
  const unsigned bits = __float_as_uint(a);
  if (a != a) return {static_cast<unsigned short>(bits >> 16 | 0x40)};
  return {static_cast<unsigned short>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
#endif
}
__device__ inline void write(float& to, float a) { to = a; }
__device__ inline void write(Bf16& to, float a) { to = rounded(a); }
// For numbers that bf16 represents: two of them are packed by one instruction.
__device__ inline void write_exact(Bf16& to, float a) {
  to.bits = static_cast<unsigned short>(__float_as_uint(a) >> 16);
}
__device__ inline void write(Fp16& to, float a) { to.bits = fp16_bits(a); }
__device__ inline void write(double& to, double a) { to = a; }
__device__ inline void write(unsigned char& to, bool a) { to = a ? 1 : 0; }
__device__ inline void write(int& to, Int64 a) { to = static_cast<int>(a); }
__device__ inline void write(Int64& to, Int64 a) { to = a; }

template <typename T>
__device__ inline float cast_fp32(T a) {
  return static_cast<float>(a);
}
template <typename T>
__device__ inline float cast_bf16(T a) {
  return read(rounded(static_cast<float>(a)));
}
template <typename T>
__device__ inline float cast_fp16(T a) {
  return fp16_number(fp16_bits(static_cast<float>(a)));
}
template <typename T>
__device__ inline double cast_fp64(T a) {
  return static_cast<double>(a);
}
template <typename T>
__device__ inline Int64 cast_int64(T a) {
  return static_cast<Int64>(a);
}
template <typename T>
__device__ inline Int64 cast_int32(T a) {
  return static_cast<int>(static_cast<Int64>(a));
}
template <typename T>
__device__ inline bool cast_bool(T a) {
  return a != 0;
}

// Integers wrap around.
__device__ inline Int64 wrapped(unsigned long long a) { return static_cast<Int64>(a); }
__device__ inline unsigned long long bits_of(Int64 a) { return static_cast<unsigned long long>(a); }

template <typename T>
__device__ inline T op_negate(T a) {
  return -a;
}
__device__ inline Int64 op_negate(Int64 a) { return wrapped(0 - bits_of(a)); }
__device__ inline float op_abs(float a) { return fabs(a); }
__device__ inline double op_abs(double a) { return fabs(a); }
__device__ inline Int64 op_abs(Int64 a) { return a < 0 ? op_negate(a) : a; }
template <typename T>
__device__ inline T op_sign(T a) {
  return static_cast<T>((a > 0) - (a < 0));
}
template <typename T>
__device__ inline T op_relu(T a) {
  return a < 0 ? 0 : a;
}
template <typename T>
__device__ inline T op_floor(T a) {
  return floor(a);
}
template <typename T>
__device__ inline T op_ceil(T a) {
  return ceil(a);
}
template <typename T>
__device__ inline T op_trunc(T a) {
  return trunc(a);
}
template <typename T>
__device__ inline T op_round(T a) {
  return nearbyint(a);
}
template <typename T>
__device__ inline T op_sqrt(T a) {
  return sqrt(a);
}
template <typename T>
__device__ inline T op_rsqrt(T a) {
  return 1 / sqrt(a);
}
template <typename T>
__device__ inline T op_reciprocal(T a) {
  return 1 / a;
}
template <typename T>
__device__ inline T op_exp(T a) {
  return exp(a);
}
template <typename T>
__device__ inline T op_expm1(T a) {
  return expm1(a);
}
template <typename T>
__device__ inline T op_log(T a) {
  return log(a);
}
template <typename T>
__device__ inline T op_log1p(T a) {
  return log1p(a);
}
template <typename T>
__device__ inline T op_tanh(T a) {
  return tanh(a);
}
template <typename T>
__device__ inline T op_sigmoid(T a) {
  return 1 / (1 + exp(-a));
}
template <typename T>
__device__ inline T op_erf(T a) {
  return erf(a);
}
template <typename T>
__device__ inline T op_exp2(T a) {
  return exp2(a);
}
template <typename T>
__device__ inline T op_log2(T a) {
  return log2(a);
}
template <typename T>
__device__ inline T op_log10(T a) {
  return log10(a);
}
template <typename T>
__device__ inline T op_sin(T a) {
  return sin(a);
}
template <typename T>
__device__ inline T op_cos(T a) {
  return cos(a);
}
template <typename T>
__device__ inline T op_tan(T a) {
  return tan(a);
}
template <typename T>
__device__ inline T op_asin(T a) {
  return asin(a);
}
template <typename T>
__device__ inline T op_acos(T a) {
  return acos(a);
}
template <typename T>
__device__ inline T op_atan(T a) {
  return atan(a);
}
template <typename T>
__device__ inline T op_sinh(T a) {
  return sinh(a);
}
template <typename T>
__device__ inline T op_cosh(T a) {
  return cosh(a);
}
template <typename T>
__device__ inline T op_erfc(T a) {
  return erfc(a);
}
template <typename T>
__device__ inline T op_add(T a, T b) {
  return a + b;
}
template <typename T>
__device__ inline T op_subtract(T a, T b) {
  return a - b;
}
template <typename T>
__device__ inline T op_multiply(T a, T b) {
  return a * b;
}
__device__ inline Int64 op_add(Int64 a, Int64 b) { return wrapped(bits_of(a) + bits_of(b)); }
__device__ inline Int64 op_subtract(Int64 a, Int64 b) { return wrapped(bits_of(a) - bits_of(b)); }
__device__ inline Int64 op_multiply(Int64 a, Int64 b) { return wrapped(bits_of(a) * bits_of(b)); }
template <typename T>
__device__ inline T op_divide(T a, T b) {
  return a / b;
}
template <typename T>
__device__ inline T op_power(T a, T b) {
  return pow(a, b);
}
template <typename T>
__device__ inline T op_atan2(T a, T b) {
  return atan2(a, b);
}
template <typename T>
__device__ inline T op_maximum(T a, T b) {
  return a != a || a > b ? a : b;
}
template <typename T>
__device__ inline T op_minimum(T a, T b) {
  return a != a || a < b ? a : b;
}
template <typename T>
__device__ inline T op_clamp_min(T a, T b) {
  return b > a ? b : a;
}
template <typename T>
__device__ inline T op_clamp_max(T a, T b) {
  return b < a ? b : a;
}
template <typename T>
__device__ inline bool op_equal(T a, T b) {
  return a == b;
}
template <typename T>
__device__ inline bool op_not_equal(T a, T b) {
  return a != b;
}
template <typename T>
__device__ inline bool op_less(T a, T b) {
  return a < b;
}
template <typename T>
__device__ inline bool op_less_equal(T a, T b) {
  return a <= b;
}
template <typename T>
__device__ inline bool op_greater(T a, T b) {
  return a > b;
}
template <typename T>
__device__ inline bool op_greater_equal(T a, T b) {
  return a >= b;
}
__device__ inline bool op_not(bool a) { return !a; }
__device__ inline bool op_and(bool a, bool b) { return a && b; }
__device__ inline bool op_or(bool a, bool b) { return a || b; }
__device__ inline bool op_xor(bool a, bool b) { return a != b; }

}  // namespace gallop_cuda
