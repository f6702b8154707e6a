#include "gallop/data/length_order.h"

#include <algorithm>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "gallop/base/philox.h"
#include "gallop/data/loader.h"
#include "unit/base/error_of.h"
#include "unit/data/data_folder.h"
#include "unit/data/image_fields.h"

namespace gallop::data {
namespace {

std::vector<int64_t> some_lengths(int64_t count) {
  std::vector<int64_t> lengths;
  Philox random(1, Purpose::kWindow, 0, 0);
  for (int64_t i = 0; i < count; ++i) {
    lengths.push_back(1 + static_cast<int64_t>(random.below(64)));
  }
  return lengths;
}

std::vector<int64_t> epoch_of(const LengthOrder& order, int64_t epoch) {
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < order.size(); ++i) indices.push_back(order.index(epoch, i));
  return indices;
}

TEST(LengthOrder, IsAPermutationOfBatchesOfSimilarLength) {
  for (const int64_t size : {1, 7, 8, 3 * 8, 1003}) {
    const auto lengths = some_lengths(size);
    const LengthOrder order(lengths, 8, 3);
    const auto first = epoch_of(order, 0), second = epoch_of(order, 1);
    EXPECT_EQ(first, epoch_of(LengthOrder(lengths, 8, 3), 0));
    if (size > 100) {
      EXPECT_NE(first, second);
      EXPECT_NE(first, epoch_of(LengthOrder(lengths, 8, 4), 0));
    }
    for (const auto& indices : {first, second}) {
      auto sorted = indices;
      std::sort(sorted.begin(), sorted.end());
      std::vector<int64_t> all(static_cast<size_t>(size));
      std::iota(all.begin(), all.end(), 0);
      EXPECT_EQ(sorted, all);
    }
  }
  // Within a batch, lengths differ by little: a window has 400 samples of 64 lengths.
  const auto lengths = some_lengths(1003);
  const LengthOrder order(lengths, 8, 3);
  const auto indices = epoch_of(order, 0);
  int64_t falling = 0, last = 0;
  for (size_t begin = 0; begin + 8 <= indices.size(); begin += 8) {
    std::vector<int64_t> batch;
    for (size_t i = begin; i < begin + 8; ++i) {
      batch.push_back(lengths[static_cast<size_t>(indices[i])]);
    }
    const auto [low, high] = std::minmax_element(batch.begin(), batch.end());
    EXPECT_LE(*high - *low, 8);
    falling += *high < last ? 1 : 0;
    last = *high;
  }
  // Batches of all lengths alternate.
  EXPECT_GT(falling, 30);
  EXPECT_LT(falling, 95);
}

TEST(LengthOrder, BeginsWithTheLongestBatch) {
  const auto lengths = some_lengths(1003);
  for (int64_t epoch = 0; epoch < 5; ++epoch) {
    const LengthOrder order(lengths, 8, 3);
    EXPECT_EQ(lengths[static_cast<size_t>(order.index(epoch, 0))],
              *std::max_element(lengths.begin(), lengths.end()));
  }
}

/// Texts whose tokens are their index.
class Texts final : public Samples {
 public:
  explicit Texts(int64_t size)
      : Samples({{.name = "tokens", .shape = {{64}, c10::kLong}, .padding = -1},
                 {.name = "label", .shape = {{}, c10::kLong}}}),
        lengths_(some_lengths(size)) {}
  int64_t size() const override { return static_cast<int64_t>(lengths_.size()); }
  bool fill(int64_t index, int64_t, const SampleRow& row, Scratch&) const override {
    const int64_t length = lengths_[static_cast<size_t>(index)];
    std::fill_n(row.as<int64_t>(0), length, index);
    row.set_length(0, length);
    *row.as<int64_t>(1) = index;
    return true;
  }

 private:
  std::vector<int64_t> lengths_;
};

class GroupByLength : public ::testing::Test {
 protected:
  const DataModuleRegistry modules_ = built_in_data_modules();
  const AugmentationRegistry augmentations_ = built_in_augmentations();
  const BatchTransformRegistry transforms_ = built_in_batch_transforms();
  DataConfig config_{modules_, augmentations_, transforms_};

  void SetUp() override {
    config_.batch_size = 8;
    config_.group_by_length = true;
  }
};

// As real batches show, of any threads, from any position.
TEST_F(GroupByLength, PadsLess) {
  DataModule module;
  module.train = std::make_unique<Texts>(1003);
  const auto before = padding_share(module, {.batch = 8, .seed = 5});
  group_by_length(module, config_, /*seed=*/5);
  ASSERT_TRUE(before.has_value());
  EXPECT_GT(before->share, 0.35);
  EXPECT_LT(before->grouped, 0.12);
  const auto after = padding_share(module, batch_order(config_, 5));
  EXPECT_EQ(after->share, before->grouped);
  EXPECT_EQ(module.split(Part::kTrain)->size(), 1003);
  std::vector<int64_t> all;
  double real = 0, cells = 0;
  LoaderConfig loading = training_loader(config_, /*cores=*/2);
  loading.one_epoch = true;
  Loader loader(*module.train, loading, {.seed = 5});
  while (const auto batch = loader.next()) {
    for (int64_t row = 0; row < batch->size(); ++row) {
      all.push_back(batch->target()[row].item<int64_t>());
    }
    cells += static_cast<double>(batch->input().numel());
    real += static_cast<double>(batch->input().ge(0).sum().item<int64_t>());
  }
  EXPECT_EQ(std::set<int64_t>(all.begin(), all.end()).size(), 1003U);
  EXPECT_NEAR(1 - real / cells, before->grouped, 0.02);
  loading.threads = 0;
  Loader later(*module.train, loading, {.seed = 5, .position = 400});
  EXPECT_EQ(later.next()->target()[0].item<int64_t>(), all[400]);
}

TEST_F(GroupByLength, RejectsWhatHasNoLengthsOrAnotherOrder) {
  class Images final : public Samples {
   public:
    Images() : Samples(image_fields({1, 2, 2})) {}
    int64_t size() const override { return 3; }
    bool fill(int64_t, int64_t, const SampleRow&, Scratch&) const override { return true; }
  };
  DataModule images;
  images.train = std::make_unique<Images>();
  EXPECT_FALSE(padding_share(images, {}).has_value());
  EXPECT_NE(error_of([&] { group_by_length(images, config_, 1); }).find("different lengths"),
            std::string::npos);
  DataModule texts;
  texts.train = std::make_unique<Texts>(9);
  config_.shuffle = false;
  EXPECT_NE(error_of([&] { group_by_length(texts, config_, 1); }).find("data.shuffle"),
            std::string::npos);
  config_.shuffle = true;
  config_.sampling.name = "class-balanced";
  EXPECT_NE(error_of([&] { group_by_length(texts, config_, 1); }).find("data.sampling"),
            std::string::npos);
}

}  // namespace
}  // namespace gallop::data
