#pragma once

// Reductions of generated kernels for GPUs; behind loop_cuda.h.

namespace gallop_cuda {

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
