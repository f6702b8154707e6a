#include "unit/compile/emulated_launcher.h"

#include <array>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/compile/codegen/cuda_launcher.h"
#include "unit/compile/cuda_emulation.h"

namespace gallop::compile {

namespace {

// A function that launches any kernel of the source by name.
KernelSource with_launcher(const std::string& path) {
  KernelSource source = cuda_text(path);
  source.symbol = "run_" + source.symbol;
  std::string starts;
  for (const std::string& kernel : cuda_text_kernels(path)) {
    starts += fmt::format(
        "  if (strcmp(kernel, \"{0}\") == 0)\n"
        "    return launch_with(gallop_cuda::{0}, slots, shape, reversed);\n",
        kernel);
  }
  source.text += fmt::format(
      "extern \"C\" __attribute__((visibility(\"default\"))) bool {}(const char* kernel,\n"
      "    const unsigned long long* slots, const unsigned* shape, bool reversed) {{\n{}"
      "  return false;\n}}\n",
      source.symbol, starts);
  return source;
}

}  // namespace

// A busy machine may take minutes to compile one source.
EmulatedLauncher::EmulatedLauncher() : compiler_({.timeout_seconds = 3600}) {}

void EmulatedLauncher::launch(const kernel::CudaLaunch& launch) {
  launches += 1;
  CompiledKernel& text = texts_[launch.text];
  if (text.function == nullptr) {
    text = compiler_.submit(emulated_prefix(), {with_launcher(launch.text)})[0].get();
    ASSERT_NE(text.function, nullptr) << text.fallback_reason;
  }
  ASSERT_EQ(launch.slots.size(), kernel::kCudaSlots);
  const std::array<uint32_t, 4> shape = {launch.blocks, 1, kernel::kCudaThreads, 1};
  ASSERT_TRUE(reinterpret_cast<Run>(text.function)(launch.kernel.c_str(), launch.slots.data(),
                                                   shape.data(), reversed))
      << launch.kernel << ": no such kernel, or a barrier that not all threads reach";
}

}  // namespace gallop::compile
