#include "gallop/kernel/update.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <c10/util/BFloat16.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/kernel/plain_update.h"
#include "unit/kernel/update_cases.h"

namespace gallop::kernel {
namespace {

// The options with which a rule is tested: any fraction, and epsilons.
std::vector<double> options_of(const UpdateRule& rule) {
  std::vector<double> options;
  for (int i = 0; i < rule.options; ++i) options.push_back(i % 2 == 0 ? 0.9 : 0.75);
  return options;
}

// Arrays of one tensor, offset by one number so that nothing is aligned.
struct Arrays {
  Arrays(const UpdateRule& of, int64_t count)
      : rule(of),
        size(count),
        parameter(numbers(count + 1, 1)),
        gradient(numbers(count + 1, 2)),
        options(options_of(of)),
        running(static_cast<size_t>(of.running), 0.5) {
    for (int k = 0; k < rule.states; ++k) {
      states.push_back(numbers(count + 1, 3 + static_cast<uint64_t>(k)));
      for (float& number : states.back()) number = number * number;
      // From nothing to what makes the root leave its range.
      for (size_t i = 1; i < states.back().size(); i += 7) states.back()[i] = i % 2 ? 0 : 1e-39F;
    }
  }

  UpdateTensor tensor() {
    UpdateTensor tensor;
    tensor.parameter = parameter.data() + 1;
    tensor.gradient = gradient.data() + 1;
    for (size_t k = 0; k < states.size(); ++k) tensor.states[k] = states[k].data() + 1;
    tensor.size = size;
    tensor.gradient_scale = 0.125F;
    tensor.moment = {.step = 3,
                     .lr = 0.125,
                     .weight_decay = 0.25,
                     .options = options.data(),
                     .running = running.data()};
    begin_update(rule, tensor);
    return tensor;
  }

  const UpdateRule& rule;
  int64_t size;
  std::vector<float> parameter, gradient;
  std::vector<std::vector<float>> states;
  std::vector<double> options, running;
};

// What the arrays hold after an update in fp64 by LibTorch's operators.
OptimizerStep exact_update(Arrays& arrays) {
  const UpdateTensor tensor = arrays.tensor();
  const auto exact = [&](const std::vector<float>& from) {
    return at::tensor(at::ArrayRef<float>(from).slice(1), at::kDouble);
  };
  const auto number = [](double value) { return at::scalar_tensor(value, at::kDouble); };
  OptimizerStep step{.rule = arrays.rule.name,
                     .options = arrays.options,
                     .parameters = {exact(arrays.parameter)},
                     .gradients = {exact(arrays.gradient)},
                     .weight_decays = {tensor.moment.weight_decay},
                     .indices = {0},
                     .steps = at::full({1}, tensor.moment.step - 1, at::kFloat),
                     .lr = number(tensor.moment.lr),
                     .grad_scale = number(8)};
  for (const auto& state : arrays.states) step.states.push_back(exact(state));
  if (arrays.rule.running > 0) step.running = at::full({1, arrays.rule.running}, 0.5, at::kDouble);
  update_by_operators(step);
  return step;
}

double exact_norm(const std::vector<float>& gradient) {
  double sum = 0;
  for (size_t i = 1; i < gradient.size(); ++i) sum += std::pow(static_cast<double>(gradient[i]), 2);
  return std::sqrt(sum);
}

class EveryIsa : public UpdateTest {};

void expect_near(const std::vector<float>& found, const at::Tensor& wanted, const char* what,
                 const UpdateRule& rule) {
  for (size_t i = 1; i < found.size(); ++i) {
    const double exact = wanted[static_cast<int64_t>(i) - 1].item<double>();
    ASSERT_NEAR(found[i], exact, 1e-6 * (1 + std::abs(exact)))
        << rule.name << ": " << what << ' ' << i << " of " << found.size() - 1;
  }
}

TEST_P(EveryIsa, EveryRuleMatchesFp64ForEveryLength) {
  for (const UpdateRule& rule : update_rules()) {
    for (const int64_t count : {1, 15, 16, 17, 63, 64, 65, 127, 1000, 4095, 4096}) {
      Arrays before(rule, count), after(rule, count);
      const OptimizerStep exact = exact_update(before);
      const double sum = update_chunk(rule, after.tensor());
      EXPECT_NEAR(std::sqrt(sum) / exact_norm(before.gradient), 1, 2e-7) << count;
      EXPECT_EQ(after.gradient, before.gradient);
      EXPECT_EQ(after.parameter[0], before.parameter[0]);
      expect_near(after.parameter, exact.parameters[0], "parameter", rule);
      for (size_t k = 0; k < after.states.size(); ++k) {
        EXPECT_EQ(after.states[k][0], before.states[k][0]);
        expect_near(after.states[k], exact.states[k], "state", rule);
      }
    }
  }
}

TEST_P(EveryIsa, SumsOfSquaresAreBitIdenticalInEveryKernel) {
  for (const int64_t count : {1, 64, 100, 4000, 4096}) {
    for (const UpdateRule& rule : update_rules()) {
      Arrays a(rule, count);
      const double wanted =
          kernels().sum_of_squares({.data = a.gradient.data() + 1, .size = count});
      EXPECT_EQ(update_chunk(rule, a.tensor()), wanted);
    }
  }
}

TEST_P(EveryIsa, SumsMayExceedTheRangeOfFp32) {
  std::vector<float> large(100, std::numeric_limits<float>::max());
  EXPECT_NEAR(std::sqrt(kernels().sum_of_squares({.data = large.data(), .size = 100})) /
                  (10.0 * std::numeric_limits<float>::max()),
              1, 1e-12);
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    for (const size_t at : {0, 50, 64, 99}) {
      std::vector<float> values = numbers(100, 5);
      values[at] = bad;
      EXPECT_FALSE(std::isfinite(kernels().sum_of_squares({.data = values.data(), .size = 100})));
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

TEST_P(EveryIsa, Bf16GradientsMatchTheSameFp32Gradients) {
  for (const UpdateRule& rule : update_rules()) {
    for (const int64_t count : {1, 17, 64, 4001, 4096}) {
      Arrays fp32(rule, count), bf16(rule, count);
      const std::vector<Bf16> narrow = narrowed(bf16.gradient, fp32.gradient);
      UpdateTensor tensor = bf16.tensor();
      tensor.gradient = nullptr;
      tensor.bf16_gradient = narrow.data() + 1;
      EXPECT_EQ(update_chunk(rule, tensor), update_chunk(rule, fp32.tensor()));
      EXPECT_EQ(bf16.parameter, fp32.parameter) << rule.name;
      EXPECT_EQ(bf16.states, fp32.states) << rule.name;
      EXPECT_EQ(kernels().sum_of_squares({.size = count, .bf16_data = narrow.data() + 1}),
                kernels().sum_of_squares({.data = fp32.gradient.data() + 1, .size = count}));
    }
  }
}

TEST_P(EveryIsa, Bf16CopiesAreTheRoundedParameters) {
  const auto rounded = [](float number) { return static_cast<uint16_t>(c10::BFloat16(number).x); };
  const Bf16 kUntouched{0x1234};
  for (const UpdateRule& rule : update_rules()) {
    for (const int64_t count : {1, 17, 64, 4001, 4096}) {
      Arrays copied(rule, count), plain(rule, count);
      for (Arrays* arrays : {&copied, &plain}) {
        arrays->gradient[1] = std::nanf("");
        arrays->parameter.back() = std::numeric_limits<float>::infinity();
      }
      std::vector<Bf16> bf16_copy(static_cast<size_t>(count) + 2, kUntouched);
      UpdateTensor tensor = copied.tensor();
      tensor.bf16_copy = bf16_copy.data() + 1;
      update_chunk(rule, tensor);
      update_chunk(rule, plain.tensor());
      for (size_t i = 1; i <= static_cast<size_t>(count); ++i) {
        // A NaN may keep its sign.
        const int sign = std::isnan(copied.parameter[i]) ? 0x8000 : 0;
        ASSERT_EQ(bf16_copy[i].bits | sign, rounded(copied.parameter[i]) | sign);
      }
      EXPECT_EQ(bf16_copy.front().bits, kUntouched.bits);
      EXPECT_EQ(bf16_copy.back().bits, kUntouched.bits);
      EXPECT_EQ(std::memcmp(copied.parameter.data(), plain.parameter.data(),
                            sizeof(float) * static_cast<size_t>(count + 1)),
                0);
    }
  }
}

// The squares of such gradients exceed the range of fp32, and so do second moments.
TEST_P(EveryIsa, LargeGradientsLeaveFiniteParameters) {
  for (const UpdateRule& rule : update_rules()) {
    // Steps of others are in proportion to gradients.
    const std::string name = rule.name;
    const bool is_scaled = name.find("adam") != std::string::npos || name == "lamb" ||
                           name.find("rmsprop") != std::string::npos;
    if (!is_scaled) continue;
    Arrays arrays(rule, 64);
    for (size_t i = 1; i < arrays.gradient.size(); i += 5) arrays.gradient[i] = 1e21F;
    for (auto& state : arrays.states) std::fill(state.begin(), state.end(), 0.0F);
    update_chunk(rule, arrays.tensor());
    for (const float parameter : arrays.parameter) {
      EXPECT_TRUE(std::isfinite(parameter)) << rule.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Update, EveryIsa, every_isa());

TEST(Update, DoesNotDependOnTheNumberOfThreadsAndReturnsTheUnclippedNorm) {
  const int threads = at::get_num_threads();
  for (const UpdateRule& rule : update_rules()) {
    std::vector<std::vector<float>> results;
    std::vector<double> norms;
    for (const int count : {1, 2, 3}) {
      at::set_num_threads(count);
      Arrays small(rule, 10), large(rule, 70'001), middle(rule, 5000);
      norms.push_back(update(rule, std::vector{small.tensor(), large.tensor(), middle.tensor()}));
      norms.push_back(norm(std::vector<ConstArray>{{small.gradient.data() + 1, 10},
                                                   {large.gradient.data() + 1, 70'001},
                                                   {middle.gradient.data() + 1, 5000}}));
      results.push_back(large.parameter);
    }
    at::set_num_threads(threads);
    for (const double norm : norms) EXPECT_EQ(norm, norms.front());
    for (const auto& result : results) EXPECT_EQ(result, results.front()) << rule.name;
    EXPECT_EQ(update(rule, {}), 0);
  }
}

TEST(Update, ReportsNonFiniteGradients) {
  for (const UpdateRule& rule : update_rules()) {
    Arrays arrays(rule, 10'000);
    arrays.gradient[7000] = std::nanf("");
    EXPECT_FALSE(std::isfinite(update(rule, std::vector{arrays.tensor()})));
    EXPECT_FALSE(std::isfinite(arrays.parameter[7000])) << rule.name;
  }
}

TEST(Update, FlushesDenormalMoments) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "this machine has no such mode";
#endif
  constexpr float kTiny = 1e-40F;
  Arrays arrays(update_rule("adamw"), 1000);
  std::fill(arrays.gradient.begin(), arrays.gradient.end(), 0.0F);
  for (auto& state : arrays.states) std::fill(state.begin(), state.end(), kTiny);
  EXPECT_EQ(update(arrays.rule, std::vector{arrays.tensor()}), 0);
  EXPECT_EQ(arrays.states[0][999], 0);
  EXPECT_EQ(arrays.states[1][1], 0);
  // The mode ends with the call.
  volatile float tiny = kTiny;
  EXPECT_GT(tiny * 0.5F, 0);
}

TEST(UpdateRules, HaveUniqueNames) {
  for (const UpdateRule& rule : update_rules())
    EXPECT_EQ(update_rule(rule.name).number, rule.number);
  EXPECT_THROW(update_rule("nothing"), InternalError);
}

// Two parameters of a rule: one whose weight decay may vary, and one with its own.
OptimizerStep step_of(const UpdateRule& rule, bool is_scheduled) {
  const Arrays arrays(rule, 70);
  OptimizerStep step{.rule = rule.name,
                     .options = arrays.options,
                     .weight_decays = {0.25, 0.5},
                     .indices = {0, 1},
                     .steps = at::full({2}, 2, at::kFloat),
                     .lr = at::full({}, 0.125, at::kFloat)};
  for (int i = 0; i < 2; ++i) {
    step.parameters.push_back(at::tensor(at::ArrayRef<float>(arrays.parameter)));
    step.gradients.push_back(at::tensor(at::ArrayRef<float>(arrays.gradient)));
  }
  for (const auto& state : arrays.states) {
    for (int i = 0; i < 2; ++i) step.states.push_back(at::tensor(at::ArrayRef<float>(state)));
  }
  if (rule.running > 0) step.running = at::full({2, rule.running}, 0.5, at::kDouble);
  if (!is_scheduled) return step;
  for (size_t i = 0; i < step.options.size(); ++i) {
    step.scheduled.push_back(at::scalar_tensor(step.options[i], at::kDouble));
    step.scheduled_options.push_back(static_cast<int64_t>(i));
    step.options[i] = 0.125;  // Which does not count.
  }
  step.scheduled.push_back(at::scalar_tensor(0.25, at::kDouble));
  step.scheduled_options.push_back(kWeightDecayOption);
  step.weight_decays[0] = kScheduledDecay;
  return step;
}

TEST(OptimizerStep, ScheduledOptionsMatchConstantOnes) {
  for (const UpdateRule& rule : update_rules()) {
    for (const bool by_operators : {false, true}) {
      const OptimizerStep fixed = step_of(rule, false), scheduled = step_of(rule, true);
      for (const OptimizerStep* step : {&fixed, &scheduled}) {
        by_operators ? update_by_operators(*step) : static_cast<void>(update(*step));
      }
      for (size_t i = 0; i < 2; ++i) {
        EXPECT_TRUE(at::equal(scheduled.parameters[i], fixed.parameters[i])) << rule.name << i;
      }
      for (size_t k = 0; k < fixed.states.size(); ++k) {
        EXPECT_TRUE(at::equal(scheduled.states[k], fixed.states[k])) << rule.name << k;
      }
      if (rule.running > 0) {
        EXPECT_TRUE(at::equal(scheduled.running, fixed.running)) << rule.name;
      }
    }
  }
}

TEST(OptimizerStep, RejectsOptionsThatTheRuleDoesNotHave) {
  for (const int64_t number : {int64_t{-2}, int64_t{3}}) {
    OptimizerStep step = step_of(update_rule("adamw"), false);
    step.scheduled = {at::scalar_tensor(0.5, at::kDouble)};
    step.scheduled_options = {number};
    EXPECT_THROW(update(step), InternalError);
  }
}

TEST(OptimizerStep, RejectsListsThatDoNotMatchTheRule) {
  EXPECT_THROW(update({.rule = "adamw",
                       .options = {0.9, 0.999, 1e-8},
                       .parameters = {at::full({3}, 1.0)},
                       .gradients = {at::full({3}, 1.0)},
                       .lr = at::full({}, 0.1)}),
               InternalError);
}

}  // namespace
}  // namespace gallop::kernel
