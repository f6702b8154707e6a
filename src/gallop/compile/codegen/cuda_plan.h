#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gallop/compile/codegen/loop_plan.h"

namespace gallop::compile {

/// How a loop is shared out to the threads of a GPU. Shapes alone decide, never the GPU, so that
/// sums are taken in one order everywhere.
struct CudaPlan {
  enum class Form {
    kPointwise,  ///< Threads take groups of elements wherever they lie.
    kRows,       ///< A warp or a block for each row.
    kColumns,    ///< Blocks of columns times blocks of rows; nothing is one number for a row.
    kBoth,       ///< A block for each block of rows, a row at a time.
  };

  LoopPlan loop;
  Form form = Form::kPointwise;
  int width = 1;                             ///< Neighbors in a row that a thread takes at once.
  bool long_index = false;                   ///< Whether 32 bits do not hold all positions.
  int64_t groups = 1;                        ///< Of `width` neighbors, in a row.
  std::array<uint32_t, 2> block{1, 1};       ///< Threads.
  std::array<uint32_t, 2> grid{1, 1};        ///< Blocks.
  int64_t block_rows = 1, blocks = 1;        ///< Blocks of rows, with column reductions.
  std::array<uint32_t, 2> last_block{1, 1};  ///< Of the kernel that ends column reductions.
  uint32_t last_grid = 1;
  uint32_t total_block = 256;  ///< Of the kernel that ends totals, a single block.
  int64_t shared_columns = 0;  ///< Places for column sums in a block's own memory; 0: in `totals`.
};

/// `busy_threads` are those that a big GPU needs to be busy: with fewer, a thread takes less at
/// once.
CudaPlan cuda_plan(const LoopProgram& program, int64_t busy_threads = 16384);

/// Where a kernel finds what, in the 64-bit slots that are its only argument: addresses, then
/// numbers as their bits.
struct CudaSlots {
  explicit CudaSlots(const CudaPlan& plan);
  size_t inputs, outputs, columns_of, totals_of, sizes, strides, numbers;
  size_t rows, columns, block_rows, blocks, parts;
  size_t count;
};

/// The slots for these addresses; `totals` has total_bytes(plan).
std::vector<uint64_t> cuda_arguments(const CudaPlan& plan, const std::vector<const void*>& inputs,
                                     const std::vector<void*>& outputs, void* totals);

/// Memory on the GPU that the loop needs for itself, for column reductions and totals.
int64_t total_bytes(const CudaPlan& plan);

/// Whether all addresses allow to read and write `width` neighbors at once.
bool is_aligned(const CudaPlan& plan, const std::vector<const void*>& inputs,
                const std::vector<void*>& outputs);

}  // namespace gallop::compile
