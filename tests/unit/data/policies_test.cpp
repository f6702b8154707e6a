#include "gallop/data/augmentations/policies.h"

#include <array>
#include <cmath>
#include <map>
#include <numbers>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/data/augmentations/policy_space.h"
#include "unit/data/chi_square.h"
#include "unit/data/drawn.h"
#include "unit/fixtures.h"

namespace gallop::data {
namespace {

using nlohmann::json;

const ImageShape kShape{150, 200, 3};
constexpr std::array kPolicies = {Policy::kRandAugment, Policy::kTrivialAugmentWide,
                                  Policy::kAutoAugment, Policy::kAugMix};
constexpr std::array kPolicyNames = {"rand-augment", "trivial-augment-wide", "auto-augment",
                                     "aug-mix"};

json fixture() { return json::parse(read_file(fixtures() / "pixels.json")); }

TEST(PolicySpace, HasTheMagnitudesOfTorchvision) {
  const json all = fixture().at("magnitudes");
  for (size_t i = 0; i < kPolicies.size(); ++i) {
    const json& expected = all.at(kPolicyNames[i]);
    EXPECT_EQ(expected.size(), operations_of(kPolicies[i]).size()) << kPolicyNames[i];
    for (const PolicyOperation operation : operations_of(kPolicies[i])) {
      const json& values = expected.at(std::string(name_of(operation)));
      const int bins = values.is_null() ? 2 : static_cast<int>(values.size());
      for (int bin = 0; bin < bins; ++bin) {
        const auto magnitude = magnitude_of(kPolicies[i], operation, bin, bins, kShape);
        ASSERT_EQ(magnitude.has_value(), !values.is_null()) << name_of(operation);
        if (magnitude) {
          EXPECT_EQ(*magnitude, values[static_cast<size_t>(bin)].get<float>())
              << kPolicyNames[i] << " " << name_of(operation) << " " << bin;
        }
      }
    }
  }
}

TEST(PolicySpace, HasThePairsOfAutoAugment) {
  for (const auto& [name, pairs] : fixture().at("policies").items()) {
    const auto ours = auto_augment_pairs(name);
    ASSERT_EQ(ours.size(), pairs.size()) << name;
    for (size_t i = 0; i < ours.size(); ++i) {
      for (size_t k = 0; k < 2; ++k) {
        const json& step = pairs[i][k];
        EXPECT_EQ(name_of(ours[i][k].operation), step[0].get<std::string>()) << name << " " << i;
        EXPECT_EQ(ours[i][k].tenths / 10.0, step[1].get<double>()) << name << " " << i;
        EXPECT_EQ(ours[i][k].bin, step[2].is_null() ? -1 : step[2].get<int>()) << name << " " << i;
      }
    }
  }
  EXPECT_THROW(auto_augment_pairs("mnist"), InternalError);
}

/// One of the operations that a policy may draw next, with its probability.
struct Outcome {
  double probability;
  std::string operations;  ///< As text.
};

// Both signs of an operation, or the one way of an operation without sign.
std::vector<Outcome> signs(Policy policy, PolicyOperation operation, int bin, int bins,
                           double probability) {
  const double magnitude = magnitude_of(policy, operation, bin, bins, kShape).value_or(0);
  const auto text = [&](double value) {
    std::vector<pixels::Operation> operations;
    append_operation(operation, value, kShape, {}, operations);
    return text_of(operations);
  };
  if (!is_signed(operation)) return {{probability, text(magnitude)}};
  return {{probability / 2, text(magnitude)}, {probability / 2, text(-magnitude)}};
}

std::vector<Outcome> both(const std::vector<Outcome>& first, const std::vector<Outcome>& second) {
  std::vector<Outcome> pairs;
  for (const Outcome& a : first) {
    for (const Outcome& b : second) {
      pairs.push_back({a.probability * b.probability, a.operations + b.operations});
    }
  }
  return pairs;
}

// The operations of a policy in all bins below `drawn`, of `bins`.
std::vector<Outcome> uniform_outcomes(Policy policy, int first, int last, int bins) {
  std::vector<Outcome> outcomes;
  const auto operations = operations_of(policy);
  for (const PolicyOperation operation : operations) {
    for (int bin = first; bin <= last; ++bin) {
      const double probability =
          1.0 / (static_cast<double>(operations.size()) * (last - first + 1));
      for (Outcome& one : signs(policy, operation, bin, bins, probability)) {
        outcomes.push_back(std::move(one));
      }
    }
  }
  return outcomes;
}

void expect_outcomes(const Augmentation& augmentation, const std::vector<Outcome>& outcomes) {
  std::map<std::string, double> expected;
  for (const auto& [probability, text] : outcomes) expected[text] += probability;
  std::map<std::string, int64_t> counts;
  for (int64_t i = 0; i < kDraws; ++i) ++counts[text_of(drawn(augmentation, kShape, i))];
  expect_distribution(counts, expected, kDraws);
}

TEST(RandAugment, DrawsAsTorchvisionDoes) {
  const auto one = uniform_outcomes(Policy::kRandAugment, 9, 9, 31);
  expect_outcomes(*make_rand_augment({}), both(one, one));
  expect_outcomes(*make_rand_augment({.num_ops = 1}), one);
  expect_outcomes(*make_rand_augment({.num_ops = 0}), {{1, ""}});
  expect_outcomes(*make_rand_augment({.num_ops = 1, .magnitude = 3, .num_magnitude_bins = 5}),
                  uniform_outcomes(Policy::kRandAugment, 3, 3, 5));
}

TEST(RandAugment, RefusesAMagnitudeBeyondTheBins) {
  EXPECT_NO_THROW(make_rand_augment({.magnitude = 30}));
  EXPECT_THROW(make_rand_augment({.magnitude = 31}), UsageError);
}

TEST(TrivialAugmentWide, DrawsAsTorchvisionDoes) {
  expect_outcomes(*make_trivial_augment_wide({}),
                  uniform_outcomes(Policy::kTrivialAugmentWide, 0, 30, 31));
}

TEST(AutoAugment, DrawsAsTorchvisionDoes) {
  for (const char* data : {"imagenet", "cifar10", "svhn"}) {
    const auto pairs = auto_augment_pairs(data);
    std::vector<Outcome> outcomes;
    for (const PolicyPair& pair : pairs) {
      std::vector<Outcome> steps{{1.0 / static_cast<double>(pairs.size()), ""}};
      for (const PolicyStep& step : pair) {
        auto applied =
            signs(Policy::kAutoAugment, step.operation, step.bin, 10, step.tenths / 10.0);
        applied.push_back({1 - step.tenths / 10.0, ""});
        steps = both(steps, applied);
      }
      outcomes.insert(outcomes.end(), steps.begin(), steps.end());
    }
    expect_outcomes(*make_auto_augment({.policy = data}), outcomes);
  }
}

const pixels::Mix& mix_of(const std::vector<pixels::Operation>& operations) {
  return std::get<pixels::Mix>(operations.at(0));
}

TEST(AugMix, DrawsChainsAsTorchvisionDoes) {
  const auto augmentation = make_aug_mix({.interpolation = "nearest"});
  const auto one = uniform_outcomes(Policy::kAugMix, 0, 2, 10);
  std::map<std::string, double> expected, depths{{"1", 1.0 / 3}, {"2", 1.0 / 3}, {"3", 1.0 / 3}};
  for (const Outcome& outcome : one) expected[outcome.operations] += outcome.probability;
  std::map<std::string, int64_t> first, depth;
  for (int64_t i = 0; i < kDraws; ++i) {
    const auto operations = drawn(*augmentation, kShape, i);
    const auto& chains = mix_of(operations).chains;
    ASSERT_EQ(chains.size(), 3u);
    ++first[text_of({chains[1].operations[0]})];
    ++depth[std::to_string(chains[2].operations.size())];
  }
  expect_distribution(first, expected, kDraws);
  expect_distribution(depth, depths, kDraws);
}

TEST(AugMix, LeavesColorsOut) {
  const auto augmentation = make_aug_mix({.chain_depth = 4, .all_ops = false});
  for (int64_t i = 0; i < 1000; ++i) {
    const auto operations = drawn(*augmentation, kShape, i);
    for (const auto& chain : mix_of(operations).chains) {
      ASSERT_EQ(chain.operations.size(), 4u);
      for (const auto& operation : chain.operations) {
        EXPECT_FALSE(std::holds_alternative<pixels::Brightness>(operation));
        EXPECT_FALSE(std::holds_alternative<pixels::Sharpness>(operation));
      }
    }
  }
}

// The weights of a Dirichlet distribution of two or three, by the distribution functions of one.
TEST(AugMix, DrawsWeightsAsTorchvisionDoes) {
  for (const double alpha : {1.0, 0.5}) {
    const auto augmentation = make_aug_mix({.alpha = alpha});
    std::vector<double> original, first;
    for (int64_t i = 0; i < kDraws; ++i) {
      const auto operations = drawn(*augmentation, kShape, i);
      const pixels::Mix& mix = mix_of(operations);
      float sum = mix.original;
      for (const auto& chain : mix.chains) sum += chain.weight;
      ASSERT_NEAR(sum, 1, 1e-5);
      original.push_back(mix.original);
      first.push_back(mix.chains[0].weight / (1 - double{mix.original}));
    }
    expect_distribution_function(original, [&](double x) {
      return alpha == 1 ? x : 2 / std::numbers::pi * std::asin(std::sqrt(x));
    });
    // Beta(1, 2) and Beta(1/2, 1).
    expect_distribution_function(
        first, [&](double x) { return alpha == 1 ? 1 - (1 - x) * (1 - x) : std::sqrt(x); });
  }
}

TEST(Policies, RefuseMasksAndFillsOfOtherChannels) {
  std::vector<std::unique_ptr<Augmentation>> policies;
  policies.push_back(make_rand_augment({.fill = {1, 2, 3}}));
  policies.push_back(make_trivial_augment_wide({.fill = {1, 2, 3}}));
  policies.push_back(make_auto_augment({.fill = {1, 2, 3}}));
  policies.push_back(make_aug_mix({.fill = {1, 2, 3}}));
  for (const auto& one : policies) {
    EXPECT_FALSE(one->supports_masks());
    EXPECT_EQ(one->stage(), AugmentStage::kPixels);
    EXPECT_NO_THROW(one->check({32, 32, 3}));
    EXPECT_THROW(one->check({32, 32, 1}), UsageError);
  }
}

}  // namespace
}  // namespace gallop::data
