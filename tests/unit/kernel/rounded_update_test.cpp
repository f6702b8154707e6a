// Updates of bf16 parameters, against plain loops: stochastic rounding as torchao has it
// (_fp32_to_bf16_sr), and Kahan's summation as optimi has it.
#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <c10/util/BFloat16.h>
#include <gtest/gtest.h>

#include "gallop/base/philox.h"
#include "unit/kernel/update_cases.h"

namespace gallop::kernel {
namespace {

constexpr uint64_t kSeed = 0x123456789ABCDEFULL;
constexpr Rounding kAllRoundings[] = {Rounding::kNearest, Rounding::kStochastic, Rounding::kKahan};

Bf16 nearest(float number) { return {c10::BFloat16(number).x}; }
float wide(Bf16 number) { return std::bit_cast<float>(static_cast<uint32_t>(number.bits) << 16); }

RoundingDraw draw_of(uint64_t seed, uint32_t parameter, uint64_t step) {
  const auto key = Philox::key_of(seed, Purpose::kRounding);
  return {.key = {key[0], key[1]},
          .counter = {parameter, static_cast<uint32_t>(step), static_cast<uint32_t>(step >> 32)}};
}

// The 16 bits of a number, by the definition.
uint32_t random_of(const RoundingDraw& draw, int64_t place) {
  const auto words =
      philox4x32({draw.key[0], draw.key[1]}, {static_cast<uint32_t>(place / 128 * 16 + place % 16),
                                              draw.counter[0], draw.counter[1], draw.counter[2]});
  const int64_t part = place % 128 / 16;
  return words[static_cast<size_t>(part / 2)] >> (part % 2 == 0 ? 0 : 16) & 0xFFFFU;
}

// torchao: away from zero where a random number is below the fraction that bf16 has no room for.
Bf16 stochastic(float number, uint32_t random) {
  const auto bits = std::bit_cast<uint32_t>(number);
  const uint32_t fraction = bits & 0xFFFFU, down = bits & 0xFFFF0000U;
  return {static_cast<uint16_t>((0xFFFFU - random < fraction ? down + 0x10000U : down) >> 16)};
}

// A tensor of a rule in bf16, with a number before and behind it that must not be touched.
struct Arrays {
  static constexpr Bf16 kNobodys{0x1234};

  Arrays(const UpdateRule& of, int64_t count)
      : rule(of),
        size(count),
        gradient(numbers(count, 2)),
        options(static_cast<size_t>(of.options), 0.75),
        running(static_cast<size_t>(of.running), 0.5) {
    const std::vector<float> given = numbers(count, 1), more = numbers(count, 9);
    parameter.push_back(kNobodys);
    compensation.push_back(kNobodys);
    for (size_t i = 0; i < given.size(); ++i) {
      parameter.push_back(nearest(given[i]));
      compensation.push_back(nearest(more[i] * 1e-3F));
    }
    parameter.push_back(kNobodys);
    compensation.push_back(kNobodys);
    for (int k = 0; k < rule.states; ++k) {
      states.push_back(numbers(count, 3 + static_cast<uint64_t>(k)));
      for (float& number : states.back()) number = number * number + 0.25F;
    }
  }

  UpdateTensor tensor(Rounding rounding) {
    UpdateTensor tensor;
    tensor.bf16_parameter = parameter.data() + 1;
    tensor.rounding = rounding;
    if (rounding == Rounding::kKahan) tensor.compensation = compensation.data() + 1;
    tensor.draw = draw_of(kSeed, 5, 77);
    fill_in(tensor);
    return tensor;
  }
  // The same numbers in fp32, which `values` gets.
  UpdateTensor wide_tensor(Rounding rounding, std::vector<float>& values) {
    for (size_t i = 1; i + 1 < parameter.size(); ++i) {
      values.push_back(wide(parameter[i]) +
                       (rounding == Rounding::kKahan ? wide(compensation[i]) : 0.0F));
    }
    UpdateTensor tensor;
    tensor.parameter = values.data();
    fill_in(tensor);
    return tensor;
  }
  void fill_in(UpdateTensor& tensor) {
    tensor.gradient = gradient.data();
    for (size_t k = 0; k < states.size(); ++k) tensor.states[k] = states[k].data();
    tensor.size = size;
    tensor.gradient_scale = 0.125F;
    tensor.moment = {.step = 3,
                     .lr = 0.125,
                     .weight_decay = 0.25,
                     .options = options.data(),
                     .running = running.data()};
    begin_update(rule, tensor);
  }

  const UpdateRule& rule;
  int64_t size;
  std::vector<Bf16> parameter, compensation;
  std::vector<float> gradient;
  std::vector<std::vector<float>> states;
  std::vector<double> options, running;
};

class RoundedUpdate : public UpdateTest {};

// The expected arrays if the update in fp32 gives `exact`.
void expect_rounded(const Arrays& arrays, Rounding rounding, const std::vector<float>& exact,
                    const UpdateTensor& tensor) {
  for (size_t i = 0; i < exact.size(); ++i) {
    const Bf16 found = arrays.parameter[i + 1];
    const auto place = static_cast<int64_t>(i);
    const Bf16 wanted = rounding == Rounding::kStochastic
                            ? stochastic(exact[i], random_of(tensor.draw, place))
                            : nearest(exact[i]);
    ASSERT_EQ(found.bits, wanted.bits) << arrays.rule.name << ' ' << i << " of " << exact.size();
    if (rounding != Rounding::kKahan) continue;
    ASSERT_EQ(arrays.compensation[i + 1].bits, nearest(exact[i] - wide(wanted)).bits) << i;
  }
  for (const auto* array : {&arrays.parameter, &arrays.compensation}) {
    EXPECT_EQ(array->front().bits, Arrays::kNobodys.bits);
    EXPECT_EQ(array->back().bits, Arrays::kNobodys.bits);
  }
}

TEST_P(RoundedUpdate, IsTheRoundedFp32Update) {
  for (const UpdateRule& rule : update_rules()) {
    for (const int64_t count : {1, 15, 64, 127, 128, 129, 1000, 4096}) {
      for (const Rounding rounding : kAllRoundings) {
        Arrays narrow(rule, count), fp32(rule, count);
        const UpdateTensor tensor = narrow.tensor(rounding);
        std::vector<float> exact;
        const UpdateTensor plain = fp32.wide_tensor(rounding, exact);
        EXPECT_EQ(update_chunk(rule, tensor), update_chunk(rule, plain));
        EXPECT_EQ(narrow.states, fp32.states) << rule.name;
        expect_rounded(narrow, rounding, exact, tensor);
      }
    }
  }
}

TEST_P(RoundedUpdate, StoresStatesIn8BitsLikeTheFp32Update) {
  for (const UpdateRule& rule : update_rules()) {
    if (rule.signs_of_8_bits < 0) continue;
    for (const Rounding rounding : kAllRoundings) {
      Arrays narrow(rule, 1000), fp32(rule, 1000);
      std::vector<float> exact;
      UpdateTensor both[] = {narrow.tensor(rounding), fp32.wide_tensor(rounding, exact)};
      std::vector<std::vector<uint8_t>> codes(4, std::vector<uint8_t>(1000, 140));
      std::vector<std::vector<float>> scales(4, std::vector<float>(4, 0.5F));
      for (size_t t = 0; t < 2; ++t) {
        for (size_t k = 0; k < static_cast<size_t>(rule.states); ++k) {
          both[t].codes[k] = codes[2 * t + k].data();
          both[t].scales[k] = scales[2 * t + k].data();
        }
        kernels_for<UpdateKernels>(GetParam()).rules[rule.number].update_8_bits(both[t]);
      }
      EXPECT_EQ(codes[0], codes[2]);
      EXPECT_EQ(scales[1], scales[3]);
      expect_rounded(narrow, rounding, exact, both[0]);
    }
  }
}

// One step of SGD from some numbers, so that gradients are what is taken away.
std::vector<Bf16> after_sgd(Isa isa, const std::vector<float>& from, const std::vector<float>& less,
                            Rounding rounding, std::vector<Bf16>* compensation = nullptr) {
  std::vector<Bf16> result;
  for (const float number : from) result.push_back(nearest(number));
  UpdateTensor tensor;
  tensor.bf16_parameter = result.data();
  tensor.rounding = rounding;
  if (compensation != nullptr) tensor.compensation = compensation->data();
  tensor.draw = draw_of(kSeed, 0, 1);
  tensor.gradient = less.data();
  tensor.size = static_cast<int64_t>(from.size());
  const UpdateRule& rule = update_rule("sgd");
  double factors[kMostFactors], next[kMostRunning];
  std::vector<double> options(static_cast<size_t>(rule.options), 0.0);
  rule.begin({.step = 1, .lr = 1, .options = options.data()}, factors, next);
  for (int i = 0; i < rule.factors; ++i) tensor.factors[i] = static_cast<float>(factors[i]);
  kernels_for<UpdateKernels>(isa).rules[rule.number].update(tensor);
  return result;
}

TEST_P(RoundedUpdate, PreservesNonFiniteValues) {
  const float most = std::numeric_limits<float>::max(), infinity = INFINITY;
  for (const Rounding rounding : kAllRoundings) {
    std::vector<Bf16> compensation(4, {0});
    auto* const kept = rounding == Rounding::kKahan ? &compensation : nullptr;
    const auto found = after_sgd(GetParam(), {1, 1, 1, 0x1.FEp127F},
                                 {-infinity, infinity, std::nanf(""), -most / 2}, rounding, kept);
    EXPECT_EQ(wide(found[0]), infinity);
    EXPECT_EQ(wide(found[1]), -infinity);
    EXPECT_TRUE(std::isnan(wide(found[2])));
    EXPECT_EQ(wide(found[3]), infinity);
    for (const Bf16 lost : compensation) EXPECT_EQ(lost.bits & 0x7FFF, 0);
  }
}

TEST_P(RoundedUpdate, KeepsRepresentableValues) {
  for (const Rounding rounding : kAllRoundings) {
    std::vector<float> exact;
    for (int i = 0; i < 1000; ++i) exact.push_back(static_cast<float>(i % 256) - 128);
    std::vector<Bf16> compensation(exact.size(), {0});
    auto* const kept = rounding == Rounding::kKahan ? &compensation : nullptr;
    const auto found =
        after_sgd(GetParam(), exact, std::vector<float>(exact.size()), rounding, kept);
    for (size_t i = 0; i < exact.size(); ++i) EXPECT_EQ(wide(found[i]), exact[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, RoundedUpdate, every_isa());

// Steps of SGD over some numbers that begin at 1, each taking `less` from them.
struct Descent {
  explicit Descent(size_t count, Rounding of) : rounding(of), values(count, nearest(1)) {
    if (rounding == Rounding::kKahan) compensation.assign(count, {0});
  }
  void step(float less, uint64_t number, uint32_t parameter = 0) {
    std::vector<float> gradient(values.size(), less);
    UpdateTensor tensor;
    tensor.bf16_parameter = values.data();
    tensor.rounding = rounding;
    tensor.compensation = compensation.empty() ? nullptr : compensation.data();
    tensor.draw = draw_of(kSeed, parameter, number);
    tensor.gradient = gradient.data();
    tensor.size = static_cast<int64_t>(values.size());
    const UpdateRule& rule = update_rule("sgd");
    double factors[kMostFactors], next[kMostRunning];
    const std::vector<double> options(static_cast<size_t>(rule.options), 0.0);
    rule.begin({.step = 1, .lr = 1, .options = options.data()}, factors, next);
    for (int i = 0; i < rule.factors; ++i) tensor.factors[i] = static_cast<float>(factors[i]);
    update(rule, std::vector{tensor});
  }
  double mean() const {
    double sum = 0;
    for (const Bf16 value : values) sum += static_cast<double>(wide(value));
    return sum / static_cast<double>(values.size());
  }

  Rounding rounding;
  std::vector<Bf16> values, compensation;
};

constexpr double kUlpBelowOne = 0x1p-8;

TEST(StochasticRounding, IsUnbiased) {
  constexpr size_t kCount = 1 << 20;
  for (const double share : {0.5, 0.25, 0.1, 0.01, 0.9}) {
    Descent run(kCount, Rounding::kStochastic);
    run.step(static_cast<float>(share * kUlpBelowOne), 3);
    for (const Bf16 value : run.values) {
      ASSERT_TRUE(wide(value) == 1 || static_cast<double>(wide(value)) == 1 - kUlpBelowOne);
    }
    // Four deviations of a mean of so many.
    const double deviation = kUlpBelowOne * std::sqrt(share * (1 - share) / kCount);
    EXPECT_NEAR(run.mean(), 1 - share * kUlpBelowOne, 4 * deviation) << share;
  }
}

// How often two rows of roundings agree, where each goes down half the time.
void expect_independent(const std::vector<Bf16>& a, const std::vector<Bf16>& b, size_t shift) {
  const size_t count = a.size() - shift;
  double equal = 0;
  for (size_t i = 0; i < count; ++i) equal += a[i].bits == b[i + shift].bits ? 1 : 0;
  EXPECT_NEAR(equal / static_cast<double>(count), 0.5, 2 / std::sqrt(static_cast<double>(count)));
}

TEST(StochasticRounding, DrawsIndependentlyForEachElementStepAndParameter) {
  const auto half = static_cast<float>(kUlpBelowOne / 2);
  const auto drawn = [&](uint64_t step, uint32_t parameter) {
    Descent run(1 << 16, Rounding::kStochastic);
    run.step(half, step, parameter);
    return run.values;
  };
  const auto first = drawn(1, 0);
  for (const size_t shift : {1, 8, 16, 32, 64, 128, 4096}) expect_independent(first, first, shift);
  expect_independent(first, drawn(2, 0), 0);
  expect_independent(first, drawn(1ULL << 32 | 1, 0), 0);
  expect_independent(first, drawn(1, 1), 0);
}

// The purpose of compensated rounding: updates, each of which is below the resolution of bf16.
TEST(Rounding, AccumulatesTinyUpdatesThatRoundToNearestLoses) {
  constexpr int kSteps = 4000;
  constexpr size_t kCount = 4096;
  const auto tiny = static_cast<float>(kUlpBelowOne / 50);
  Descent stands(kCount, Rounding::kNearest), random(kCount, Rounding::kStochastic),
      kahan(kCount, Rounding::kKahan);
  float in_fp32 = 1;
  for (int step = 0; step < kSteps; ++step) {
    for (Descent* run : {&stands, &random, &kahan}) run->step(tiny, static_cast<uint64_t>(step));
    in_fp32 -= tiny;
  }
  const auto wanted = static_cast<double>(in_fp32);
  EXPECT_LT(wanted, 0.7);
  EXPECT_EQ(stands.mean(), 1);
  // What is lost is rounded as well, by up to 1/20 of such an update and always the same way.
  EXPECT_NEAR(kahan.mean(), wanted, 0.02 * (1 - wanted));
  // A number's deviation is at most that of so many fair coins, an ulp each.
  const double deviation = kUlpBelowOne * std::sqrt(kSteps / 50.0 / kCount);
  EXPECT_NEAR(random.mean(), wanted, 4 * deviation);
}

// optimi's: all in bf16, with the update added to what was lost before.
TEST(Rounding, IsAsAccurateAsKahanInOptimi) {
  constexpr int kSteps = 2000;
  Descent run(1, Rounding::kKahan);
  c10::BFloat16 theirs = 1, lost = 0;
  double exact = 1;
  std::mt19937_64 numbers(4);
  std::uniform_real_distribution<float> any(-0.2F, 1);
  for (int step = 0; step < kSteps; ++step) {
    const float less = any(numbers) * static_cast<float>(kUlpBelowOne / 20);
    run.step(less, static_cast<uint64_t>(step));
    exact -= static_cast<double>(less);
    lost = c10::BFloat16(static_cast<float>(lost) - less);
    const c10::BFloat16 before = theirs;
    theirs = c10::BFloat16(static_cast<float>(before) + static_cast<float>(lost));
    const c10::BFloat16 moved(static_cast<float>(before) - static_cast<float>(theirs));
    lost = c10::BFloat16(static_cast<float>(lost) + static_cast<float>(moved));
    ASSERT_NEAR(wide(run.values[0]), static_cast<float>(theirs), kUlpBelowOne) << step;
  }
  const double ours =
      static_cast<double>(wide(run.values[0])) + static_cast<double>(wide(run.compensation[0]));
  const double error = std::abs(static_cast<double>(static_cast<float>(theirs)) +
                                static_cast<double>(static_cast<float>(lost)) - exact);
  EXPECT_LE(std::abs(ours - exact), std::max(error, kUlpBelowOne / 8));
}

TEST(Rounding, DoesNotDependOnThreadsOrNeighbors) {
  const int threads = at::get_num_threads();
  for (const Rounding rounding : kAllRoundings) {
    for (const UpdateRule& rule : update_rules()) {
      std::vector<std::vector<uint16_t>> results;
      for (const int count : {1, 2, 3}) {
        at::set_num_threads(count);
        Arrays large(rule, 70'001), small(rule, 10);
        std::vector<UpdateTensor> tensors = {large.tensor(rounding)};
        if (count == 2) tensors.insert(tensors.begin(), small.tensor(rounding));
        update(rule, tensors);
        results.emplace_back();
        for (const auto* array : {&large.parameter, &large.compensation}) {
          for (const Bf16 number : *array) results.back().push_back(number.bits);
        }
      }
      at::set_num_threads(threads);
      for (const auto& result : results) EXPECT_EQ(result, results.front()) << rule.name;
    }
  }
}

// Where no root is taken, nor a quotient, which machines with fused multiply-add compute alike.
TEST(Rounding, IsBitIdenticalForAllInstructionSets) {
  for (const Rounding rounding : kAllRoundings) {
    std::vector<std::vector<uint16_t>> results;
    for (const Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16, Isa::kAmx}) {
      if (!has(isa)) continue;
      const UpdateRule& rule = update_rule("lion");
      Arrays arrays(rule, 4000);
      kernels_for<UpdateKernels>(isa).rules[rule.number].update(arrays.tensor(rounding));
      results.emplace_back();
      for (const Bf16 number : arrays.parameter) results.back().push_back(number.bits);
    }
    if (results.size() < 2) GTEST_SKIP() << "this machine has one of them";
    for (const auto& result : results) EXPECT_EQ(result, results.front());
  }
}

}  // namespace
}  // namespace gallop::kernel
