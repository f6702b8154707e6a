#include "gallop/data/sampling.h"

#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "gallop/base/alias_table.h"
#include "gallop/data/data_module.h"
#include "gallop/data/loader.h"
#include "unit/base/error_of.h"
#include "unit/data/chi_square.h"

namespace gallop::data {
namespace {

constexpr int64_t kDrawn = 100'000;

// The class of 1000 samples: 900 in class 0, 90 in class 1 and 10 in class 2.
int64_t class_of(int64_t index) { return index < 900 ? 0 : index < 990 ? 1 : 2; }

/// Samples with a class, a weight, and the number that stands for the epoch.
class Tailed final : public Samples {
 public:
  explicit Tailed(bool tells_labels = false)
      : Samples(Fields(std::vector<Field>{
            {.name = "x", .role = FieldRole::kInput, .shape = {{2}, c10::kLong}},
            {.name = "label", .role = FieldRole::kTarget, .shape = {{}, c10::kLong}},
            {.name = "score", .shape = {}}})),
        tells_labels_(tells_labels) {}
  int64_t size() const override { return 1000; }
  bool every_target_counts() const override { return true; }
  std::optional<int64_t> label(int64_t index) const override {
    return tells_labels_ ? std::optional(class_of(index)) : std::nullopt;
  }
  bool fill(int64_t index, int64_t epoch, const SampleRow& row, Scratch&) const override {
    row.as<int64_t>(0)[0] = index;
    row.as<int64_t>(0)[1] = epoch;
    *row.as<int64_t>(1) = class_of(index);
    *row.as<float>(2) = weight_of(index);
    return true;
  }
  static float weight_of(int64_t index) { return static_cast<float>(index % 4); }

 private:
  bool tells_labels_;
};

std::unique_ptr<DataModule> module_of(const SamplingConfig& config, bool tells_labels = false,
                                      bool has_unaugmented = false) {
  auto module = std::make_unique<DataModule>();
  module->signature.classes = {"many", "some", "few"};
  module->train = std::make_unique<Tailed>(tells_labels);
  if (has_unaugmented) module->unaugmented = std::make_unique<Tailed>(tells_labels);
  draw_training_samples(*module, config, /*seed=*/7);
  return module;
}

struct Drawn {
  std::vector<int64_t> indices, epochs;
};

Drawn draw(const Samples& samples, int64_t count, int threads = 0, LoaderState start = {.seed = 7},
           int part = 0, int parts = 1) {
  Loader loader(samples, {.batch = 50, .threads = threads, .part = part, .parts = parts}, start);
  Drawn drawn;
  while (static_cast<int64_t>(drawn.indices.size()) < count) {
    const auto batch = loader.next();
    for (int64_t row = 0; row < batch->size(); ++row) {
      drawn.indices.push_back(batch->input()[row][0].item<int64_t>());
      drawn.epochs.push_back(batch->input()[row][1].item<int64_t>());
    }
  }
  return drawn;
}

void expect_classes(const SamplingConfig& config, const std::map<std::string, double>& expected) {
  for (const bool tells_labels : {false, true}) {
    const auto module = module_of(config, tells_labels);
    std::map<std::string, int64_t> counts;
    std::map<int64_t, int64_t> of_few;
    for (const int64_t index : draw(*module->train, kDrawn).indices) {
      ++counts[std::to_string(class_of(index))];
    }
    expect_distribution(counts, expected, kDrawn);
  }
}

TEST(Sampling, BalancesClasses) {
  expect_classes({.name = "class-balanced"}, {{"0", 1. / 3}, {"1", 1. / 3}, {"2", 1. / 3}});
}

// n_c draws in proportion to n_c^(1 - power).
TEST(Sampling, BalancesByAPower) {
  const double sum = 30 + std::sqrt(90.) + std::sqrt(10.);
  expect_classes({.name = "class-balanced", .power = 0.5},
                 {{"0", 30 / sum}, {"1", std::sqrt(90.) / sum}, {"2", std::sqrt(10.) / sum}});
  expect_classes({.name = "class-balanced", .power = 0}, {{"0", 0.9}, {"1", 0.09}, {"2", 0.01}});
}

TEST(Sampling, WeightsClasses) {
  // 900 * 1, 90 * 10 and none.
  expect_classes({.name = "weighted", .class_weights = {1, 10, 0}}, {{"0", 0.5}, {"1", 0.5}});
}

TEST(Sampling, WeightsSamplesByAField) {
  const auto module = module_of({.name = "weighted", .field = "score"});
  std::map<std::string, int64_t> counts;
  std::map<std::string, double> expected;
  for (int64_t i = 0; i < 1000; ++i) {
    if (i % 4 > 0) expected[std::to_string(i)] = static_cast<double>(i % 4) / 1500;
  }
  for (const int64_t index : draw(*module->train, kDrawn).indices) ++counts[std::to_string(index)];
  expect_distribution(counts, expected, kDrawn);
}

TEST(Sampling, DrawsByEpochAndPosition) {
  const auto module = module_of({.name = "class-balanced", .draws = 130});
  EXPECT_EQ(module->train->size(), 130);
  EXPECT_TRUE(module->train->every_target_counts());
  const Drawn all = draw(*module->train, 3 * 130);
  EXPECT_EQ(draw(*module->train, 3 * 130, /*threads=*/3).indices, all.indices);
  // A loader that begins within the second epoch goes on as one that came there.
  const Drawn later = draw(*module->train, 210, 0, {.seed = 7, .epoch = 1, .position = 50});
  EXPECT_TRUE(std::equal(later.indices.begin(), later.indices.end(), all.indices.begin() + 180));
  EXPECT_TRUE(std::equal(later.epochs.begin(), later.epochs.end(), all.epochs.begin() + 180));
  // Processes have the slices of one process's batches.
  std::vector<int64_t> first = draw(*module->train, 25, 0, {.seed = 7}, 0, 2).indices;
  const auto second = draw(*module->train, 25, 0, {.seed = 7}, 1, 2).indices;
  first.insert(first.end(), second.begin(), second.end());
  EXPECT_TRUE(std::equal(first.begin(), first.end(), all.indices.begin()));
  EXPECT_FALSE(
      std::equal(all.indices.begin(), all.indices.begin() + 130, all.indices.begin() + 130));
}

// Otherwise a sample of a small class would be augmented in the same way many times an epoch.
TEST(Sampling, AugmentsEveryDrawInItsOwnWay) {
  const auto module = module_of({.name = "class-balanced"});
  const Drawn all = draw(*module->train, 1000);
  EXPECT_EQ(std::set<int64_t>(all.epochs.begin(), all.epochs.end()).size(), 1000U);
}

// By which alternating flips mirror a sample in every other epoch.
TEST(Sampling, KeepsTheParityOfTheEpoch) {
  const auto module = module_of({.name = "class-balanced", .draws = 50});
  const Drawn all = draw(*module->train, 4 * 50);
  for (size_t i = 0; i < all.epochs.size(); ++i) {
    EXPECT_EQ(all.epochs[i] % 2, static_cast<int64_t>(i / 50 % 2));
  }
}

TEST(Sampling, ChangesTheTrainingSamplesAlone) {
  for (const bool has_unaugmented : {false, true}) {
    const auto module = module_of({.name = "class-balanced", .draws = 5}, false, has_unaugmented);
    EXPECT_EQ(module->train->size(), 5);
    EXPECT_EQ(module->split(Part::kTrain)->size(), 1000);
  }
  const auto uniform = module_of({});
  EXPECT_EQ(uniform->split(Part::kTrain), uniform->train.get());
}

TEST(Sampling, CountsClasses) {
  for (const bool tells_labels : {false, true}) {
    EXPECT_EQ(count_classes(Tailed(tells_labels), 3), (std::vector<int64_t>{900, 90, 10}));
  }
}

TEST(Sampling, RejectsWhatItCannotDo) {
  const auto error = [](const SamplingConfig& config) {
    return error_of([&] { module_of(config); });
  };
  EXPECT_NE(error({.name = "weighted"}).find("class_weights or a field"), std::string::npos);
  EXPECT_NE(error({.name = "weighted", .class_weights = {1, 2}}).find("3 classes"),
            std::string::npos);
  EXPECT_NE(error({.name = "weighted", .class_weights = {0, 0, 0}}).find("are 0"),
            std::string::npos);
  EXPECT_NE(error({.name = "weighted", .field = "size"}).find("no field 'size'"),
            std::string::npos);
  EXPECT_NE(error({.name = "weighted", .field = "label"}).find("floating-point"),
            std::string::npos);
  EXPECT_NE(error({.name = "class-balanced", .field = "score"}).find("belong to weighted"),
            std::string::npos);
  EXPECT_NE(error({.draws = 3}).find("uniform"), std::string::npos);
  DataModule numbers;
  numbers.train = std::make_unique<Tailed>();  // Without classes in its signature.
  EXPECT_NE(error_of([&] {
              draw_training_samples(numbers, {.name = "class-balanced"}, 1);
            }).find("classification"),
            std::string::npos);
}

}  // namespace
}  // namespace gallop::data
