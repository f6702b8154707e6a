#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gallop/compile/codegen/loop_plan.h"

namespace gallop::compile {

/// How a loop is distributed over the threads of a GPU. Depends on shapes only, never on the GPU,
/// so that reductions have the same order everywhere.
struct CudaPlan {
  enum class Form {
    kPointwise,  ///< Threads take groups of elements wherever they lie.
    kRows,       ///< A warp or a block for each row.
    kColumns,    ///< Blocks of columns times blocks of rows; no value is a scalar of a row.
    kBoth,       ///< A block for each block of rows, a row at a time for each row of threads.
  };

  LoopPlan loop;
  Form form = Form::kPointwise;
  int width = 1;  ///< Adjacent elements that a thread processes at once.
  /// Groups that a thread loads before it computes the first, so that memory is kept busy.
  int turns = 1;
  int resident = 0;  ///< With several turns, the blocks for which a multiprocessor has registers.
  bool long_index = false;                   ///< Whether positions exceed 32 bits.
  int64_t groups = 1;                        ///< Number of groups of `width` elements in a row.
  std::array<uint32_t, 2> block{1, 1};       ///< Threads.
  std::array<uint32_t, 2> grid{1, 1};        ///< Blocks.
  int64_t block_rows = 1, blocks = 1;        ///< Blocks of rows, with column reductions.
  std::array<uint32_t, 2> last_block{1, 1};  ///< Of the kernel that finishes column reductions.
  uint32_t last_grid = 1;
  uint32_t total_block = 256;  ///< Of the kernel that finishes totals, a single block.
  /// Column sums in the shared memory of a row of threads; 0: they are in `totals`.
  int64_t shared_columns = 0;
};

/// `busy_threads` is the number of threads that occupies a large GPU: with fewer, each thread
/// processes fewer elements at once. With 16 times as many, it processes more.
CudaPlan cuda_plan(const LoopProgram& program, int64_t busy_threads = 16384);

/// Positions in the 64-bit slots that are a kernel's only argument: addresses first, then the bits
/// of numbers.
struct CudaSlots {
  explicit CudaSlots(const CudaPlan& plan);
  size_t inputs, outputs, columns_of, totals_of, sizes, strides, numbers;
  size_t rows, columns, block_rows, blocks, parts;
  size_t divisors;  ///< For `groups`, for the size of each dimension, and the last in groups.
  size_t count;
};

/// The slots for these addresses; `totals` has total_bytes(plan).
std::vector<uint64_t> cuda_arguments(const CudaPlan& plan, const std::vector<const void*>& inputs,
                                     const std::vector<void*>& outputs, void* totals);

/// Bytes of scratch memory on the GPU, for column reductions and totals.
int64_t total_bytes(const CudaPlan& plan);

/// Whether all addresses are aligned for accesses of `width` adjacent elements.
bool is_aligned(const CudaPlan& plan, const std::vector<const void*>& inputs,
                const std::vector<void*>& outputs);

}  // namespace gallop::compile
