#include "gallop/compile/codegen/cuda_compiler.h"

#include <fstream>

#include <gtest/gtest.h>

#include "gallop/base/file.h"
#include "gallop/compile/codegen/cuda_source.h"
#include "gallop/compile/codegen/loop_builder.h"
#include "unit/compile/cache_folder.h"
#include "unit/compile/random_programs.h"

namespace gallop::compile {
namespace {

KernelSource a_kernel(const char* body = "*p = 1;") {
  return {.symbol = "mine",
          .text = std::string("extern \"C\" __global__ void mine(int* p) { ") + body + " }\n"};
}

CudaBinary compile(CudaCompiler& compiler, const KernelSource& source) {
  return compiler.submit({source}, 80)[0].get();
}

class WithNvrtc : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    if (!CudaCompiler().is_there(why)) GTEST_SKIP() << why;
  }
  CacheFolder folder_;
  CudaCompilerOptions options_{.libraries = {}, .cache_folder = folder_.path()};
};

TEST_F(WithNvrtc, CompilesGeneratedLoops) {
  RandomPrograms random(40, /*for_gpus=*/true);
  std::vector<KernelSource> sources;
  for (int form = 0; form < 12; ++form) {
    const LoopProgram program = random.make();
    for (const int64_t unit : {1, 8}) {
      sources.push_back(cuda_source(cuda_plan(random.resized(program, unit), 1)));
    }
  }
  CudaCompiler compiler(options_);
  for (const int capability : {80, 90}) {
    const auto results = compiler.submit(sources, capability);
    for (size_t i = 0; i < sources.size(); ++i) {
      const CudaBinary& binary = results[i].get();
      ASSERT_EQ(binary.fallback_reason, "") << sources[i].text;
      EXPECT_EQ(binary.image.substr(1, 3), "ELF");
      EXPECT_NE(binary.image.find(sources[i].symbol), std::string::npos);
    }
  }
}

TEST_F(WithNvrtc, ReadsAndWritesSixteenBytesAtOnce) {
  for (const Format format : {Format::kBf16, Format::kFp16, Format::kFp32, Format::kFp64}) {
    LoopBuilder builder({1 << 20});
    const Value x = builder.input(format, {1});
    builder.output(builder.apply(Op::kRelu, x), format, {1});
    const KernelSource source = cuda_source(cuda_plan(std::move(builder).finish()));
    CudaCompiler compiler(options_);
    // For a GPU newer than NVRTC, it returns PTX.
    const std::string text = compiler.submit({source}, 999)[0].get().image;
    const size_t aligned = text.find(".entry " + source.symbol + "_aligned");
    ASSERT_NE(aligned, std::string::npos);
    const std::string wide = format == Format::kFp64 ? ".v2" : ".v4";
    EXPECT_NE(text.find("ld.global" + wide, aligned), std::string::npos) << text;
    EXPECT_NE(text.find("st.global" + wide, aligned), std::string::npos) << text;
  }
}

int64_t count(const std::string& text, const std::string& part) {
  int64_t found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++found;
  return found;
}

TEST_F(WithNvrtc, LoadsTwoRowsAheadAndWhatTheyShareOnce) {
  LoopBuilder builder({1 << 17, 64}, 1);
  const Value x = builder.input(Format::kBf16, {64, 1});
  const Value scale = builder.input(Format::kFp32, {0, 1});
  builder.output(builder.apply(Op::kMultiply, x, scale), Format::kBf16, {64, 1});
  const KernelSource source = cuda_source(cuda_plan(std::move(builder).finish()));
  CudaCompiler compiler(options_);
  const std::string text = compiler.submit({source}, 999)[0].get().image;
  const size_t aligned = text.find(".entry " + source.symbol + "_aligned");
  const size_t store = text.find("st.global", aligned);
  ASSERT_NE(aligned, std::string::npos);
  ASSERT_NE(store, std::string::npos);
  // 8 numbers of two rows, and 8 of the scale in two loads.
  EXPECT_EQ(count(text.substr(aligned, store - aligned), "ld.global.v4"), 4) << text;
  EXPECT_EQ(count(text.substr(store), "ld.global"), 0) << text;
}

TEST_F(WithNvrtc, CachesBinariesOnDisk) {
  std::string first;
  {
    CudaCompiler compiler(options_);
    first = compile(compiler, a_kernel()).image;
    compile(compiler, a_kernel());
    EXPECT_EQ(compiler.runs(), 1);
  }
  CudaCompiler compiler(options_);
  EXPECT_EQ(compile(compiler, a_kernel()).image, first);
  EXPECT_EQ(compiler.runs(), 0);
}

TEST_F(WithNvrtc, RecompilesADamagedBinary) {
  std::string first;
  {
    CudaCompiler compiler(options_);
    first = compile(compiler, a_kernel()).image;
  }
  for (const auto& file : fs::directory_iterator(folder_.path())) {
    std::fstream(file.path(), std::ios::in | std::ios::out).seekp(100).put('!');
  }
  CudaCompiler compiler(options_);
  EXPECT_EQ(compile(compiler, a_kernel()).image, first);
  EXPECT_EQ(compiler.runs(), 1);
}

TEST_F(WithNvrtc, ReportsCompilationErrors) {
  CudaCompiler compiler(options_);
  const CudaBinary binary = compile(compiler, a_kernel("*p = nothing;"));
  EXPECT_EQ(binary.image, "");
  EXPECT_NE(binary.fallback_reason.find("the step falls back to unfused operators: NVRTC "),
            std::string::npos);
  EXPECT_NE(binary.fallback_reason.find("\"nothing\" is undefined"), std::string::npos)
      << binary.fallback_reason;
  EXPECT_EQ(binary.fallback_reason.find('\n'), std::string::npos);
}

TEST_F(WithNvrtc, ReportsUnknownGpus) {
  CudaCompiler compiler(options_);
  const CudaBinary old = compiler.submit({a_kernel()}, 35)[0].get();
  EXPECT_NE(old.fallback_reason.find("does not support compute capability 3.5"), std::string::npos)
      << old.fallback_reason;
  // A newer GPU gets PTX that its driver can compile.
  const CudaBinary young = compiler.submit({a_kernel()}, 999)[0].get();
  EXPECT_NE(young.image.find(".visible .entry mine"), std::string::npos) << young.fallback_reason;
}

TEST_F(WithNvrtc, WorksWithoutACache) {
  options_.cache_folder = "/proc/none/kernels";
  CudaCompiler compiler(options_);
  const CudaBinary binary = compile(compiler, a_kernel());
  EXPECT_NE(binary.image, "");
  EXPECT_NE(binary.fallback_reason.find("each run compiles its fused kernels again: "),
            std::string::npos);
}

TEST(CudaCompiler, ReportsMissingNvrtc) {
  const CacheFolder folder;
  CudaCompiler compiler({.libraries = {"libnvrtc-missing.so"}, .cache_folder = folder.path()});
  EXPECT_EQ(compile(compiler, a_kernel()).fallback_reason,
            "the step falls back to unfused operators: there is no NVRTC (libnvrtc-missing.so); "
            "tools/fetch-libtorch --cuda or NVIDIA's package cuda-nvrtc has it");
  std::string why;
  EXPECT_FALSE(compiler.is_there(why));
}

TEST(CudaCompiler, ReportsMissingSymbols) {
  const CacheFolder folder;
  CudaCompiler compiler({.libraries = {"libm.so.6"}, .cache_folder = folder.path()});
  EXPECT_EQ(compile(compiler, a_kernel()).fallback_reason,
            "the step falls back to unfused operators: libm.so.6 lacks nvrtcGetErrorString");
}

}  // namespace
}  // namespace gallop::compile
