#include "gallop/train/input_sizes.h"

#include <set>
#include <string>

#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"

namespace gallop::train {
namespace {

std::vector<int64_t> sides(const ProgressiveResizingConfig& config, int64_t full) {
  std::vector<int64_t> all;
  for (int percent = 0; percent <= 100; percent += 10) {
    all.push_back(side_at(config, full, percent / 100.0));
  }
  return all;
}

std::vector<int64_t> lengths(const SeqLengthWarmupConfig& config, int64_t context) {
  std::vector<int64_t> all;
  for (int percent = 0; percent <= 100; percent += 10) {
    all.push_back(tokens_at(config, context, percent / 100.0));
  }
  return all;
}

using Sizes = std::vector<int64_t>;

template <typename Config>
std::string error_of(const Config& config) {
  try {
    check(config);
  } catch (const UsageError& error) {
    return error.what();
  }
  return {};
}

TEST(InputSizes, RejectOptionsWithoutEffect) {
  EXPECT_EQ(error_of(ProgressiveResizingConfig{.delay_fraction = 0.3}),
            "train.progressive_resizing.delay_fraction has no effect: set "
            "train.progressive_resizing.initial_scale below 1, or omit it");
  EXPECT_NE(error_of(ProgressiveResizingConfig{.finetune_fraction = 0}), "");
  EXPECT_NE(error_of(ProgressiveResizingConfig{.size_increment = 8}), "");
  EXPECT_EQ(error_of(ProgressiveResizingConfig{.initial_scale = 0.5, .size_increment = 8}), "");
  EXPECT_EQ(error_of(ProgressiveResizingConfig{}), "");
  EXPECT_EQ(error_of(SeqLengthWarmupConfig{.min_seq_length = 8}),
            "train.seq_length_warmup.min_seq_length has no effect: set "
            "train.seq_length_warmup.duration above 0, or omit it");
  EXPECT_NE(error_of(SeqLengthWarmupConfig{.step_size = 8}), "");
  EXPECT_EQ(error_of(SeqLengthWarmupConfig{.duration = 0.5, .step_size = 8}), "");
  EXPECT_EQ(error_of(SeqLengthWarmupConfig{}), "");
  EXPECT_EQ(error_of(RampupBatchSizeConfig{.increment = 4}),
            "train.rampup_batch_size.increment has no effect: set train.rampup_batch_size.start "
            "above 0, or omit it");
  EXPECT_NE(error_of(RampupBatchSizeConfig{.duration = 0.2}), "");
  EXPECT_EQ(error_of(RampupBatchSizeConfig{.start = 4, .increment = 4}), "");
  EXPECT_EQ(error_of(RampupBatchSizeConfig{}), "");
}

TEST(ProgressiveResizing, GrowsBetweenItsFractions) {
  EXPECT_EQ(sides({}, 224), Sizes(11, 224));
  // FFCV's schedule of ResNet-50: 160 to 192 in multiples of 32.
  EXPECT_EQ(sides({.initial_scale = 160.0 / 192, .size_increment = 32}, 192),
            (Sizes{160, 160, 160, 160, 160, 160, 160, 160, 192, 192, 192}));
  // Composer's defaults: half the size, from the middle on larger, the last fifth at full size.
  EXPECT_EQ(sides({.initial_scale = 0.5, .size_increment = 4}, 32),
            (Sizes{16, 16, 16, 16, 16, 16, 20, 24, 32, 32, 32}));
  // Without an increment, eighths of the size.
  EXPECT_EQ(sides({.initial_scale = 0.5}, 32),
            sides({.initial_scale = 0.5, .size_increment = 4}, 32));
  EXPECT_EQ(sides({.initial_scale = 0.5, .delay_fraction = 0, .finetune_fraction = 0}, 32),
            (Sizes{16, 16, 16, 20, 20, 24, 24, 24, 28, 28, 32}));
  EXPECT_EQ(sides({.initial_scale = 0.01, .delay_fraction = 1, .finetune_fraction = 0}, 28).front(),
            3);
}

TEST(SeqLengthWarmup, GrowsUpToItsDuration) {
  EXPECT_EQ(lengths({}, 128), Sizes(11, 128));
  EXPECT_EQ(lengths({.duration = 0.5, .min_seq_length = 8, .step_size = 8}, 128),
            (Sizes{8, 32, 56, 80, 104, 128, 128, 128, 128, 128, 128}));
  EXPECT_EQ(lengths({.duration = 1}, 128), (Sizes{16, 16, 32, 48, 48, 64, 80, 80, 96, 112, 128}));
  EXPECT_EQ(lengths({.duration = 1, .min_seq_length = 500}, 128), Sizes(11, 128));
}

// As many steps are compiled as there are sizes.
TEST(InputSizes, AreCounted) {
  EXPECT_EQ(count_sizes(ProgressiveResizingConfig(), 224), 1);
  EXPECT_EQ(count_sizes(SeqLengthWarmupConfig(), 128), 1);
  for (const int64_t full : {28, 32, 100, 224}) {
    for (const double scale : {0.1, 0.5, 0.9}) {
      const ProgressiveResizingConfig config{.initial_scale = scale};
      std::set<int64_t> found;
      for (int i = 0; i <= 10000; ++i) found.insert(side_at(config, full, i / 10000.0));
      EXPECT_LE(static_cast<int64_t>(found.size()), count_sizes(config, full));
      EXPECT_GE(static_cast<int64_t>(found.size()) + 1, count_sizes(config, full));
      const SeqLengthWarmupConfig warmup{.duration = scale};
      found.clear();
      for (int i = 0; i <= 10000; ++i) found.insert(tokens_at(warmup, full, i / 10000.0));
      EXPECT_LE(static_cast<int64_t>(found.size()), count_sizes(warmup, full));
    }
  }
}

TEST(ProgressiveResizing, ResizesTheInputOfABatch) {
  const data::Fields fields({.name = "image", .shape = {.sizes = {3, 16, 24}}},
                            {.name = "label", .shape = {{}, c10::kLong}});
  const at::Tensor images = at::rand({2, 3, 16, 24}).contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor labels = at::randint(5, {2}, at::kLong);
  data::Batch batch;
  batch.fields = &fields;
  batch.tensors = {images, labels};
  const ProgressiveResizingConfig config{.initial_scale = 0.5};
  resize(config, 1, batch);
  EXPECT_TRUE(batch.input().is_same(images));
  resize(config, 0, batch);
  EXPECT_TRUE(at::equal(batch.input(), at::_upsample_bilinear2d_aa(images, {8, 12}, false)));
  EXPECT_TRUE(batch.input().is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(batch.target().is_same(labels));
}

TEST(SeqLengthWarmup, CutsAllFieldsOfTokens) {
  const data::RowShape tokens{.sizes = {16}, .dtype = c10::kLong};
  const data::Fields fields({.name = "tokens", .shape = tokens},
                            {.name = "labels", .shape = tokens});
  data::Batch batch;
  batch.fields = &fields;
  const at::Tensor input = at::randint(9, {3, 16}, at::kLong),
                   target = at::randint(9, {3, 16}, at::kLong);
  batch.tensors = {input, target};
  truncate({.duration = 0.5, .min_seq_length = 6}, 0, batch);
  EXPECT_TRUE(at::equal(batch.input(), input.narrow(1, 0, 6)));
  EXPECT_TRUE(at::equal(batch.target(), target.narrow(1, 0, 6)));
  EXPECT_TRUE(batch.input().is_contiguous());
  // A shorter batch stays as it is.
  batch.tensors = {input.narrow(1, 0, 4), target.narrow(1, 0, 4)};
  truncate({.duration = 0.5, .min_seq_length = 6}, 0, batch);
  EXPECT_EQ(batch.input().size(1), 4);
}

}  // namespace
}  // namespace gallop::train
