#include "gallop/data/function_samples.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"

namespace gallop::data {
namespace {

Sample labeled(int64_t index, int64_t epoch) {
  return {.input = at::full({2, 3}, static_cast<double>(index + 10 * epoch)),
          .target = at::scalar_tensor(index % 4, at::kLong)};
}

bool fill(const FunctionSamples& samples, int64_t index, int64_t epoch, void* input, void* target) {
  void* const rows[] = {input, target};
  int64_t lengths[2] = {0, 0};
  Scratch scratch;
  return samples.fill(index, epoch, SampleRow(rows, lengths), scratch);
}

template <typename Error, typename Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(FunctionSamples, AreWhatTheFunctionReturnsForIndexAndEpoch) {
  const FunctionSamples samples(8, labeled, 4);
  EXPECT_EQ(samples.size(), 8);
  EXPECT_TRUE(samples.every_target_counts());
  EXPECT_EQ(samples.fields().input().shape.sizes, (std::vector<int64_t>{2, 3}));
  EXPECT_TRUE(samples.fields().target().shape.sizes.empty());
  std::vector<float> input(6);
  int64_t label = -1;
  ASSERT_TRUE(fill(samples, 5, 2, input.data(), &label));
  EXPECT_EQ(input, std::vector<float>(6, 25.0F));
  EXPECT_EQ(label, 1);
}

TEST(FunctionSamples, CopyTransposedTensorsRowByRow) {
  const FunctionSamples samples(
      1,
      [](int64_t, int64_t) {
        at::Tensor input = at::ones({3, 2});
        input.select(1, 1).fill_(2);
        return Sample{.input = input.t(), .target = at::scalar_tensor(0.5)};
      },
      0);
  EXPECT_EQ(samples.fields().target().shape.sizes, std::vector<int64_t>{1});
  std::vector<float> input(6);
  float target = 0;
  ASSERT_TRUE(fill(samples, 0, 0, input.data(), &target));
  EXPECT_EQ(input, (std::vector<float>{1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(target, 0.5F);
}

TEST(FunctionSamples, RejectTargetsThatDoNotFitTheTask) {
  EXPECT_EQ(
      message_of<UsageError>([] { FunctionSamples(8, labeled, 0); }),
      "targets are Long []; they must be numbers, Float [] or [D], or labels of named classes");
  const auto numbers = [](int64_t, int64_t) {
    return Sample{.input = at::ones({2}), .target = at::ones({3})};
  };
  EXPECT_EQ(message_of<UsageError>([&] { FunctionSamples(8, numbers, 3); }),
            "targets are Float [3]; with classes, a target is one label, Long []");
  EXPECT_EQ(message_of<UsageError>([&] { FunctionSamples(0, numbers, 0); }),
            "0 samples; at least one is needed");
  const auto nothing = [](int64_t, int64_t) {
    return Sample{.input = at::ones({2}), .target = {}};
  };
  EXPECT_EQ(message_of<UsageError>([&] { FunctionSamples(8, nothing, 0); }),
            "a tensor of sample 0 is undefined; samples are tensors on the CPU");
}

TEST(FunctionSamples, RejectSamplesThatDifferFromTheFirst) {
  const FunctionSamples samples(
      8,
      [](int64_t index, int64_t) {
        return Sample{.input = at::ones({index == 3 ? 5 : 2}),
                      .target = at::scalar_tensor(index, at::kLong)};
      },
      4);
  std::vector<float> input(5);
  int64_t label = 0;
  EXPECT_EQ(
      message_of<DataError>([&] { fill(samples, 3, 0, input.data(), &label); }),
      "the input of sample 3 is Float [5], that of the first is Float [2]; all samples need the "
      "same sizes and type");
  EXPECT_EQ(message_of<DataError>([&] { fill(samples, 4, 0, input.data(), &label); }),
            "sample 4 has the label 4; labels are 0 to 3");
}

TEST(FunctionSamples, RecordNoGradients) {
  const at::Tensor parameter = at::ones({2}).requires_grad_();
  const FunctionSamples samples(
      1,
      [&](int64_t, int64_t) {
        EXPECT_FALSE(at::GradMode::is_enabled());
        return Sample{.input = parameter * 2, .target = at::scalar_tensor(1.0)};
      },
      0);
  std::vector<float> input(2);
  float target = 0;
  ASSERT_TRUE(fill(samples, 0, 0, input.data(), &target));
  EXPECT_EQ(input, (std::vector<float>{2, 2}));
}

}  // namespace
}  // namespace gallop::data
