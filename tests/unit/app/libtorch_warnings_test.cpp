#include "gallop/app/libtorch_warnings.h"

#include <string>
#include <vector>

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include "gallop/train/determinism.h"
#include "unit/base/error_of.h"

namespace gallop::app {
namespace {

// As `train.deterministic` sets it.
class Deterministic {
 public:
  explicit Deterministic(bool warns) {
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/warns);
  }
  ~Deterministic() { at::globalContext().setDeterministicAlgorithms(false, /*warn_only=*/false); }
};

TEST(LibtorchWarnings, ReportsEachTextOnce) {
  std::vector<std::string> lines;
  {
    const Deterministic warned(/*warns=*/true);
    const LibtorchWarnings warnings([&](const std::string& line) { lines.push_back(line); });
    for (int i = 0; i < 2; ++i) {
      for (const char* op : {"upsample_bilinear2d_backward", "cumsum_cuda_kernel"}) {
        at::globalContext().alertNotDeterministic(op);
      }
      TORCH_WARN("a first line\nand a second one");
    }
  }
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].find("upsample_bilinear2d_backward has no deterministic implementation"), 0U)
      << lines[0];
  EXPECT_EQ(lines[1].find("cumsum_cuda_kernel has no"), 0U) << lines[1];
  EXPECT_EQ(lines[2], "LibTorch: a first line");
}

TEST(LibtorchWarnings, WithoutThemOperatorsAreErrors) {
  const Deterministic required(/*warns=*/false);
  const std::string error = error_of([] {
    try {
      at::globalContext().alertNotDeterministic("cumsum_cuda_kernel");
    } catch (...) {
      train::rethrow_nondeterminism();
    }
  });
  EXPECT_EQ(error.find("cumsum_cuda_kernel has no deterministic implementation on a GPU; set "
                       "train.deterministic=warn"),
            0U)
      << error;
  EXPECT_EQ(error_of([] {
              try {
                throw UsageError("another one");
              } catch (...) {
                train::rethrow_nondeterminism();
              }
            }),
            "another one");
}

}  // namespace
}  // namespace gallop::app
