#include "gallop/compile/codegen/cuda_plan.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/compile/codegen/op_traits.h"

namespace gallop::compile {

namespace {

constexpr int64_t kWarp = 32;
constexpr int64_t kVectorBytes = 16;
// Maximum number of elements in registers at once, over all arrays.
constexpr int kHeldElements = 64;
// The number of blocks that occupies a large GPU; constant, as sums must not depend on the GPU.
constexpr int64_t kBusyBlocks = 1024;
// That many times the threads that occupy a large GPU are all that it can run at once.
constexpr int64_t kFull = 16;
// Maximum number of bytes in registers at once with several turns, if three or two blocks of 256
// threads are to fit.
constexpr int64_t kHeldByThree = 288, kHeldByTwo = 416;
// From so many cycles on, computing hides what loads take.
constexpr int kLongCycles = 128;
constexpr int64_t kSharedBytes = 40960;
constexpr int64_t kMostBlocks = int64_t{1} << 20;

// With totals, each block leaves a partial total for the last kernel.
int64_t most_blocks(const CudaPlan& plan) {
  return plan.loop.totals.empty() ? kMostBlocks : kBusyBlocks;
}

// What Divisor of loop_cuda.h takes; nothing where it divides.
uint64_t divisor(int64_t number) {
  if (number < 1 || number >= int64_t{1} << 31) return 0;
  const auto shift = static_cast<uint64_t>(std::bit_width(static_cast<uint64_t>(number - 1)));
  const auto divisor = static_cast<uint64_t>(number);
  const uint64_t factor = ((((uint64_t{1} << shift) - divisor) << 32) / divisor) + 1;
  return shift << 32 | factor;
}

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t power_above(int64_t number) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(number)));
}

std::vector<const LoopOperand*> operands_of(const LoopProgram& program) {
  std::vector<const LoopOperand*> list;
  for (const LoopOperand& input : program.inputs) list.push_back(&input);
  for (const Output& output : program.outputs) list.push_back(&output.operand);
  return list;
}

int64_t neighbors_at_once(const LoopOperand& operand, int64_t width) {
  return std::min(width, kVectorBytes / bytes_of(operand.format));
}

// Whether groups of `width` elements are aligned for vector accesses if the array is.
bool keeps_aligned(const LoopProgram& program, int64_t width) {
  if (program.sizes.back() % width != 0) return false;
  for (const LoopOperand* operand : operands_of(program)) {
    if (operand->strides.back() != 1) continue;
    for (size_t i = 0; i + 1 < program.sizes.size(); ++i) {
      if (operand->strides[i] % neighbors_at_once(*operand, width) != 0) return false;
    }
  }
  return true;
}

int choose_width(const CudaPlan& plan, int64_t busy_threads) {
  const LoopProgram& program = plan.loop.program;
  int64_t smallest = kVectorBytes, count = 0;
  for (const LoopOperand* operand : operands_of(program)) {
    if (operand->strides.back() != 1) continue;
    smallest = std::min(smallest, bytes_of(operand->format));
    ++count;
  }
  int64_t width = std::min<int64_t>(8, kVectorBytes / smallest);
  const bool in_rows = plan.form != CudaPlan::Form::kPointwise;
  while (width > 1) {
    const int64_t threads = plan.loop.rows * plan.loop.columns / width;
    const bool short_rows =
        in_rows && plan.form != CudaPlan::Form::kColumns && plan.loop.columns / width < kWarp;
    if (keeps_aligned(program, width) && width * count <= kHeldElements && !short_rows &&
        threads >= busy_threads) {
      break;
    }
    width /= 2;
  }
  return static_cast<int>(width);
}

// Bytes that a thread loads ahead for `turns` groups, with its sums and the outputs of one group.
int64_t held_bytes(const CudaPlan& plan, int turns) {
  const LoopProgram& program = plan.loop.program;
  int64_t bytes = 0;
  for (size_t i = 0; i < plan.loop.values.size(); ++i) {
    const Expression& e = program.expressions[i];
    const ValueTraits& value = plan.loop.values[i];
    if (e.op != Op::kInput || value.level != Level::kElement) continue;
    const LoopOperand& input = program.inputs[static_cast<size_t>(e.index)];
    const int times = value.same_for_rows && plan.loop.rows > 1 ? 1 : turns;
    bytes += times * bytes_of(input.format) * (input.strides.back() == 1 ? plan.width : 1);
  }
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    if (plan.loop.stores[i] != Level::kElement) continue;
    bytes += bytes_of(program.outputs[i].operand.format) * plan.width;
  }
  for (const int32_t at : plan.loop.column_reductions) {
    const Format kind = plan.loop.values[static_cast<size_t>(at)].kind;
    // A sum of fp32 is one of fp64, too.
    bytes += (kind == Format::kFp32 ? 12 : bytes_of(kind)) * plan.width;
  }
  return bytes;
}

// Whether a thread mostly waits for memory, and what it loads can be loaded ahead.
bool waits_for_loads(const LoopPlan& loop) {
  int cycles = 0;
  for (size_t i = 0; i < loop.values.size(); ++i) {
    if (loop.values[i].level != Level::kElement) continue;
    const Expression& e = loop.program.expressions[i];
    cycles += traits_of(e.op).cycles;
    const bool is_input = e.op == Op::kInput;
    if (is_input && loop.program.inputs[static_cast<size_t>(e.index)].strides.back() > 1) {
      return false;
    }
  }
  return cycles < kLongCycles;
}

void choose_turns(CudaPlan& plan, int64_t busy_threads) {
  if (!waits_for_loads(plan.loop)) return;
  if (plan.form == CudaPlan::Form::kPointwise && plan.loop.totals.empty()) {
    const bool enough = plan.loop.rows * plan.groups >= 2 * kFull * busy_threads;
    if (!enough || held_bytes(plan, 2) > kHeldByThree) return;
    plan.turns = 2;
    plan.resident = 3;
  } else if (plan.form == CudaPlan::Form::kColumns) {
    for (const int turns : {4, 2}) {
      if (held_bytes(plan, turns) > kHeldByTwo) continue;
      plan.turns = turns;
      plan.resident = 2;
      return;
    }
  }
}

bool needs_long_index(const CudaPlan& plan) {
  // A loop may exceed its end by as many elements as all threads process at once.
  constexpr int64_t kFar = int64_t{1} << 30;
  const LoopProgram& program = plan.loop.program;
  for (const LoopOperand* operand : operands_of(program)) {
    int64_t last = 0;
    for (size_t i = 0; i < program.sizes.size(); ++i) {
      last += (program.sizes[i] - 1) * operand->strides[i];
    }
    if (last >= kFar) return true;
  }
  return plan.loop.rows * plan.loop.columns >= kFar;
}

CudaPlan::Form form_of(const LoopPlan& loop) {
  const bool rows =
      !loop.row_reductions.empty() ||
      std::find(loop.stores.begin(), loop.stores.end(), Level::kRow) != loop.stores.end();
  if (loop.column_reductions.empty()) {
    return rows ? CudaPlan::Form::kRows : CudaPlan::Form::kPointwise;
  }
  return rows ? CudaPlan::Form::kBoth : CudaPlan::Form::kColumns;
}

// The number of blocks, each of which has a partial total.
int64_t parts_of(const CudaPlan& plan) { return int64_t{plan.grid[0]} * plan.grid[1]; }

void share_pointwise(CudaPlan& plan) {
  plan.block = {256, 1};
  const bool one_row = plan.loop.rows == 1;
  const int64_t share = divide_up(one_row ? plan.groups : plan.loop.rows, plan.turns);
  const int64_t blocks = divide_up(one_row ? share : share * plan.groups, 256);
  plan.grid = {static_cast<uint32_t>(std::min(blocks, most_blocks(plan))), 1};
}

// Several groups per thread if there are enough rows, to amortize the cost of each row's end.
void share_rows(CudaPlan& plan) {
  const int64_t each = plan.loop.rows >= kBusyBlocks ? 4 : 1;
  const int64_t threads =
      std::clamp(power_above(divide_up(plan.groups, each)), kWarp, int64_t{1024});
  const int64_t rows = threads == kWarp ? 8 : 1;
  plan.block = {static_cast<uint32_t>(threads), static_cast<uint32_t>(rows)};
  const int64_t blocks = divide_up(plan.loop.rows, rows);
  plan.grid = {static_cast<uint32_t>(std::min(blocks, most_blocks(plan))), 1};
}

void share_columns(CudaPlan& plan) {
  const int64_t across = std::min(power_above(plan.groups), kWarp), down = 256 / across;
  const int64_t tiles = divide_up(plan.groups, across);
  const int64_t wanted = std::max<int64_t>(kBusyBlocks / tiles, 1);
  plan.block_rows = std::max(divide_up(plan.loop.rows, wanted), 8 * down);
  plan.blocks = divide_up(plan.loop.rows, plan.block_rows);
  plan.block = {static_cast<uint32_t>(across), static_cast<uint32_t>(down)};
  plan.grid = {static_cast<uint32_t>(std::min(tiles, most_blocks(plan))),
               static_cast<uint32_t>(plan.blocks)};
}

void share_both(CudaPlan& plan) {
  int64_t bytes = 0;  // Size of the sums of one column.
  for (const int32_t at : plan.loop.column_reductions) {
    bytes += bytes_of(plan.loop.values[static_cast<size_t>(at)].kind);
  }
  const int64_t columns = divide_up(plan.loop.columns, 256) * 256;
  // A warp for each row needs no barriers, if enough of them have room for their sums.
  const int64_t room = kSharedBytes / (columns * bytes);
  const int64_t down = room >= 8 ? 8 : room >= 4 ? 4 : 1;
  const int64_t across =
      down > 1 ? kWarp : std::clamp(power_above(plan.groups), kWarp, int64_t{512});
  const int64_t wanted = std::max<int64_t>(plan.loop.rows / (kBusyBlocks / 2 * down), 1);
  // Sums of more than 32 rows would be less accurate.
  plan.block_rows = std::min<int64_t>(wanted, 32) * down;
  plan.blocks = divide_up(plan.loop.rows, plan.block_rows);
  plan.block = {static_cast<uint32_t>(across), static_cast<uint32_t>(down)};
  plan.grid = {static_cast<uint32_t>(std::min(plan.blocks, most_blocks(plan))), 1};
  if (room > 0) plan.shared_columns = columns;
}

}  // namespace

CudaPlan cuda_plan(const LoopProgram& program, int64_t busy_threads) {
  CudaPlan result{.loop = plan(program)};
  // Recomputing a value is cheaper here than storing it.
  result.loop.kept.clear();
  result.form = form_of(result.loop);
  result.width = choose_width(result, busy_threads);
  result.long_index = needs_long_index(result);
  result.groups = result.loop.columns / result.width;
  choose_turns(result, busy_threads);
  switch (result.form) {
    case CudaPlan::Form::kPointwise: share_pointwise(result); break;
    case CudaPlan::Form::kRows: share_rows(result); break;
    case CudaPlan::Form::kColumns: share_columns(result); break;
    case CudaPlan::Form::kBoth: share_both(result); break;
  }
  if (!result.loop.column_reductions.empty()) {
    // 8 columns are a sector of memory. A thread adds about 8 blocks.
    const int64_t down =
        std::clamp(power_above(divide_up(result.blocks, 8)), int64_t{4}, int64_t{128});
    result.last_block = {8, static_cast<uint32_t>(down)};
    result.last_grid =
        static_cast<uint32_t>(std::min(divide_up(result.loop.columns, 8), kMostBlocks));
  }
  return result;
}

CudaSlots::CudaSlots(const CudaPlan& plan) {
  const LoopProgram& program = plan.loop.program;
  const size_t arrays = program.inputs.size() + program.outputs.size();
  inputs = 0;
  outputs = program.inputs.size();
  columns_of = arrays;
  totals_of = columns_of + plan.loop.column_reductions.size();
  sizes = totals_of + plan.loop.totals.size();
  strides = sizes + program.sizes.size();
  numbers = strides + arrays * program.sizes.size();
  rows = numbers;
  for (const Expression& e : program.expressions) rows += e.op == Op::kConstant ? 1 : 0;
  columns = rows + 1;
  block_rows = rows + 2;
  blocks = rows + 3;
  parts = rows + 4;
  divisors = rows + 5;
  count = divisors + program.sizes.size() + 2;
}

std::vector<uint64_t> cuda_arguments(const CudaPlan& plan, const std::vector<const void*>& inputs,
                                     const std::vector<void*>& outputs, void* totals) {
  const LoopProgram& program = plan.loop.program;
  if (inputs.size() != program.inputs.size() || outputs.size() != program.outputs.size()) {
    throw InternalError(fmt::format("loop kernel: {} inputs and {} outputs where {} and {} belong",
                                    inputs.size(), outputs.size(), program.inputs.size(),
                                    program.outputs.size()));
  }
  std::vector<uint64_t> slots;
  slots.reserve(CudaSlots(plan).count);
  for (const void* input : inputs) slots.push_back(reinterpret_cast<uintptr_t>(input));
  for (void* output : outputs) slots.push_back(reinterpret_cast<uintptr_t>(output));
  uint64_t at = reinterpret_cast<uintptr_t>(totals);
  for (size_t i = 0; i < plan.loop.column_reductions.size(); ++i) {
    slots.push_back(at);
    at += static_cast<uint64_t>(plan.blocks * plan.loop.columns) * sizeof(double);
  }
  for (size_t i = 0; i < plan.loop.totals.size(); ++i) {
    slots.push_back(at);
    at += static_cast<uint64_t>(parts_of(plan)) * sizeof(double);
  }
  const auto add = [&](int64_t number) { slots.push_back(static_cast<uint64_t>(number)); };
  for (const int64_t size : program.sizes) add(size);
  for (const LoopOperand* operand : operands_of(program)) {
    for (const int64_t stride : operand->strides) add(stride);
  }
  for (const Expression& e : program.expressions) {
    if (e.op == Op::kConstant) slots.push_back(std::bit_cast<uint64_t>(e.number));
  }
  const auto cut = {plan.loop.rows, plan.loop.columns, plan.block_rows, plan.blocks};
  for (const int64_t number : cut) add(number);
  add(parts_of(plan));
  slots.push_back(divisor(plan.groups));
  for (const int64_t size : program.sizes) slots.push_back(divisor(size));
  slots.push_back(divisor(program.sizes.back() / plan.width));
  return slots;
}

int64_t total_bytes(const CudaPlan& plan) {
  const auto columns =
      static_cast<int64_t>(plan.loop.column_reductions.size()) * plan.blocks * plan.loop.columns;
  const auto totals = static_cast<int64_t>(plan.loop.totals.size()) * parts_of(plan);
  return (columns + totals) * static_cast<int64_t>(sizeof(double));
}

bool is_aligned(const CudaPlan& plan, const std::vector<const void*>& inputs,
                const std::vector<void*>& outputs) {
  if (plan.width == 1) return false;
  std::vector<const void*> all = inputs;
  all.insert(all.end(), outputs.begin(), outputs.end());
  const auto operands = operands_of(plan.loop.program);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i]->strides.back() != 1) continue;
    const auto bytes = static_cast<uintptr_t>(neighbors_at_once(*operands[i], plan.width) *
                                              bytes_of(operands[i]->format));
    if (reinterpret_cast<uintptr_t>(all[i]) % bytes != 0) return false;
  }
  return true;
}

}  // namespace gallop::compile
