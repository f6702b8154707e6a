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

/// Joins one number of each thread of a warp. All get the same bits.
template <typename Kind, typename T>
__device__ inline T join_warp(T a) {
  for (int step = 16; step > 0; step /= 2) {
    a = Kind::join(a, __shfl_down_sync(0xffffffffU, a, step));
  }
  return __shfl_sync(0xffffffffU, a, 0);
}

/// Joins one number of each thread of the block, of which there is a multiple of 32. All get the
/// same bits. `shared` has a place for each warp.
template <typename Kind, typename T>
__device__ inline T join_block(T a, void* shared) {
  a = join_warp<Kind>(a);
  const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
  const unsigned warps = blockDim.x * blockDim.y / 32;
  T* const all = static_cast<T*>(shared);
  if (thread % 32 == 0) all[thread / 32] = a;
  __syncthreads();
  a = all[0];
  for (unsigned warp = 1; warp < warps; ++warp) a = Kind::join(a, all[warp]);
  __syncthreads();
  return a;
}

/// The same for the threads that work on a row: a warp, or the whole block.
template <typename Kind, typename T>
__device__ inline T join_row(T a, void* shared) {
  return blockDim.x == 32 ? join_warp<Kind>(a) : join_block<Kind>(a, shared);
}

/// Waits for the threads that work on a row.
__device__ inline void wait_for_row() {
  if (blockDim.x == 32) {
    __syncwarp();
  } else {
    __syncthreads();
  }
}

/// Joins kWidth numbers of each thread with those of the threads above and below it, and calls
/// store(column, number), threadIdx.x * kWidth + u being the column of number u. The block has a
/// multiple of 32 threads, and blockDim.x is a power of 2 of at most 32. `shared` has kWidth *
/// blockDim.x places for each warp.
template <typename Kind, int kWidth, typename T, typename Store>
__device__ inline void join_columns(T (&a)[kWidth], void* shared, Store store) {
  // Rows of threads in one warp.
  for (unsigned step = 16; step >= blockDim.x; step /= 2) {
#pragma unroll
    for (int u = 0; u < kWidth; ++u) {
      a[u] = Kind::join(a[u], __shfl_down_sync(0xffffffffU, a[u], step));
    }
  }
  const unsigned threads = blockDim.x * blockDim.y, columns = kWidth * blockDim.x;
  const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
  T* const all = static_cast<T*>(shared);
  if (thread % 32 < blockDim.x) {
#pragma unroll
    for (int u = 0; u < kWidth; ++u) {
      all[thread / 32 * columns + u * blockDim.x + threadIdx.x] = a[u];
    }
  }
  __syncthreads();
  for (unsigned at = thread; at < columns; at += threads) {
    T joined = all[at];
    for (unsigned warp = 1; warp < threads / 32; ++warp) {
      joined = Kind::join(joined, all[warp * columns + at]);
    }
    store(at % blockDim.x * kWidth + at / blockDim.x, joined);
  }
  __syncthreads();
}

}  // namespace gallop_cuda
