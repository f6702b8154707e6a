// States in 8 bits, against the paper's construction and plain loops in fp64.
#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "unit/kernel/update_cases.h"

namespace gallop::kernel {
namespace {

// The map of Dettmers et al., as create_dynamic_map() of their bitsandbytes makes it: in each
// decade the middles between evenly spaced bounds from 0.1 to 1; besides 0 and 1; sorted.
std::vector<double> published_map(bool is_signed) {
  std::vector<double> numbers = {0, 1};
  for (int decade = 0; decade < 7; ++decade) {
    const int cells = is_signed ? 1 << decade : 2 << decade;
    for (int cell = 0; cell < cells; ++cell) {
      const double low = 0.1 + 0.9 * cell / cells, high = 0.1 + 0.9 * (cell + 1) / cells;
      const double number = std::pow(10.0, decade - 6) * (low + high) / 2;
      numbers.push_back(number);
      if (is_signed) numbers.push_back(-number);
    }
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

// Distance to the nearest value of a map.
double least_distance(const std::vector<double>& map, double number) {
  double least = INFINITY;
  for (const double one : map) least = std::min(least, std::abs(one - number));
  return least;
}

std::vector<float> numbers_of_all_decades(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<float> result(count);
  // Over all the decades of the map.
  for (float& number : result) {
    number = static_cast<float>(normal(random) * std::pow(10.0, -3 * std::abs(normal(random))));
  }
  return result;
}

// Arrays of one tensor, a byte of which behind the codes belongs to no tensor.
struct Arrays {
  static constexpr uint8_t kNobodys = 77;

  Arrays(const UpdateRule& of, int64_t count)
      : rule(of),
        size(count),
        parameter(numbers_of_all_decades(static_cast<size_t>(count), 1)),
        gradient(numbers_of_all_decades(static_cast<size_t>(count), 2)) {
    for (int k = 0; k < rule.states; ++k) {
      const bool is_signed = (rule.signs_of_8_bits >> k & 1) != 0;
      codes.emplace_back(static_cast<size_t>(count) + 1, is_signed ? 127 : 0);
      codes.back().back() = kNobodys;
      scales.emplace_back(static_cast<size_t>((count + kStateBlock - 1) / kStateBlock), 0.0F);
    }
  }

  UpdateTensor tensor(double step) {
    UpdateTensor tensor;
    tensor.parameter = parameter.data();
    tensor.gradient = gradient.data();
    tensor.size = size;
    tensor.gradient_scale = 0.5F;
    for (size_t k = 0; k < codes.size(); ++k) {
      tensor.codes[k] = codes[k].data();
      tensor.scales[k] = scales[k].data();
    }
    tensor.moment = {.step = step, .lr = 0.125, .weight_decay = 0.25, .options = options.data()};
    begin_update(rule, tensor);
    return tensor;
  }

  // A state in fp64.
  std::vector<double> state(size_t k) const {
    const auto map = published_map((rule.signs_of_8_bits >> k & 1) != 0);
    std::vector<double> all;
    for (size_t i = 0; i < static_cast<size_t>(size); ++i) {
      all.push_back(map[codes[k][i]] * static_cast<double>(scales[k][i / kStateBlock]));
    }
    return all;
  }

  const UpdateRule& rule;
  int64_t size;
  std::vector<float> parameter, gradient;
  std::vector<std::vector<uint8_t>> codes;
  std::vector<std::vector<float>> scales;
  std::vector<double> options{0.75, 0.875, 1e-3};
};

// The formulas of Adam, AdamW and Lion for one number.
void update_exactly(const std::string& rule, const UpdateTensor& t, double g, double& p,
                    double* s) {
  const double beta1 = t.moment.options[0], beta2 = t.moment.options[1], lr = t.moment.lr;
  const double decay = t.moment.weight_decay;
  g *= 0.5;
  if (rule == "lion") {
    const double mixed = beta1 * s[0] + (1 - beta1) * g;
    p -= lr * decay * p + lr * (mixed > 0 ? 1 : mixed < 0 ? -1 : 0);
    s[0] = beta2 * s[0] + (1 - beta2) * g;
    return;
  }
  if (rule == "adam") g += decay * p;
  if (rule == "adamw") p -= lr * decay * p;
  s[0] = beta1 * s[0] + (1 - beta1) * g;
  s[1] = beta2 * s[1] + (1 - beta2) * g * g;
  const double m = s[0] / (1 - std::pow(beta1, t.moment.step));
  const double v = s[1] / (1 - std::pow(beta2, t.moment.step));
  p -= lr * m / (std::sqrt(v) + t.moment.options[2]);
}

std::vector<const UpdateRule*> rules_in_8_bits() {
  std::vector<const UpdateRule*> rules;
  for (const UpdateRule& rule : update_rules()) {
    if (rule.signs_of_8_bits >= 0) rules.push_back(&rule);
  }
  return rules;
}

class States8OfIsa : public IsaTest {
 protected:
  UpdateKernelFunction body(const UpdateRule& rule) const {
    return kernels_for<UpdateKernels>(GetParam()).rules[rule.number];
  }
};

// Adam's factors, so that an update shows what it decodes: p = m / (eps + root_scale * sqrt(v)).
UpdateTensor that_shows(Arrays& arrays, float root_scale, float added) {
  UpdateTensor tensor = arrays.tensor(1);
  const std::vector<float> factors = {0, 1, 0, added, 0, -1, root_scale};
  std::copy(factors.begin(), factors.end(), tensor.factors);
  return tensor;
}

TEST_P(States8OfIsa, CodesMatchThePublishedMap) {
  const auto with_sign = published_map(true), without = published_map(false);
  ASSERT_EQ(with_sign.size(), 256u);
  ASSERT_EQ(without.size(), 256u);
  const UpdateRule& adamw = update_rule("adamw");
  for (const bool second : {false, true}) {
    Arrays arrays(adamw, 256);
    for (size_t i = 0; i < 256; ++i) {
      arrays.codes[0][i] = second ? 255 : static_cast<uint8_t>(i);
      arrays.codes[1][i] = second ? static_cast<uint8_t>(i) : 0;
    }
    arrays.codes[1][255] = 255;  // Or the scale would fall to 0.
    arrays.scales = {{3}, {5}};
    std::fill(arrays.parameter.begin(), arrays.parameter.end(), 0.0F);
    const auto before = arrays.codes;
    body(adamw).update_8_bits(second ? that_shows(arrays, 1, 1e-20F) : that_shows(arrays, 0, 1));
    for (size_t i = second ? 1 : 0; i < 256; ++i) {
      const double wanted = second ? 3 / std::sqrt(5 * without[i]) : 3 * with_sign[i];
      ASSERT_NEAR(arrays.parameter[i], wanted, 2e-6 * std::abs(wanted)) << i;
    }
    // What has not changed keeps its codes.
    EXPECT_EQ(arrays.codes, before);
    EXPECT_EQ(arrays.scales, (std::vector<std::vector<float>>{{3}, {5}}));
  }
}

TEST_P(States8OfIsa, MatchThePapersUpdate) {
  for (const UpdateRule* rule : rules_in_8_bits()) {
    for (const int64_t count : {1, 63, 64, 255, 256, 257, 1000, 4096}) {
      Arrays arrays(*rule, count);
      for (int step = 1; step <= 4; ++step) {
        arrays.gradient =
            numbers_of_all_decades(static_cast<size_t>(count), 10 + static_cast<uint64_t>(step));
        std::vector<std::vector<double>> states;
        for (size_t k = 0; k < arrays.codes.size(); ++k) states.push_back(arrays.state(k));
        std::vector<double> wanted(arrays.parameter.begin(), arrays.parameter.end());
        const UpdateTensor tensor = arrays.tensor(step);
        for (size_t i = 0; i < wanted.size(); ++i) {
          double s[kMostStates] = {};
          for (size_t k = 0; k < states.size(); ++k) s[k] = states[k][i];
          update_exactly(rule->name, tensor, arrays.gradient[i], wanted[i], s);
          for (size_t k = 0; k < states.size(); ++k) states[k][i] = s[k];
        }
        const double sum = body(*rule).update_8_bits(tensor);
        EXPECT_EQ(sum, kernels_for<UpdateKernels>(GetParam())
                           .sum_of_squares({.data = arrays.gradient.data(), .size = count}));
        for (size_t i = 0; i < wanted.size(); ++i) {
          ASSERT_NEAR(arrays.parameter[i], wanted[i], 4e-6 * (1 + std::abs(wanted[i])))
              << rule->name << ' ' << i << " of " << count << ", step " << step;
        }
        for (size_t k = 0; k < states.size(); ++k) {
          const auto map = published_map((rule->signs_of_8_bits >> k & 1) != 0);
          for (size_t begin = 0; begin < states[k].size(); begin += kStateBlock) {
            const size_t end = std::min(begin + kStateBlock, states[k].size());
            double most = 0;
            for (size_t i = begin; i < end; ++i) most = std::max(most, std::abs(states[k][i]));
            ASSERT_NEAR(arrays.scales[k][begin / kStateBlock] / most, 1, 1e-5);
            for (size_t i = begin; i < end; ++i) {
              const double share = states[k][i] / most;
              const double distance = std::abs(map[arrays.codes[k][i]] - share);
              ASSERT_LE(distance, least_distance(map, share) + 2e-5 * std::abs(share) + 1e-12)
                  << rule->name << " state " << k << ", " << i << " of " << count;
            }
          }
          EXPECT_EQ(arrays.codes[k].back(), Arrays::kNobodys);
        }
      }
    }
  }
}

TEST_P(States8OfIsa, ABlockOfZerosRemainsZero) {
  for (const UpdateRule* rule : rules_in_8_bits()) {
    Arrays arrays(*rule, 300);
    std::fill(arrays.gradient.begin(), arrays.gradient.end(), 0.0F);
    if (std::string(rule->name) == "adam") {
      std::fill(arrays.parameter.begin(), arrays.parameter.end(), 0.0F);
    }
    const auto codes = arrays.codes;
    body(*rule).update_8_bits(arrays.tensor(1));
    EXPECT_EQ(arrays.codes, codes);
    for (const auto& scales : arrays.scales) EXPECT_EQ(scales, std::vector<float>(2, 0.0F));
  }
}

TEST_P(States8OfIsa, SupportsBf16GradientsAndBf16Copies) {
  for (const UpdateRule* rule : rules_in_8_bits()) {
    Arrays fp32(*rule, 700), bf16(*rule, 700);
    std::vector<Bf16> gradient, bf16_copy(700);
    for (float& number : fp32.gradient) {
      const uint32_t bits = std::bit_cast<uint32_t>(number) & 0xffff0000U;
      number = std::bit_cast<float>(bits);
      gradient.push_back({static_cast<uint16_t>(bits >> 16)});
    }
    UpdateTensor tensor = bf16.tensor(1);
    tensor.gradient = nullptr;
    tensor.bf16_gradient = gradient.data();
    tensor.bf16_copy = bf16_copy.data();
    EXPECT_EQ(body(*rule).update_8_bits(tensor), body(*rule).update_8_bits(fp32.tensor(1)));
    EXPECT_EQ(bf16.parameter, fp32.parameter);
    EXPECT_EQ(bf16.codes, fp32.codes);
    for (size_t i = 0; i < bf16_copy.size(); ++i) {
      const float narrow = std::bit_cast<float>(static_cast<uint32_t>(bf16_copy[i].bits) << 16);
      EXPECT_NEAR(narrow, bf16.parameter[i], std::abs(bf16.parameter[i]) / 256 + 1e-38);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernel, States8OfIsa, every_isa());

TEST(States8, DoNotDependOnTheNumberOfThreads) {
  const int threads = at::get_num_threads();
  for (const UpdateRule* rule : rules_in_8_bits()) {
    std::vector<Arrays> results;
    std::vector<double> norms;
    for (const int count : {1, 2, 3}) {
      at::set_num_threads(count);
      Arrays small(*rule, 5000), large(*rule, 70'001);
      norms.push_back(update(*rule, std::vector{small.tensor(1), large.tensor(1)}));
      results.push_back(std::move(large));
    }
    at::set_num_threads(threads);
    for (const double norm : norms) EXPECT_EQ(norm, norms.front());
    for (const Arrays& result : results) {
      EXPECT_EQ(result.parameter, results.front().parameter) << rule->name;
      EXPECT_EQ(result.codes, results.front().codes) << rule->name;
      EXPECT_EQ(result.scales, results.front().scales) << rule->name;
    }
  }
}

}  // namespace
}  // namespace gallop::kernel
