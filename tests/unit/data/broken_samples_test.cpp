#include "gallop/data/broken_samples.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include <gtest/gtest.h>

#include "gallop/data/data_module.h"
#include "gallop/data/ordered_samples.h"
#include "gallop/data/sampling.h"
#include "unit/data/numbered_samples.h"

namespace gallop::data {
namespace {

const std::set<int64_t> kBroken = {0, 2, 9, 23};

// Those of two epochs, each as often as it was left out.
std::multiset<int64_t> broken_in_two_epochs(const Samples& samples, const LoaderConfig& config) {
  Loader loader(samples, config, {.seed = 5});
  std::multiset<int64_t> indices;
  for (int64_t i = 0; i < 2 * loader.batches_per_epoch(); ++i) {
    const auto batch = loader.next();
    const auto broken = broken_samples(*batch, samples, config, loader.state().seed);
    EXPECT_EQ(static_cast<int64_t>(broken.size()), batch->skipped);
    indices.insert(broken.begin(), broken.end());
  }
  return indices;
}

std::multiset<int64_t> twice(const std::set<int64_t>& indices) {
  std::multiset<int64_t> all(indices.begin(), indices.end());
  all.insert(indices.begin(), indices.end());
  return all;
}

TEST(BrokenSamples, AreFoundInEveryOrder) {
  NumberedSamples samples(26);
  samples.skip = kBroken;
  for (const bool shuffle : {false, true}) {
    EXPECT_EQ(broken_in_two_epochs(samples, {.batch = 4, .threads = 2, .shuffle = shuffle}),
              twice(kBroken));
  }
}

TEST(BrokenSamples, OfAProcessAreThoseOfItsSlices) {
  NumberedSamples samples(26);
  samples.skip = kBroken;
  std::multiset<int64_t> all;
  for (int part = 0; part < 3; ++part) {
    all.merge(broken_in_two_epochs(samples, {.batch = 8, .part = part, .parts = 3}));
  }
  EXPECT_EQ(all, twice(kBroken));
}

/// Backwards in odd epochs.
class Alternating final : public EpochOrder {
 public:
  explicit Alternating(int64_t size) : size_(size) {}

 protected:
  Order make(int64_t epoch) const override {
    Order order;
    for (int64_t i = 0; i < size_; ++i) order.push_back(epoch % 2 == 0 ? i : size_ - 1 - i);
    return order;
  }

 private:
  int64_t size_;
};

/// Numbered samples with names.
class NamedSamples final : public Samples {
 public:
  explicit NamedSamples(std::shared_ptr<const NumberedSamples> samples)
      : Samples(samples->fields()), samples_(std::move(samples)) {}
  int64_t size() const override { return samples_->size(); }
  std::optional<int64_t> label(int64_t index) const override { return index; }
  std::string describe(int64_t index) const override { return "file " + std::to_string(index); }
  bool fill(int64_t index, int64_t epoch, const SampleRow& row, Scratch& scratch) const override {
    return samples_->fill(index, epoch, row, scratch);
  }

 private:
  std::shared_ptr<const NumberedSamples> samples_;
};

TEST(BrokenSamples, HaveTheirIndicesAndNamesBeforeAnOrderOfTheirOwn) {
  const auto numbered = std::make_shared<NumberedSamples>(26);
  numbered->skip = kBroken;
  DataModule module;
  module.train = std::make_unique<NamedSamples>(numbered);
  put_in_order(module, std::make_shared<Alternating>(26));
  EXPECT_EQ(broken_in_two_epochs(*module.train, {.batch = 4}), twice(kBroken));
  EXPECT_EQ(describe_broken(*module.train, 23), "file 23");
  EXPECT_EQ(describe_broken(NamedSamples(numbered), 23), "file 23");
}

TEST(BrokenSamples, HaveTheirIndicesAndNamesBeforeTheyWereDrawn) {
  const auto numbered = std::make_shared<NumberedSamples>(26);
  numbered->skip = kBroken;
  DataModule module;
  module.train = std::make_unique<NamedSamples>(numbered);
  module.signature.classes = std::vector<std::string>(26, "class");
  draw_training_samples(module, {.name = "class-balanced", .draws = 400}, /*seed=*/7);
  const auto broken = broken_in_two_epochs(*module.train, {.batch = 50});
  EXPECT_EQ(std::set<int64_t>(broken.begin(), broken.end()), kBroken);
  EXPECT_EQ(describe_broken(*module.train, 23), "file 23");
}

}  // namespace
}  // namespace gallop::data
