#include <gtest/gtest.h>
#include "gallop/compile/codegen/loop_builder.h"
#include "gallop/compile/codegen/loop_kernel.h"
#include "gallop/compile/codegen/cpu_source.h"
#include <cstdio>
#include <cstdlib>
namespace gallop::compile { namespace {
TEST(Smoke, Softmax) {
  LoopBuilder b({5, 37}, 1);
  auto x = b.input(Format::kFp32, {37, 1});
  auto m = b.apply(Op::kRowMax, x);
  auto e = b.apply(Op::kExp, b.apply(Op::kSubtract, x, m));
  auto s = b.apply(Op::kRowSum, e);
  b.output(b.apply(Op::kDivide, e, s), Format::kFp32, {37, 1});
  b.output(b.apply(Op::kColumnSum, x), Format::kBf16, {0, 1});
  auto p = std::move(b).finish();
  std::printf("%s\n", cpu_source(plan(p)).text.c_str());
  KernelCompiler c({.cache_folder = "/tmp/cg/cache"});
  auto k = LoopKernel::make(std::span(&p, 1), c);
  ASSERT_TRUE(k[0]->wait()) << k[0]->lost();
  EXPECT_EQ(k[0]->lost(), "");
  std::vector<float> in(5 * 37), out(5 * 37); std::vector<uint16_t> col(37);
  for (size_t i = 0; i < in.size(); ++i) in[i] = float(i % 11) * 0.3f;
  const void* ins[] = {in.data()}; void* outs[] = {out.data(), col.data()};
  k[0]->run(ins, outs);
  float t = 0; for (int i = 0; i < 37; ++i) t += out[i];
  EXPECT_NEAR(t, 1, 1e-6);
}
}}
