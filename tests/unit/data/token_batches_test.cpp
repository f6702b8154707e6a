#include "gallop/data/token_batches.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/data/batch_slot.h"
#include "gallop/data/data_config.h"
#include "gallop/data/length_order.h"
#include "gallop/data/loader.h"
#include "unit/base/error_of.h"
#include "unit/data/image_fields.h"
#include "unit/data/numbered_texts.h"

namespace gallop::data {
namespace {

constexpr int64_t kContext = 64, kTokens = 320;

std::vector<int64_t> lengths_of(const NumberedTexts& texts) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < texts.size(); ++i) lengths.push_back(texts.length(i));
  return lengths;
}

// The samples of each batch of an epoch.
std::vector<std::vector<int64_t>> epoch_of(const TokenBatches& plan, int64_t size, int64_t epoch) {
  std::vector<std::vector<int64_t>> batches;
  for (int64_t position = 0; position < size;) {
    auto& batch = batches.emplace_back();
    const int64_t end = plan.end(epoch, position);
    EXPECT_GT(end, position);
    for (; position < end; ++position) {
      EXPECT_EQ(plan.end(epoch, position), end);
      batch.push_back(plan.index(epoch, position));
    }
  }
  return batches;
}

TEST(TokenBatches, HaveEverySampleOnceAndFewShapesInEachEpoch) {
  for (const int64_t size : {1, 2, 9, 500}) {
    const auto lengths = lengths_of(NumberedTexts(size, kContext));
    const TokenBatches plan(lengths, kContext, kTokens, 3);
    std::set<std::vector<std::vector<int64_t>>> epochs;
    for (int64_t epoch = 0; epoch < 6; ++epoch) {
      const auto batches = epoch_of(plan, size, epoch);
      EXPECT_EQ(static_cast<int64_t>(batches.size()), plan.batches());
      std::vector<int64_t> all, expected(static_cast<size_t>(size));
      std::map<int64_t, std::set<int64_t>> shapes;
      std::vector<int64_t> tokens;
      for (const auto& batch : batches) {
        int64_t longest = 0;
        for (const int64_t sample : batch) {
          longest = std::max(longest, lengths[static_cast<size_t>(sample)]);
        }
        const int64_t length = padded_length(longest, kContext);
        tokens.push_back(length * static_cast<int64_t>(batch.size()));
        EXPECT_LE(tokens.back(), kTokens);
        EXPECT_LE(static_cast<int64_t>(batch.size()), plan.most_samples());
        EXPECT_GE(static_cast<int64_t>(batch.size()), plan.least_samples());
        shapes[static_cast<int64_t>(batch.size())].insert(length);
        all.insert(all.end(), batch.begin(), batch.end());
      }
      EXPECT_LE(shapes.size(), static_cast<size_t>(kBatchLengths) + 1);
      std::iota(expected.begin(), expected.end(), 0);
      std::sort(all.begin(), all.end());
      EXPECT_EQ(all, expected);
      epochs.insert(batches);
      EXPECT_EQ(batches, epoch_of(TokenBatches(lengths, kContext, kTokens, 3), size, epoch));
      if (size < 500) continue;
      // The longest are first, and other batches are in random order.
      EXPECT_GT(tokens.front(), kTokens - kContext);
      EXPECT_GT(padded_length(lengths[static_cast<size_t>(batches.front().front())], kContext), 56);
      EXPECT_NE(batches, epoch_of(TokenBatches(lengths, kContext, kTokens, 4), size, epoch));
    }
    EXPECT_EQ(epochs.size(), size < 9 ? epochs.size() : 6U);
  }
}

TEST(TokenBatches, FillTheTokens) {
  const auto lengths = lengths_of(NumberedTexts(4000, kContext));
  const TokenBatches plan(lengths, kContext, 1024, 3);
  const auto real =
      static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), int64_t{0}));
  // 1,024 tokens are a multiple of all padded lengths but 24, 40, 48 and 56.
  EXPECT_GT(real / (1024.0 * static_cast<double>(plan.batches())), 0.85);
  EXPECT_LT(plan.padding(), 0.12);
  EXPECT_GT(plan.padding(), 0.08);
}

TEST(TokenBatches, RejectsFewerTokensThanASample) {
  EXPECT_NE(error_of([&] {
              TokenBatches({3, 60}, kContext, 63, 1);
            }).find("data.max_tokens is 63"),
            std::string::npos);
  EXPECT_EQ(TokenBatches({3, 0}, kContext, 8, 1).batches(), 2);
}

class LimitTokens : public ::testing::Test {
 protected:
  void SetUp() override { config_.max_tokens = kTokens; }
  std::string error() {
    return error_of([&] { limit_tokens(module_, config_, 1); });
  }

  const DataModuleRegistry modules_ = built_in_data_modules();
  const AugmentationRegistry augmentations_ = built_in_augmentations();
  const BatchTransformRegistry transforms_ = built_in_batch_transforms();
  DataConfig config_{modules_, augmentations_, transforms_};
  DataModule module_;
};

// As real batches show, of any threads and processes, from any position.
TEST_F(LimitTokens, DeliversTheBatches) {
  module_.train = std::make_unique<NumberedTexts>(203, kContext);
  const auto wanted = padding_share(module_, batch_order(config_, 5));
  limit_tokens(module_, config_, 5);
  LoaderConfig loading{.threads = 2, .shuffle = true, .plan = module_.batches};
  Loader whole(*module_.train, loading, {.seed = 5});
  EXPECT_EQ(whole.batches_per_epoch(), module_.batches->batches());
  double cells = 0, real = 0;
  for (int64_t i = 0; i < 2 * module_.batches->batches(); ++i) {
    const LoaderState before = whole.state();
    const auto batch = whole.next();
    EXPECT_EQ(batch->last_of_epoch, (i + 1) % module_.batches->batches() == 0);
    EXPECT_EQ(batch->whole_size, batch->size());
    EXPECT_LE(batch->input().numel(), kTokens);
    cells += static_cast<double>(batch->input().numel());
    real += static_cast<double>(batch->input().ge(0).sum().item<int64_t>());
    // Slices of two processes, and a loader that begins here.
    std::vector<int64_t> texts;
    for (int part = 0; part < 2; ++part) {
      LoaderConfig sliced = loading;
      sliced.threads = 0;
      sliced.part = part;
      sliced.parts = 2;
      Loader slice(*module_.train, sliced, before);
      const auto own = slice.next();
      EXPECT_EQ(own->whole_size, batch->size());
      for (int64_t row = 0; row < own->size(); ++row) {
        texts.push_back(own->input()[row][0].item<int64_t>());
      }
      EXPECT_EQ(slice.state().position, whole.state().position);
    }
    for (int64_t row = 0; row < batch->size(); ++row) {
      EXPECT_EQ(texts.at(static_cast<size_t>(row)), batch->input()[row][0].item<int64_t>());
    }
  }
  EXPECT_NEAR(1 - real / cells, wanted->share, 0.02);
}

TEST_F(LimitTokens, RejectsWhatHasNoLengthsOrAnotherOrder) {
  class Images final : public Samples {
   public:
    Images() : Samples(image_fields({1, 2, 2})) {}
    int64_t size() const override { return 3; }
    bool fill(int64_t, int64_t, const SampleRow&, Scratch&) const override { return true; }
  };
  module_.train = std::make_unique<Images>();
  EXPECT_NE(error().find("different lengths"), std::string::npos);
  module_.train = std::make_unique<NumberedTexts>(9, kContext);
  config_.shuffle = false;
  EXPECT_NE(error().find("data.shuffle"), std::string::npos);
  config_.shuffle = true;
  config_.group_by_length = true;
  EXPECT_NE(error().find("leave data.group_by_length out"), std::string::npos);
  config_.group_by_length = false;
  config_.packing = true;
  EXPECT_NE(error().find("leave data.packing out"), std::string::npos);
  config_.packing = false;
  config_.max_tokens = 10;
  EXPECT_NE(error().find("data.max_tokens is 10"), std::string::npos);
}

}  // namespace
}  // namespace gallop::data
