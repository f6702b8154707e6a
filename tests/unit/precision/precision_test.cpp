#include "gallop/precision/precision.h"

#include <optional>
#include <string>
#include <utility>

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sum.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"

namespace gallop::precision {
namespace {

TEST(Precision, NamesRoundTrip) {
  for (const auto precision : {Precision::kFp32, Precision::kTf32, Precision::kBf16,
                               Precision::kBf16Weights, Precision::kFp16, Precision::kFp8}) {
    EXPECT_EQ(parse_precision(name_of(precision)), precision);
  }
  try {
    parse_precision("fp4");
    ADD_FAILURE();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "unknown precision 'fp4'; known are fp32, tf32, bf16, bf16-weights, fp16 and fp8");
  }
}

TEST(KeepInBf16, RoundsMatricesInPlace) {
  const NamedTensors all = {
      {"weight", at::randn({4, 3})},
      {"conv", at::randn({4, 3, 2, 2}).contiguous(at::MemoryFormat::ChannelsLast)},
      {"bias", at::randn({4})}};
  NamedTensors before;
  for (const auto& [name, tensor] : all) {
    before.push_back({name, tensor.clone()});
    tensor.set_requires_grad(true);
    // Autograd has saved the previous metadata of the tensor.
    tensor.sum().backward();
  }
  keep_in_bf16(all);
  for (size_t i = 0; i < all.size(); ++i) {
    const at::Tensor& tensor = all[i].tensor;
    EXPECT_TRUE(tensor.is_leaf() && tensor.requires_grad());
    EXPECT_EQ(tensor.scalar_type(), i < 2 ? c10::kBFloat16 : c10::kFloat);
    EXPECT_TRUE(at::equal(tensor.detach(), before[i].tensor.to(tensor.scalar_type())));
    EXPECT_EQ(tensor.strides(), before[i].tensor.strides());
    tensor.mutable_grad().reset();
    tensor.sum().backward();
    EXPECT_EQ(tensor.grad().scalar_type(), tensor.scalar_type());
  }
}

c10::ScalarType type_of_product(const at::Tensor& a) { return at::mm(a, a).scalar_type(); }

TEST(AutocastGuard, CastsToBf16ForAnyWeightDataType) {
  const AutocastGuard guard(Precision::kBf16Weights, c10::DeviceType::CPU);
  EXPECT_EQ(type_of_product(at::ones({4, 4})), c10::kBFloat16);
}

TEST(AutocastGuard, CastsWithinTheBlockOnlyAndNests) {
  const at::Tensor a = at::ones({4, 4});
  EXPECT_EQ(type_of_product(a), c10::kFloat);
  {
    const AutocastGuard bf16(Precision::kBf16, c10::DeviceType::CPU);
    EXPECT_EQ(type_of_product(a), c10::kBFloat16);
    {
      const AutocastGuard fp16(Precision::kFp16, c10::DeviceType::CPU);
      EXPECT_EQ(type_of_product(a), c10::kHalf);
    }
    EXPECT_EQ(type_of_product(a), c10::kBFloat16);
    const AutocastGuard nothing(Precision::kFp32, c10::DeviceType::CPU);
    EXPECT_EQ(type_of_product(a), c10::kBFloat16);
  }
  EXPECT_EQ(type_of_product(a), c10::kFloat);
  EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
}

TEST(AutocastGuard, ClearsTheWeightCache) {
  at::Tensor weight = at::ones({4, 4});
  weight.set_requires_grad(true);
  const auto product = [&] {
    const AutocastGuard guard(Precision::kBf16, c10::DeviceType::CPU);
    return at::mm(weight, weight).sum().item<float>();
  };
  EXPECT_EQ(product(), 64);
  weight.data().fill_(2);
  EXPECT_EQ(product(), 256);
}

TEST(AutocastGuard, Fp8IsBf16WithFp8LinearLayers) {
  const at::Tensor a = at::ones({4, 4});
  EXPECT_FALSE(linear_is_fp8());
  {
    const AutocastGuard fp8(Precision::kFp8, c10::DeviceType::CPU);
    EXPECT_TRUE(linear_is_fp8());
    EXPECT_EQ(type_of_product(a), c10::kBFloat16);
    {
      const AutocastGuard bf16(Precision::kBf16, c10::DeviceType::CPU);
      EXPECT_FALSE(linear_is_fp8());
    }
    EXPECT_TRUE(linear_is_fp8());
  }
  EXPECT_FALSE(linear_is_fp8());
  EXPECT_EQ(for_evaluation(Precision::kFp8), Precision::kBf16);
  EXPECT_EQ(for_evaluation(Precision::kTf32), Precision::kTf32);
}

// Products and convolutions, as LibTorch has them set.
std::pair<bool, bool> tf32() {
  return {at::globalContext().allowTF32CuBLAS(), at::globalContext().allowTF32CuDNN()};
}

TEST(Tf32Guard, AppliesToGemmsAndConvolutionsOnGpusOnly) {
  const auto before = tf32();
  EXPECT_EQ(before, std::pair(false, true)) << "LibTorch's own";
  {
    const Tf32Guard guard(Precision::kTf32, c10::DeviceType::CUDA);
    EXPECT_EQ(tf32(), std::pair(true, true));
    {
      const AutocastGuard fp32(Precision::kFp32, c10::DeviceType::CUDA);
      EXPECT_EQ(tf32(), std::pair(false, false));
    }
    {
      const AutocastGuard bf16(Precision::kBf16, c10::DeviceType::CUDA);
      EXPECT_EQ(tf32(), std::pair(false, false));
    }
    EXPECT_EQ(tf32(), std::pair(true, true));
  }
  EXPECT_EQ(tf32(), before);
  const Tf32Guard on_cpu(Precision::kTf32, c10::DeviceType::CPU);
  EXPECT_EQ(tf32(), before);
  const AutocastGuard none(Precision::kTf32, c10::DeviceType::CPU);
  EXPECT_EQ(type_of_product(at::ones({4, 4})), c10::kFloat);
}

std::string missing(Precision precision, std::optional<int> capability) {
  try {
    require_available(precision, capability);
    return "";
  } catch (const DeviceError& error) {
    return error.what();
  }
}

TEST(RequireAvailable, ReportsMissingHardware) {
  EXPECT_EQ(
      missing(Precision::kFp8, std::nullopt),
      "train.precision is fp8, which requires an NVIDIA GPU of compute capability 8.9 or higher "
      "(Ada, Hopper or newer), but this training runs on the CPU; use train.precision=bf16, "
      "or auto");
  EXPECT_EQ(
      missing(Precision::kFp8, 80),
      "train.precision is fp8, which requires an NVIDIA GPU of compute capability 8.9 or higher "
      "(Ada, Hopper or newer), but this training runs on a GPU of 8.0; use "
      "train.precision=bf16, or auto");
  EXPECT_EQ(
      missing(Precision::kTf32, std::nullopt),
      "train.precision is tf32, which requires an NVIDIA GPU of compute capability 8.0 or "
      "higher (Ampere or newer), but this training runs on the CPU; use train.precision=fp32, "
      "or auto");
  EXPECT_NE(missing(Precision::kTf32, 75), "");
  for (const int capability : {89, 90, 120}) {
    EXPECT_EQ(missing(Precision::kFp8, capability), "");
    EXPECT_EQ(missing(Precision::kTf32, capability), "");
  }
  for (const auto precision : {Precision::kFp32, Precision::kBf16, Precision::kFp16}) {
    EXPECT_EQ(missing(precision, std::nullopt), "");
    EXPECT_EQ(missing(precision, 70), "");
  }
}

}  // namespace
}  // namespace gallop::precision
