#pragma once

// What generated kernels for GPUs are written in. Given to NVRTC as it is, hence without includes;
// the tests compile it for the CPU (tests/fixtures/cuda_on_cpu.h). One number is a float, double,
// Int64 or bool. Functions are CUDA's of the number's own width, as in LibTorch's kernels.

namespace gallop_cuda {

using Int64 = long long;
struct Bf16 {
  unsigned short bits;
};

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

// A bool is a byte; bf16 is rounded to nearest even.
__device__ inline float read(float a) { return a; }
__device__ inline float read(Bf16 a) {
  return __uint_as_float(static_cast<unsigned>(a.bits) << 16);
}
__device__ inline double read(double a) { return a; }
__device__ inline bool read(unsigned char a) { return a != 0; }
__device__ inline Int64 read(int a) { return a; }
__device__ inline Int64 read(Int64 a) { return a; }
__device__ inline Bf16 rounded(float a) {
  const unsigned bits = __float_as_uint(a);
  if (a != a) return {static_cast<unsigned short>(bits >> 16 | 0x40)};
  return {static_cast<unsigned short>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
__device__ inline void write(float& to, float a) { to = a; }
__device__ inline void write(Bf16& to, float a) { to = rounded(a); }
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

// Ends of the formats, and NaN's place among them is decided by op_maximum and op_minimum.
__device__ inline void set_lowest(float& a) { a = __uint_as_float(0xff800000U); }
__device__ inline void set_lowest(double& a) { a = __longlong_as_double(0xfff0000000000000LL); }
__device__ inline void set_lowest(Int64& a) { a = wrapped(1ULL << 63); }
__device__ inline void set_highest(float& a) { a = __uint_as_float(0x7f800000U); }
__device__ inline void set_highest(double& a) { a = __longlong_as_double(0x7ff0000000000000LL); }
__device__ inline void set_highest(Int64& a) { a = wrapped((1ULL << 63) - 1); }

struct Plus {
  template <typename T>
  __device__ static void start(T& a) {
    a = 0;
  }
  template <typename T>
  __device__ static T join(T a, T b) {
    return op_add(a, b);
  }
};
struct Larger {
  template <typename T>
  __device__ static void start(T& a) {
    set_lowest(a);
  }
  template <typename T>
  __device__ static T join(T a, T b) {
    return op_maximum(a, b);
  }
};
struct Smaller {
  template <typename T>
  __device__ static void start(T& a) {
    set_highest(a);
  }
  template <typename T>
  __device__ static T join(T a, T b) {
    return op_minimum(a, b);
  }
};

/// What one thread has of a reduction. Sums of fp32 are taken in parts, and in fp64 of those: a
/// part is closed after every 32 numbers.
template <typename Kind, typename T>
struct Total {
  T all;
  __device__ Total() { Kind::start(all); }
  __device__ void add(T a) { all = Kind::join(all, a); }
  __device__ void close_part() {}
  __device__ T result() const { return all; }
  __device__ T total() const { return all; }
};
template <>
struct Total<Plus, float> {
  float part = 0;
  double whole = 0;
  __device__ void add(float a) { part += a; }
  __device__ void close_part() {
    whole += static_cast<double>(part);
    part = 0;
  }
  __device__ float result() const { return static_cast<float>(total()); }
  __device__ double total() const { return whole + static_cast<double>(part); }
};

/// Joins one number of each thread that works on a row: a warp, or the whole block. All get the
/// same bits.
template <typename Kind, typename T>
__device__ inline T join_row(T a, void* shared) {
  for (int step = 16; step > 0; step /= 2) {
    a = Kind::join(a, __shfl_down_sync(0xffffffffU, a, step));
  }
  a = __shfl_sync(0xffffffffU, a, 0);
  const unsigned warps = blockDim.x / 32;
  if (warps == 1) return a;
  T* const all = static_cast<T*>(shared);
  if (threadIdx.x % 32 == 0) all[threadIdx.x / 32] = a;
  __syncthreads();
  a = all[0];
  for (unsigned warp = 1; warp < warps; ++warp) a = Kind::join(a, all[warp]);
  __syncthreads();
  return a;
}

/// Waits for the threads that work on a row.
__device__ inline void wait_for_row() {
  if (blockDim.x == 32) {
    __syncwarp();
  } else {
    __syncthreads();
  }
}

/// Joins the numbers of threads above each other; those of threadIdx.y 0 get the result. `shared`
/// has a place for each thread of the block.
template <typename Kind, typename T>
__device__ inline T join_column(T a, void* shared) {
  T* const own = static_cast<T*>(shared) + threadIdx.y * blockDim.x + threadIdx.x;
  *own = a;
  __syncthreads();
  for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
    if (threadIdx.y < half) *own = Kind::join(*own, own[half * blockDim.x]);
    __syncthreads();
  }
  a = *own;
  __syncthreads();
  return a;
}

/// Joins the numbers of all threads of the block, of which there are a power of 2; those of
/// threadIdx 0 get the result. `shared` has a place for each.
template <typename Kind, typename T>
__device__ inline T join_block(T a, void* shared) {
  const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
  T* const own = static_cast<T*>(shared) + thread;
  *own = a;
  __syncthreads();
  for (unsigned half = blockDim.x * blockDim.y / 2; half > 0; half /= 2) {
    if (thread < half) *own = Kind::join(*own, own[half]);
    __syncthreads();
  }
  a = *own;
  __syncthreads();
  return a;
}

}  // namespace gallop_cuda
