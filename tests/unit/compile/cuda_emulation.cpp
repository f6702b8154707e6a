#include "unit/compile/cuda_emulation.h"

#include <array>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/base/file.h"
#include "gallop/compile/codegen/cuda_source.h"
#include "unit/fixtures.h"

namespace gallop::compile {

std::string emulated_prefix() {
  const fs::path header = fixtures() / "cuda_on_cpu.h";
  return read_file(header, 1 << 20) + cuda_prefix();
}

KernelSource emulated_source(const CudaPlan& plan) {
  const KernelSource kernel = cuda_source(plan);
  const bool has_columns = !plan.loop.column_reductions.empty();
  KernelSource result{.symbol = "run_" + kernel.symbol, .text = kernel.text};
  const auto launch = [&](const char* shape, const std::string& name) {
    return fmt::format(
        "  if (!launch({}, reversed, [&] {{ gallop_cuda::{}(a); }})) return false;\n", shape, name);
  };
  result.text += fmt::format(
      "extern \"C\" __attribute__((visibility(\"default\"))) bool {}(\n"
      "    const unsigned long long* slots, const unsigned* shape, const unsigned* last_shape,\n"
      "    const unsigned* total_shape, bool aligned, bool reversed) {{\n"
      "  gallop_cuda::{}_space::Slots a;\n  memcpy(a.slots, slots, sizeof a.slots);\n",
      result.symbol, kernel.symbol);
  if (plan.width > 1) {
    result.text +=
        "  if (aligned) {\n" + launch("shape", kernel.symbol + "_aligned") + "  } else {\n";
  }
  result.text += launch("shape", kernel.symbol) + (plan.width > 1 ? "  }\n" : "");
  if (has_columns) result.text += launch("last_shape", kernel.symbol + "_columns");
  if (!plan.loop.totals.empty()) result.text += launch("total_shape", kernel.symbol + "_totals");
  result.text += "  return true;\n}\n";
  return result;
}

EmulatedLoop::EmulatedLoop(const CudaPlan& plan, const CompiledKernel& kernel)
    : plan_(plan), run_(reinterpret_cast<Run>(kernel.function)) {}

void EmulatedLoop::operator()(const std::vector<const void*>& inputs,
                              const std::vector<void*>& outputs, bool aligned,
                              bool reversed) const {
  std::vector<char> totals(static_cast<size_t>(total_bytes(plan_)));
  const auto slots = cuda_arguments(plan_, inputs, outputs, totals.data());
  const std::array shape = {plan_.grid[0], plan_.grid[1], plan_.block[0], plan_.block[1]};
  const std::array<uint32_t, 4> last = {plan_.last_grid, 1, plan_.last_block[0],
                                        plan_.last_block[1]};
  const std::array<uint32_t, 4> total = {1, 1, plan_.total_block, 1};
  ASSERT_TRUE(run_(slots.data(), shape.data(), last.data(), total.data(), aligned, reversed))
      << "a barrier that not all threads reach";
}

}  // namespace gallop::compile
