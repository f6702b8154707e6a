// timm's automatic augmentations (tests/parity/make_timm_policies.py made the fixture).
#include "gallop/data/augmentations/timm_policies.h"

#include <cmath>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/data/augmentations/timm_space.h"
#include "gallop/data/pixels/pixel_editor.h"
#include "unit/base/error_of.h"
#include "unit/data/chi_square.h"
#include "unit/data/drawn.h"
#include "unit/fixtures.h"

namespace gallop::data {
namespace {

using nlohmann::json;

const ImageShape kShape{150, 200, 3};

const json& fixture() {
  static const json kFixture = json::parse(read_file(fixtures() / "timm_policies.json"));
  return kFixture;
}

TimmOperation operation_of(const std::string& name) {
  for (int i = 0; i <= static_cast<int>(TimmOperation::kGaussianBlurRand); ++i) {
    if (name_of(static_cast<TimmOperation>(i)) == name) return static_cast<TimmOperation>(i);
  }
  throw std::runtime_error("no operation " + name);
}

std::unique_ptr<Augmentation> make(const std::string& text) {
  return make_timm_policy(text, pixels::Interpolation::kBilinear, {});
}

TEST(TimmSpace, HasTheArgumentsOfTimm) {
  const json& levels = fixture().at("levels");
  EXPECT_EQ(fixture().at("arguments").size(), 27U);
  for (const auto& [key, values] : fixture().at("arguments").items()) {
    const std::string name = key.substr(0, key.find(' '));
    const double fraction = name == key ? 0.45 : 0.3;
    const TimmOperation operation = operation_of(name);
    for (size_t i = 0; i < levels.size(); ++i) {
      for (const bool negated : {false, true}) {
        const double expected = values.is_null() ? 0 : values[i][negated ? 1 : 0].get<double>();
        EXPECT_NEAR(timm_argument(operation, levels[i], negated, fraction), expected, 1e-12)
            << key << " " << levels[i];
      }
    }
  }
}

TEST(TimmSpace, HasThePoliciesOfTimm) {
  for (const auto& [name, groups] : fixture().at("policies").items()) {
    const auto ours = timm_groups(name);
    ASSERT_EQ(ours.size(), groups.size()) << name;
    for (size_t i = 0; i < ours.size(); ++i) {
      ASSERT_EQ(ours[i].size(), groups[i].size());
      for (size_t k = 0; k < ours[i].size(); ++k) {
        EXPECT_EQ(name_of(ours[i][k].operation), groups[i][k][0].get<std::string>());
        EXPECT_EQ(ours[i][k].tenths / 10.0, groups[i][k][1].get<double>());
        EXPECT_EQ(ours[i][k].level, groups[i][k][2].get<int>());
      }
    }
  }
}

void expect_choices(const std::string& text, const std::vector<TimmChoice>& ours) {
  const json& expected = fixture().at("choices").at(text);
  ASSERT_EQ(ours.size(), expected.size()) << text;
  double sum = 0;
  for (const TimmChoice& one : ours) sum += one.weight;
  for (size_t i = 0; i < ours.size(); ++i) {
    EXPECT_EQ(name_of(ours[i].operation), expected[i][0].get<std::string>()) << text;
    EXPECT_NEAR(ours[i].weight / sum, expected[i][1].get<double>(), 1e-12) << text;
  }
}

TEST(TimmSpace, HasTheOperationsOfTimm) {
  expect_choices("rand-m9", timm_choices("", false));
  expect_choices("rand-m9-inc1", timm_choices("", true));
  expect_choices("rand-tweights", timm_choices("weights", false));
  expect_choices("rand-t3a", timm_choices("3a", false));
  expect_choices("rand-t3aw", timm_choices("3aw", false));
  const auto augmix = timm_augmix_operations();
  ASSERT_EQ(augmix.size(), fixture().at("augmix").size());
  for (size_t i = 0; i < augmix.size(); ++i) {
    EXPECT_EQ(name_of(augmix[i]), fixture().at("augmix")[i].get<std::string>());
  }
}

/// The operation at a level, as text, with the probabilities of its signs.
std::map<std::string, double> outcomes(TimmOperation operation, double level, double probability) {
  std::map<std::string, double> found;
  constexpr int kTries = 64;  // Finds both signs; which are equally likely.
  for (int i = 0; i < kTries; ++i) {
    Philox random(7, Purpose::kPixels, 0, static_cast<uint64_t>(i));
    std::vector<pixels::Operation> operations;
    append_timm_operation(operation, level, kShape,
                          {.warps = {pixels::Interpolation::kBilinear, {128}}}, random, operations);
    found[text_of(operations)];
  }
  for (auto& [_, share] : found) share = probability / static_cast<double>(found.size());
  return found;
}

using Probabilities = std::map<std::string, double>;

Probabilities after(const Probabilities& first, const Probabilities& second) {
  Probabilities both;
  for (const auto& [a, p] : first) {
    for (const auto& [b, q] : second) both[a + b] += p * q;
  }
  return both;
}

void expect_outcomes(const std::string& text, const Probabilities& expected) {
  const auto augmentation = make(text);
  std::map<std::string, int64_t> counts;
  for (int64_t i = 0; i < kDraws; ++i) ++counts[text_of(drawn(*augmentation, kShape, i))];
  expect_distribution(counts, expected, kDraws);
}

/// One layer of RandAugment.
Probabilities layer(const std::vector<TimmChoice>& choices, double level, double p) {
  Probabilities all{{"", 1 - p}};
  double sum = 0;
  for (const TimmChoice& one : choices) sum += one.weight;
  for (const TimmChoice& one : choices) {
    for (const auto& [text, share] : outcomes(one.operation, level, p * one.weight / sum)) {
      all[text] += share;
    }
  }
  return all;
}

TEST(TimmRandAugment, DrawsOperationsAsTimmDoes) {
  const auto one = layer(timm_choices("", true), 9, 0.5);
  expect_outcomes("rand-m9-inc1", after(one, one));
  expect_outcomes("rand-m7-n1-p0.8", layer(timm_choices("", false), 7, 0.8));
  expect_outcomes("rand-m15-n1-mmax20-p1", layer(timm_choices("", false), 15, 1));
  expect_outcomes("rand-m15-n1-p1", layer(timm_choices("", false), 10, 1));
  expect_outcomes("rand-n0", {{"", 1}});
}

TEST(TimmRandAugment, DrawsWeightedOperationsWithoutReplacement) {
  const auto choices = timm_choices("weights", false);
  expect_outcomes("rand-m5-n1-p1-tweights", layer(choices, 5, 1));
  double sum = 0;
  for (const TimmChoice& one : choices) sum += one.weight;
  Probabilities pairs;
  for (size_t i = 0; i < choices.size(); ++i) {
    auto rest = choices;
    rest.erase(rest.begin() + static_cast<ptrdiff_t>(i));
    const auto first = outcomes(choices[i].operation, 5, choices[i].weight / sum);
    for (const auto& [text, share] : after(first, layer(rest, 5, 1))) pairs[text] += share;
  }
  expect_outcomes("rand-m5-n2-p1-tweights", pairs);
}

TEST(TimmAutoAugment, DrawsGroupsAsTimmDoes) {
  for (const std::string name : {"original", "originalr", "v0", "v0r"}) {
    Probabilities expected;
    const auto groups = timm_groups(name);
    for (const TimmGroup& group : groups) {
      Probabilities steps{{"", 1.0 / static_cast<double>(groups.size())}};
      for (const TimmStep& step : group) {
        Probabilities next{{"", 1 - step.tenths / 10.0}};
        for (const auto& [text, share] : outcomes(step.operation, step.level, step.tenths / 10.0)) {
          next[text] += share;
        }
        steps = after(steps, next);
      }
      for (const auto& [text, share] : steps) expected[text] += share;
    }
    std::erase_if(expected, [](const auto& entry) { return entry.second == 0; });
    expect_outcomes(name, expected);
  }
}

// The levels of brightness, whose factor is 0.1 + 1.8 * level / 10.
std::vector<double> levels_of(const std::string& text) {
  const auto augmentation = make(text);
  std::vector<double> levels;
  for (int64_t i = 0; levels.size() < 20'000; ++i) {
    const auto operations = drawn(*augmentation, kShape, i);
    const auto* const one = std::get_if<pixels::Brightness>(&operations.at(0));
    if (one != nullptr) levels.push_back((one->factor - 0.1) / 0.18);
  }
  return levels;
}

TEST(TimmRandAugment, DrawsLevelsAsTimmDoes) {
  const auto normal = [](double x, double mean, double deviation) {
    return 0.5 * std::erfc((mean - x) / (deviation * std::sqrt(2.0)));
  };
  std::vector<double> fractions;
  for (const double level : levels_of("rand-m5-n1-p1-mstd0.8")) fractions.push_back(level / 10);
  expect_distribution_function(fractions, [&](double x) { return normal(10 * x, 5, 0.8); });
  fractions.clear();
  for (const double level : levels_of("rand-m6-n1-p1-mstd101")) fractions.push_back(level / 6);
  expect_distribution_function(fractions, [](double x) { return x; });
  // Clipped at 10: half of the levels.
  int64_t most = 0;
  const auto clipped = levels_of("rand-m10-n1-p1-mstd2");
  for (const double level : clipped) most += level > 9.9999 ? 1 : 0;
  const auto count = static_cast<int64_t>(clipped.size());
  expect_distribution({{"clipped", most}, {"below", count - most}},
                      {{"clipped", 0.5}, {"below", 0.5}}, count);
}

TEST(TimmAugMix, DrawsChainsAsTimmDoes) {
  const auto augmentation = make("augmix-m5-w4-d2");
  std::vector<double> blended;
  std::map<std::string, int64_t> kinds, levels;
  int64_t solarized = 0;
  for (int64_t i = 0; i < kDraws; ++i) {
    const auto operations = drawn(*augmentation, kShape, i);
    const auto& mix = std::get<pixels::Mix>(operations.at(0));
    ASSERT_EQ(mix.chains.size(), 4U);
    ASSERT_EQ(mix.original, 0);
    blended.push_back(mix.blended.value());
    float sum = 0;
    for (const auto& chain : mix.chains) {
      sum += chain.weight;
      ASSERT_EQ(chain.operations.size(), 2U);
    }
    ASSERT_NEAR(sum, 1, 1e-5);
    const auto& first = mix.chains[2].operations[1];
    ++kinds[std::to_string(first.index())];
    const auto* const solarize = std::get_if<pixels::Solarize>(&first);
    if (solarize == nullptr) continue;
    ++levels[std::to_string((256 - static_cast<int>(solarize->threshold)) / 16)];
    ++solarized;
  }
  expect_distribution_function(blended, [](double x) { return x; });
  // Levels are uniform up to 5, and thresholds down to 128.
  std::map<std::string, double> eighths;
  for (int i = 0; i < 8; ++i) eighths[std::to_string(i)] = 1.0 / 8;
  expect_distribution(levels, eighths, solarized);
  const auto index = [](const pixels::Operation& one) { return std::to_string(one.index()); };
  std::map<std::string, double> expected{{index(pixels::Warp{}), 5.0 / 13}};
  for (const pixels::Operation& one :
       {pixels::Operation(pixels::AutoContrast{}), pixels::Operation(pixels::Saturation{}),
        pixels::Operation(pixels::Contrast{}), pixels::Operation(pixels::Brightness{}),
        pixels::Operation(pixels::Sharpness{}), pixels::Operation(pixels::Equalize{}),
        pixels::Operation(pixels::Posterize{}), pixels::Operation(pixels::Solarize{})}) {
    expected[index(one)] = 1.0 / 13;
  }
  // A rotation by exactly 0 degrees is a copy; it is practically never drawn.
  expect_distribution(kinds, expected, kDraws);
}

TEST(TimmAugMix, BlendsAsTimmDoes) {
  pixels::PixelEditor editor;
  for (const json& one : fixture().at("blends")) {
    const auto image = one.at("image").get<std::vector<uint8_t>>();
    const auto weights = one.at("weights").get<std::vector<float>>();
    // Chains with one operation, of which only the sum is known: here the image times a weight.
    const auto chains = one.at("chains").get<std::vector<std::vector<uint8_t>>>();
    std::vector<float> sum(image.size());
    for (size_t k = 0; k < chains.size(); ++k) {
      for (size_t i = 0; i < image.size(); ++i)
        sum[i] += weights[k] * static_cast<float>(chains[k][i]);
    }
    const auto expected = one.at("result").get<std::vector<uint8_t>>();
    for (size_t i = 0; i < image.size(); ++i) {
      // One pixel: an image of `value` whose chain makes it the sum.
      const uint8_t value = image[i], target = static_cast<uint8_t>(sum[i]);
      pixels::Mix mix{.original = 0,
                      .chains = {{.weight = 1, .operations = {}}},
                      .blended = one.at("factor").get<float>()};
      if (target >= value) {
        mix.chains[0].operations = {
            pixels::SolarizeAdd{.addend = target - value, .threshold = 256}};
      } else {
        mix.chains[0].operations = {pixels::Invert{},
                                    pixels::SolarizeAdd{.addend = value - target, .threshold = 256},
                                    pixels::Invert{}};
      }
      const std::vector<pixels::Operation> operations{mix};
      EXPECT_EQ(*editor.apply(operations, {1, 1, 1}, &value), expected[i]) << i;
    }
  }
}

TEST(SolarizeAdd, EqualsTimm) {
  std::vector<uint8_t> values(256);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint8_t>(i);
  pixels::PixelEditor editor;
  const std::vector<pixels::Operation> operations{pixels::SolarizeAdd{.addend = 60}};
  const uint8_t* const result = editor.apply(operations, {1, 256, 1}, values.data());
  const auto expected = fixture().at("solarize_add").get<std::vector<uint8_t>>();
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), result));
}

TEST(TimmPolicies, AreKnownByTheirNames) {
  for (const char* text : {"rand", "rand-m9-n3-mstd0.5-inc1", "augmix-m5", "original-mstd0.5",
                           "originalr", "v0", "v0r-mstd1", "3a"}) {
    EXPECT_TRUE(is_timm_policy(text)) << text;
    EXPECT_NE(make(text), nullptr) << text;
  }
  for (const char* text : {"imagenet", "cifar10", "random", "", "-rand"}) {
    EXPECT_FALSE(is_timm_policy(text)) << text;
  }
}

TEST(TimmPolicies, NameTheSectionThatIsWrong) {
  const auto error = [](const char* text) { return error_of([&] { make(text); }); };
  EXPECT_TRUE(error("rand-x5").find("'x5' of policy 'rand-x5' is unknown; sections are m, n, p") !=
              std::string::npos);
  EXPECT_TRUE(error("rand-m9-n1.5").find("'n' of policy 'rand-m9-n1.5' needs an integer") !=
              std::string::npos);
  EXPECT_TRUE(error("rand-p2").find("'p2' of policy 'rand-p2' needs a number from 0 to 1") !=
              std::string::npos);
  EXPECT_TRUE(error("rand-m").find("needs a number") != std::string::npos);
  EXPECT_TRUE(error("rand-tnone").find("'tnone'; timm has tweights") != std::string::npos);
  EXPECT_TRUE(error("rand-n16-tweights").find("n16 is more than the 15 operations") !=
              std::string::npos);
  // timm takes "0" as true.
  EXPECT_TRUE(error("rand-m9-inc0").find("leave inc out") != std::string::npos);
  for (const char* text : {"augmix-b0", "augmix-b1"}) {
    EXPECT_TRUE(error(text).find("is not supported; leave b out") != std::string::npos);
  }
  EXPECT_TRUE(error("v0-m3").find("sections are mstd") != std::string::npos);
}

TEST(TimmPolicies, FillWithTimmsGray) {
  const auto fill_of = [](const Augmentation& augmentation) {
    for (int64_t i = 0;; ++i) {
      for (const auto& one : drawn(augmentation, kShape, i)) {
        if (const auto* const warp = std::get_if<pixels::Warp>(&one)) return warp->fill;
      }
    }
  };
  EXPECT_EQ(fill_of(*make("rand")), (std::vector<double>{128}));
  const auto own = make_timm_policy("rand", pixels::Interpolation::kNearest, {1, 2, 3});
  EXPECT_EQ(fill_of(*own), (std::vector<double>{1, 2, 3}));
  EXPECT_THROW(own->check({32, 32, 1}), UsageError);
  EXPECT_FALSE(own->supports_masks());
}

}  // namespace
}  // namespace gallop::data
