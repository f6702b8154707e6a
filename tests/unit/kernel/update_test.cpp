#include "gallop/kernel/update.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <ATen/Parallel.h>
#include <c10/util/BFloat16.h>
#include <gtest/gtest.h>

#include "gallop/kernel/cpu/update.h"

namespace gallop::kernel {
namespace {

std::vector<float> numbers(int64_t count, uint64_t seed, double spread = 1) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, spread);
  std::vector<float> result(static_cast<size_t>(count));
  for (float& number : result) number = static_cast<float>(normal(random));
  return result;
}

// Arrays of one tensor, offset by one number so that nothing is aligned.
struct Arrays {
  explicit Arrays(int64_t count)
      : size(count),
        parameter(numbers(count + 1, 1)),
        gradient(numbers(count + 1, 2)),
        first(numbers(count + 1, 3)),
        second(numbers(count + 1, 4)) {
    for (float& number : second) number = number * number;
    // From nothing to what makes the root leave its range.
    for (size_t i = 1; i < second.size(); i += 7) second[i] = i % 2 ? 0 : 1e-39F;
  }

  AdamwTensor adamw() {
    return {.parameter = parameter.data() + 1,
            .gradient = gradient.data() + 1,
            .exp_avg = first.data() + 1,
            .exp_avg_sq = second.data() + 1,
            .size = size,
            .gradient_scale = 0.125F,
            .take1 = 0.1F,
            .beta2 = 0.999F,
            .take2 = 0.001F,
            .eps = 1e-8F,
            .keep = 0.999F,
            .rate = 0.003F,
            .root_scale = 1.5F};
  }
  SgdTensor sgd(bool with_momentum, bool nesterov) {
    return {.parameter = parameter.data() + 1,
            .gradient = gradient.data() + 1,
            .momentum_buffer = with_momentum ? first.data() + 1 : nullptr,
            .size = size,
            .gradient_scale = 0.125F,
            .lr = 0.1F,
            .weight_decay = 0.01F,
            .momentum = 0.9F,
            .take = 0.75F,
            .nesterov = nesterov};
  }

  int64_t size;
  std::vector<float> parameter, gradient, first, second;
};

double exact_norm(const std::vector<float>& gradient) {
  double sum = 0;
  for (size_t i = 1; i < gradient.size(); ++i) sum += std::pow(static_cast<double>(gradient[i]), 2);
  return std::sqrt(sum);
}

class EveryIsa : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!has(GetParam())) GTEST_SKIP() << "this machine does not have these instructions";
  }
  UpdateBodies bodies() const { return bodies_of<UpdateBodies>(GetParam()); }
};

TEST_P(EveryIsa, AdamwIsThatOfThePaperForEveryLength) {
  for (const int64_t count : {1, 15, 16, 17, 63, 64, 65, 127, 1000, 4095, 4096}) {
    const Arrays before(count);
    Arrays after(count);
    const AdamwTensor t = after.adamw();
    const double sum = bodies().adamw(t);
    EXPECT_NEAR(std::sqrt(sum) / exact_norm(before.gradient), 1, 2e-7) << count;
    EXPECT_EQ(after.gradient, before.gradient);
    EXPECT_EQ(after.parameter[0], before.parameter[0]);
    for (size_t i = 1; i <= static_cast<size_t>(count); ++i) {
      const double g = static_cast<double>(t.gradient_scale) * before.gradient[i];
      const double m = before.first[i] + static_cast<double>(t.take1) * (g - before.first[i]);
      const double v =
          static_cast<double>(t.beta2) * before.second[i] + static_cast<double>(t.take2) * g * g;
      const double change =
          static_cast<double>(t.rate) * m /
          (static_cast<double>(t.root_scale) * std::sqrt(v) + static_cast<double>(t.eps));
      const double p = static_cast<double>(t.keep) * before.parameter[i] - change;
      EXPECT_NEAR(after.first[i], m, 2e-7 * (1 + std::abs(m)));
      EXPECT_NEAR(after.second[i], v, 3e-7 * v + 1e-45);
      EXPECT_NEAR(after.parameter[i], p,
                  2e-7 * (std::abs(before.parameter[i]) + std::abs(p)) + 1e-6 * std::abs(change))
          << "number " << i << " of " << count << ", v " << v;
    }
  }
}

TEST_P(EveryIsa, SgdIsThatOfItsFormulasForEveryLength) {
  for (const auto& [with_momentum, nesterov] :
       {std::pair(false, false), std::pair(true, false), std::pair(true, true)}) {
    for (const int64_t count : {1, 17, 64, 65, 1000, 4096}) {
      const Arrays before(count);
      Arrays after(count);
      const SgdTensor t = after.sgd(with_momentum, nesterov);
      const double sum = bodies().sgd(t);
      EXPECT_NEAR(std::sqrt(sum) / exact_norm(before.gradient), 1, 2e-7) << count;
      for (size_t i = 1; i <= static_cast<size_t>(count); ++i) {
        const double g = static_cast<double>(t.gradient_scale) * before.gradient[i] +
                         static_cast<double>(t.weight_decay) * before.parameter[i];
        const double b =
            static_cast<double>(t.momentum) * before.first[i] + static_cast<double>(t.take) * g;
        const double change = !with_momentum ? g
                              : nesterov     ? g + static_cast<double>(t.momentum) * b
                                             : b;
        EXPECT_NEAR(after.parameter[i], before.parameter[i] - static_cast<double>(t.lr) * change,
                    1e-6);
        EXPECT_NEAR(after.first[i], with_momentum ? b : static_cast<double>(before.first[i]), 1e-6);
      }
    }
  }
}

TEST_P(EveryIsa, SumsOfSquaresHaveTheSameBitsInEveryKernel) {
  for (const int64_t count : {1, 64, 100, 4000, 4096}) {
    Arrays a(count), b(count);
    const double wanted = bodies().sum_of_squares({.data = a.gradient.data() + 1, .size = count});
    EXPECT_EQ(bodies().adamw(a.adamw()), wanted);
    EXPECT_EQ(bodies().sgd(b.sgd(true, true)), wanted);
  }
}

TEST_P(EveryIsa, SumsLeaveTheRangeOfFp32) {
  std::vector<float> large(100, std::numeric_limits<float>::max());
  EXPECT_NEAR(std::sqrt(bodies().sum_of_squares({.data = large.data(), .size = 100})) /
                  (10.0 * std::numeric_limits<float>::max()),
              1, 1e-12);
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    for (const size_t at : {0, 50, 64, 99}) {
      std::vector<float> values = numbers(100, 5);
      values[at] = bad;
      EXPECT_FALSE(std::isfinite(bodies().sum_of_squares({.data = values.data(), .size = 100})));
    }
  }
}

// bf16 gradients, and the same numbers in fp32 in `wide`.
std::vector<Bf16> narrowed(const std::vector<float>& gradient, std::vector<float>& wide) {
  std::vector<Bf16> narrow;
  wide.clear();
  for (const float number : gradient) {
    const auto bits = static_cast<uint16_t>(std::bit_cast<uint32_t>(number) >> 16);
    narrow.push_back({bits});
    wide.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits) << 16));
  }
  return narrow;
}

TEST_P(EveryIsa, Bf16GradientsDoWhatTheSameNumbersDoInFp32) {
  for (const int64_t count : {1, 17, 64, 4001, 4096}) {
    Arrays fp32(count), bf16(count);
    const std::vector<Bf16> narrow = narrowed(bf16.gradient, fp32.gradient);
    AdamwTensor adamw = bf16.adamw();
    adamw.gradient = nullptr;
    adamw.bf16_gradient = narrow.data() + 1;
    EXPECT_EQ(bodies().adamw(adamw), bodies().adamw(fp32.adamw()));
    SgdTensor sgd = bf16.sgd(true, true);
    sgd.gradient = nullptr;
    sgd.bf16_gradient = narrow.data() + 1;
    EXPECT_EQ(bodies().sgd(sgd), bodies().sgd(fp32.sgd(true, true)));
    EXPECT_EQ(bf16.parameter, fp32.parameter);
    EXPECT_EQ(bf16.first, fp32.first);
    EXPECT_EQ(bf16.second, fp32.second);
    EXPECT_EQ(bodies().sum_of_squares({.size = count, .bf16_data = narrow.data() + 1}),
              bodies().sum_of_squares({.data = fp32.gradient.data() + 1, .size = count}));
  }
}

TEST_P(EveryIsa, ShadowsAreTheNewParametersRounded) {
  const auto rounded = [](float number) { return static_cast<uint16_t>(c10::BFloat16(number).x); };
  for (const int64_t count : {1, 17, 64, 4001, 4096}) {
    Arrays adamw(count), sgd(count), plain(count);
    for (Arrays* arrays : {&adamw, &plain}) {
      arrays->gradient[1] = std::nanf("");
      arrays->parameter.back() = std::numeric_limits<float>::infinity();
    }
    const Bf16 kUntouched{0x1234};
    std::vector<Bf16> shadow(static_cast<size_t>(count) + 2, kUntouched);
    AdamwTensor t = adamw.adamw();
    t.shadow = shadow.data() + 1;
    bodies().adamw(t);
    bodies().adamw(plain.adamw());
    const auto expect_rounded = [&](const std::vector<float>& parameter) {
      for (size_t i = 1; i <= static_cast<size_t>(count); ++i) {
        EXPECT_EQ(shadow[i].bits, rounded(parameter[i])) << parameter[i];
      }
      EXPECT_EQ(shadow.front().bits, kUntouched.bits);
      EXPECT_EQ(shadow.back().bits, kUntouched.bits);
    };
    expect_rounded(adamw.parameter);
    EXPECT_EQ(std::memcmp(adamw.parameter.data(), plain.parameter.data(),
                          sizeof(float) * static_cast<size_t>(count + 1)),
              0);
    SgdTensor s = sgd.sgd(true, true);
    s.shadow = shadow.data() + 1;
    bodies().sgd(s);
    expect_rounded(sgd.parameter);
  }
}

INSTANTIATE_TEST_SUITE_P(Update, EveryIsa,
                         testing::Values(Isa::kBaseline, Isa::kAvx2, Isa::kAvx512, Isa::kAmx));

TEST(Update, DoesNotDependOnTheNumberOfThreadsAndTellsTheNormBefore) {
  const int threads = at::get_num_threads();
  std::vector<std::vector<float>> results;
  std::vector<double> norms;
  for (const int count : {1, 2, 3}) {
    at::set_num_threads(count);
    Arrays small(10), large(70'001), middle(5000);
    norms.push_back(update(std::vector{small.adamw(), large.adamw(), middle.adamw()}));
    norms.push_back(norm(std::vector<ConstArray>{{small.gradient.data() + 1, 10},
                                                 {large.gradient.data() + 1, 70'001},
                                                 {middle.gradient.data() + 1, 5000}}));
    results.push_back(large.parameter);
  }
  at::set_num_threads(threads);
  for (const double norm : norms) EXPECT_EQ(norm, norms.front());
  for (const auto& result : results) EXPECT_EQ(result, results.front());
  EXPECT_EQ(update(std::span<const SgdTensor>()), 0);
}

TEST(Update, TellsOfAGradientThatIsNotFinite) {
  Arrays arrays(10'000);
  arrays.gradient[7000] = std::nanf("");
  EXPECT_FALSE(std::isfinite(update(std::vector{arrays.sgd(true, false)})));
}

TEST(Update, EndsMomentsThatFaded) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "this machine has no such mode";
#endif
  constexpr float kTiny = 1e-40F;
  std::vector<float> parameter(1000, 2.0F), gradient(1000, 0.0F), mean(1000, kTiny),
      square(1000, kTiny);
  const std::vector<AdamwTensor> tensors = {{.parameter = parameter.data(),
                                             .gradient = gradient.data(),
                                             .exp_avg = mean.data(),
                                             .exp_avg_sq = square.data(),
                                             .size = 1000,
                                             .take1 = 0.1F,
                                             .beta2 = 0.999F,
                                             .take2 = 0.001F,
                                             .eps = 1e-8F,
                                             .rate = 1e-3F}};
  EXPECT_EQ(update(std::span(tensors)), 0);
  EXPECT_EQ(mean[999], 0);
  EXPECT_EQ(square[0], 0);
  EXPECT_EQ(parameter[0], 2.0F);
  // The mode ends with the call.
  volatile float tiny = kTiny;
  EXPECT_GT(tiny * 0.5F, 0);
}

}  // namespace
}  // namespace gallop::kernel
