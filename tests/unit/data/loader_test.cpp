#include "gallop/data/loader.h"

#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/data/batch_slot.h"
#include "unit/data/image_fields.h"
#include "unit/data/numbered_samples.h"

namespace gallop::data {
namespace {

/// Every fill blocks until it is released; `begun` signals that one has started.
class BlockedSamples final : public Samples {
 public:
  BlockedSamples() : Samples(image_fields({1})) {}
  int64_t size() const override { return 100; }
  bool fill(int64_t, int64_t, const SampleRow&, Scratch&) const override {
    begun = true;
    while (!open) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return true;
  }
  std::atomic<bool> open{false};
  mutable std::atomic<bool> begun{false};
};

std::vector<std::vector<int64_t>> stream(Loader& loader, int batches) {
  std::vector<std::vector<int64_t>> result;
  for (int i = 0; i < batches; ++i) result.push_back(fingerprint(*loader.next()));
  return result;
}

TEST(Loader, GivesTheSameStreamForAnyNumberOfThreads) {
  NumberedSamples samples(103);
  samples.skip = {5, 50, 51};
  Loader reference(samples, {.batch = 8, .threads = 0}, {.seed = 7});
  const auto expected = stream(reference, 40);
  for (const int threads : {1, 2, 4}) {
    Loader loader(samples, {.batch = 8, .threads = threads, .prefetch = 3}, {.seed = 7});
    EXPECT_EQ(stream(loader, 40), expected) << threads << " threads";
  }
}

TEST(Loader, SeesEverySampleOnceAnEpochInAnotherOrder) {
  NumberedSamples samples(50);
  Loader loader(samples, {.batch = 16, .threads = 2}, {.seed = 1});
  EXPECT_EQ(loader.batches_per_epoch(), 4);
  std::vector<std::vector<int64_t>> orders(2);
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    for (int i = 0; i < 4; ++i) {
      const auto batch = loader.next();
      EXPECT_EQ(batch->epoch, epoch);
      EXPECT_EQ(batch->position, 16 * i);
      EXPECT_EQ(batch->last_of_epoch, i == 3);
      EXPECT_EQ(batch->size(), i == 3 ? 2 : 16);
      for (const int64_t index : values(batch->target())) orders[epoch].push_back(index);
    }
    EXPECT_EQ(std::set(orders[epoch].begin(), orders[epoch].end()).size(), 50u);
  }
  EXPECT_NE(orders[0], orders[1]);
}

// The concatenated slices are the whole batch, including the last one, where some are empty.
TEST(Loader, SharesEachBatchOutInParts) {
  NumberedSamples samples(53);
  samples.skip = {5, 50};
  for (const bool drop_last : {false, true}) {
    for (const int parts : {1, 2, 3, 7, 20}) {
      Loader whole(samples, {.batch = 17, .threads = 0, .drop_last = drop_last}, {.seed = 4});
      std::vector<std::unique_ptr<Loader>> loaders;
      for (int part = 0; part < parts; ++part) {
        const LoaderConfig config{
            .batch = 17, .threads = part % 3, .drop_last = drop_last, .part = part, .parts = parts};
        loaders.push_back(std::make_unique<Loader>(samples, config, LoaderState{.seed = 4}));
        EXPECT_EQ(loaders.back()->batches_per_epoch(), whole.batches_per_epoch());
      }
      for (int i = 0; i < 10; ++i) {
        const auto batch = whole.next();
        std::vector<int64_t> targets;
        int64_t skipped = 0;
        for (const auto& loader : loaders) {
          const auto part = loader->next();
          for (const int64_t target : values(part->target())) targets.push_back(target);
          skipped += part->skipped;
          EXPECT_EQ(part->whole_size, batch->size() + batch->skipped);
          EXPECT_LE(part->size() + part->skipped, (part->whole_size + parts - 1) / parts);
          EXPECT_GE(part->size() + part->skipped, part->whole_size / parts);
          EXPECT_EQ(part->epoch, batch->epoch);
          EXPECT_EQ(part->last_of_epoch, batch->last_of_epoch);
          EXPECT_EQ(loader->state().epoch, whole.state().epoch);
          EXPECT_EQ(loader->state().position, whole.state().position);
        }
        EXPECT_EQ(targets, values(batch->target())) << parts << " parts, batch " << i;
        EXPECT_EQ(skipped, batch->skipped);
      }
    }
  }
}

TEST(Loader, GoesOnWithAnotherNumberOfParts) {
  NumberedSamples samples(53);
  Loader whole(samples, {.batch = 10, .threads = 0}, {.seed = 4});
  LoaderState state{.seed = 4};
  for (const int parts : {4, 1, 3, 2, 5, 3, 3}) {
    std::vector<int64_t> targets;
    LoaderState next = state;
    for (int part = 0; part < parts; ++part) {
      Loader loader(samples, {.batch = 10, .threads = 0, .part = part, .parts = parts}, state);
      for (const int64_t target : values(loader.next()->target())) targets.push_back(target);
      next = loader.state();
    }
    state = next;
    EXPECT_EQ(targets, values(whole.next()->target())) << parts << " parts";
  }
}

TEST(Loader, KeepsTheOrderWithoutShuffling) {
  NumberedSamples samples(5);
  Loader loader(samples, {.batch = 3, .threads = 2, .shuffle = false}, {});
  EXPECT_EQ(values(loader.next()->target()), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(values(loader.next()->target()), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(values(loader.next()->target()), (std::vector<int64_t>{0, 1, 2}));
}

TEST(Loader, LeavesOutAnIncompleteBatchWhereAsked) {
  NumberedSamples samples(10);
  Loader loader(samples, {.batch = 4, .threads = 1, .drop_last = true}, {});
  EXPECT_EQ(loader.batches_per_epoch(), 2);
  EXPECT_FALSE(loader.next()->last_of_epoch);
  EXPECT_TRUE(loader.next()->last_of_epoch);
  EXPECT_EQ(loader.next()->epoch, 1);
}

TEST(Loader, EndsAfterOneEpochWhereAsked) {
  NumberedSamples samples(10);
  for (const int threads : {0, 2}) {
    Loader loader(samples, {.batch = 4, .threads = threads, .one_epoch = true}, {.epoch = 3});
    for (int i = 0; i < 3; ++i) EXPECT_EQ(loader.next()->epoch, 3);
    EXPECT_FALSE(loader.next());
    EXPECT_FALSE(loader.next());
    loader.seek({.epoch = 5, .position = 8});
    EXPECT_EQ(loader.next()->size(), 2);
    EXPECT_FALSE(loader.next());
  }
}

TEST(Loader, ContinuesFromItsState) {
  NumberedSamples samples(37);
  samples.skip = {3};
  for (const int threads : {0, 2}) {
    const LoaderConfig config{.batch = 5, .threads = threads};
    Loader whole(samples, config, {.seed = 3});
    for (int taken = 0; taken < 18; ++taken) {
      const LoaderState state = whole.state();
      EXPECT_LT(state.position, 37);
      Loader rest(samples, config, state);
      EXPECT_EQ(fingerprint(*rest.next()), fingerprint(*whole.next())) << taken;
      EXPECT_EQ(rest.state().skipped, whole.state().skipped);
    }
    EXPECT_EQ(whole.state().skipped, 2);
  }
}

TEST(Loader, SeeksAnywhere) {
  NumberedSamples samples(1000);
  for (const int threads : {0, 3}) {
    Loader loader(samples, {.batch = 10, .threads = threads}, {.seed = 2});
    const auto first = stream(loader, 3);
    loader.seek({.seed = 2, .epoch = 123456, .position = 990});
    EXPECT_EQ(loader.next()->epoch, 123456);
    EXPECT_EQ(loader.next()->epoch, 123457);
    loader.seek({.seed = 2});
    EXPECT_EQ(stream(loader, 3), first);
    loader.seek({.seed = 2, .epoch = 4, .position = 1000});
    EXPECT_EQ(loader.next()->epoch, 5);
  }
}

TEST(Loader, MovesToAnotherSeed) {
  NumberedSamples samples(100);
  Loader one(samples, {.batch = 10}, {.seed = 1}), two(samples, {.batch = 10}, {.seed = 2});
  EXPECT_NE(stream(one, 1), stream(two, 1));
}

TEST(Loader, KeepsTheLastTwoBatches) {
  NumberedSamples samples(64);
  samples.jitter = false;
  Loader loader(samples, {.batch = 4, .threads = 2, .prefetch = 1, .shuffle = false}, {});
  auto before = loader.next();
  for (int i = 1; i < 12; ++i) {
    auto batch = loader.next();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_EQ(values(before->target())[0], (i - 1) * 4);
    EXPECT_EQ(values(batch->target())[0], i * 4);
    before = std::move(batch);
  }
}

TEST(Loader, LeavesOutBrokenSamplesAndCountsThem) {
  NumberedSamples samples(12);
  samples.skip = {0, 2, 7, 8, 9, 10, 11};
  for (const int threads : {0, 2}) {
    Loader loader(samples, {.batch = 4, .threads = threads, .shuffle = false}, {});
    auto batch = loader.next();
    EXPECT_EQ(batch->skipped, 2);
    EXPECT_EQ(values(batch->target()), (std::vector<int64_t>{1, 3}));
    EXPECT_EQ(values(batch->input()), (std::vector<int64_t>{1, 0, 10, 3, 0, 30}));
    EXPECT_EQ(batch->position_of(0), 1);
    EXPECT_EQ(batch->position_of(1), 3);
    EXPECT_EQ(values(loader.next()->target()), (std::vector<int64_t>{4, 5, 6}));
    batch = loader.next();
    EXPECT_EQ(batch->size(), 0);
    EXPECT_TRUE(batch->last_of_epoch);
    EXPECT_EQ(loader.state().skipped, 7);
  }
}

TEST(Loader, ThrowsWhatASampleThrewInItsTurnAndGoesOn) {
  NumberedSamples samples(40);
  samples.fail = {9, 11, 30};
  for (const int threads : {0, 1, 4}) {
    Loader loader(samples, {.batch = 4, .threads = threads, .prefetch = 8, .shuffle = false}, {});
    for (int i = 0; i < 10; ++i) {
      if (i != 2 && i != 7) {
        EXPECT_EQ(values(loader.next()->target())[0], i * 4);
        continue;
      }
      const LoaderState before = loader.state();
      try {
        loader.next();
        ADD_FAILURE() << "batch " << i << " has a damaged sample";
      } catch (const DataError& error) {
        EXPECT_STREQ(error.what(), i == 2 ? "sample 9 is damaged" : "sample 30 is damaged");
      }
      EXPECT_EQ(loader.state().position, before.position);
    }
  }
}

TEST(Loader, IsDestroyedWithAnErrorThatNobodyTook) {
  NumberedSamples samples(40);
  samples.fail = {0, 1, 2, 3};
  const Loader loader(samples, {.batch = 4, .threads = 2, .shuffle = false}, {});
}

TEST(Loader, ReturnsNothingOnceAskedToStop) {
  BlockedSamples samples;
  for (const int threads : {0, 2}) {
    samples.open = samples.begun = false;
    Loader loader(samples, {.batch = 4, .threads = threads}, {});
    StopRequest stop;
    std::thread asks([&] {
      while (!samples.begun) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      stop.request(-1);
      // In the caller's thread, a sample is finished before the stop request is checked.
      if (threads == 0) samples.open = true;
    });
    EXPECT_FALSE(loader.next(&stop).has_value());
    EXPECT_FALSE(loader.next(&stop).has_value());
    asks.join();
    samples.open = true;
    // With threads, a fill begins before the caller waits, possibly after the request.
    if (threads == 0) {
      EXPECT_GT(loader.wait_seconds(), 0.02);
    }
    EXPECT_EQ(loader.next()->position, 0);
  }
}

TEST(Loader, IsDestroyedWhileThreadsFill) {
  NumberedSamples samples(100000);
  for (int i = 0; i < 20; ++i) {
    Loader loader(samples, {.batch = 64, .threads = 4}, {});
    if (i % 2 == 0) loader.next();
  }
}

TEST(Loader, SeeksWhileThreadsFill) {
  NumberedSamples samples(5000);
  Loader loader(samples, {.batch = 32, .threads = 4, .shuffle = false}, {});
  for (int64_t i = 0; i < 50; ++i) {
    loader.seek({.epoch = i, .position = i * 7});
    const auto batch = loader.next();
    EXPECT_EQ(values(batch->input())[0], i * 7);
    EXPECT_EQ(values(batch->input())[1], i);
  }
}

TEST(Loader, RefusesWhatDoesNotFit) {
  const NumberedSamples samples(10), none(0);
  EXPECT_THROW(Loader(none, {.batch = 1}, {}), DataError);
  EXPECT_THROW(Loader(samples, {.batch = 11, .drop_last = true}, {}), UsageError);
  EXPECT_THROW(Loader(samples, {.batch = 0}, {}), InternalError);
  EXPECT_THROW(Loader(samples, {.batch = 1}, {.position = 11}), UsageError);
  Loader loader(samples, {.batch = 4, .threads = 1, .shuffle = false}, {});
  EXPECT_THROW(loader.seek({.epoch = -1}), UsageError);
  EXPECT_EQ(values(loader.next()->target())[0], 0);
}

TEST(Loader, NeedsAGpuForPinnedBuffers) {
  const NumberedSamples samples(10);
  try {
    const Loader loader(samples, {.batch = 2, .pinned = true}, {});
    GTEST_SKIP() << "this machine has page-locked memory";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("page-locked"), std::string::npos);
  }
}

/// Images of 2 x 3 pixels with 2 channels, as bytes 0, 1, 2, ... in the order height, width,
/// channels.
class TinyImages final : public Samples {
 public:
  TinyImages()
      : Samples(
            {{.name = "image",
              .shape = {.sizes = {2, 2, 3}, .dtype = c10::ScalarType::Byte, .channels_last = true}},
             {.name = "label", .shape = {.dtype = c10::ScalarType::Long}}}) {}
  int64_t size() const override { return 2; }
  bool fill(int64_t, int64_t, const SampleRow& row, Scratch&) const override {
    for (int i = 0; i < 12; ++i) row.as<uint8_t>(0)[i] = static_cast<uint8_t>(i);
    return true;
  }
};

/// Sample i has "tokens" [i + 1] of at most 6, all i, as many "weights", and a label.
class Sentences final : public Samples {
 public:
  Sentences()
      : Samples(Fields(std::vector<Field>{
            {.name = "tokens",
             .role = FieldRole::kInput,
             .shape = {{6}, c10::ScalarType::Long},
             .padding = 99},
            {.name = "weights", .shape = {{6, 2}, c10::ScalarType::Float}, .padding = 0},
            {.name = "label", .role = FieldRole::kTarget, .shape = {{}, c10::ScalarType::Long}}})) {
  }
  int64_t size() const override { return 5; }
  bool fill(int64_t index, int64_t, const SampleRow& row, Scratch&) const override {
    if (index == skip) return false;
    row.set_length(0, index + 1);
    row.set_length(1, index + 1);
    for (int64_t i = 0; i <= index; ++i) {
      row.as<int64_t>(0)[i] = index;
      row.as<float>(1)[2 * i] = row.as<float>(1)[2 * i + 1] = 1;
    }
    *row.as<int64_t>(2) = index;
    return true;
  }
  int64_t skip = -1;
};

TEST(Loader, PadsRaggedFieldsToTheLongestOfABatch) {
  const Sentences samples;
  for (const int threads : {0, 2}) {
    Loader loader(samples, {.batch = 3, .threads = threads, .shuffle = false}, {});
    for (int epoch = 0; epoch < 3; ++epoch) {
      const auto first = loader.next();
      EXPECT_EQ((*first)["tokens"].sizes(), (std::vector<int64_t>{3, 3}));
      EXPECT_TRUE((*first)["tokens"].is_contiguous());
      EXPECT_EQ(values((*first)["tokens"]), (std::vector<int64_t>{0, 99, 99, 1, 1, 99, 2, 2, 2}));
      EXPECT_EQ((*first)["weights"].sizes(), (std::vector<int64_t>{3, 3, 2}));
      EXPECT_EQ((*first)["weights"].sum().item<float>(), 12);
      EXPECT_EQ(values(first->target()), (std::vector<int64_t>{0, 1, 2}));
      const auto second = loader.next();
      EXPECT_EQ(values(second->input()), (std::vector<int64_t>{3, 3, 3, 3, 99, 4, 4, 4, 4, 4}));
    }
  }
}

TEST(BatchRows, RoundsTheLengthOfARaggedBatchUp) {
  const Field field{.name = "tokens", .shape = {{20}, c10::ScalarType::Long}, .padding = 9};
  const auto length_of = [&](const std::vector<int64_t>& lengths) {
    BatchRows rows = make_rows(field, 2, /*pinned=*/false);
    for (size_t i = 0; i < lengths.size(); ++i) {
      rows.lengths[i] = lengths[i];
      rows.pad(static_cast<int64_t>(i));
    }
    const at::Tensor first = rows.first(static_cast<int64_t>(lengths.size()));
    for (size_t i = 0; i < lengths.size(); ++i) {
      EXPECT_TRUE(first[static_cast<int64_t>(i)].slice(0, lengths[i]).eq(9).all().item<bool>());
    }
    return first.size(1);
  };
  // Multiples of an eighth of 20, rounded up.
  EXPECT_EQ(length_of({1, 3}), 3);
  EXPECT_EQ(length_of({4, 2}), 6);
  EXPECT_EQ(length_of({20, 1}), 20);
  EXPECT_EQ(length_of({19, 1}), 20);
  EXPECT_EQ(length_of({}), 3);
}

TEST(Loader, LeavesBrokenRowsOfRaggedFieldsOut) {
  Sentences samples;
  samples.skip = 1;
  Loader loader(samples, {.batch = 3, .shuffle = false}, {});
  const auto batch = loader.next();
  EXPECT_EQ(values((*batch)["tokens"]), (std::vector<int64_t>{0, 99, 99, 2, 2, 2}));
  EXPECT_EQ(batch->skipped, 1);
}

TEST(Loader, BatchesNameTheirFields) {
  const Sentences samples;
  Loader loader(samples, {.batch = 2, .shuffle = false}, {});
  const auto batch = loader.next();
  const NamedTensors named = batch->by_role();
  ASSERT_EQ(named.size(), 3u);
  EXPECT_EQ(named[0].name, "input");
  EXPECT_EQ(named[1].name, "target");
  EXPECT_EQ(named[2].name, "weights");
  EXPECT_TRUE(named[1].tensor.equal(batch->target()));
  EXPECT_THROW((*batch)["masks"], UsageError);
}

TEST(Fields, RejectsSetsThatNoStepCanUse) {
  const Field input{.name = "a", .role = FieldRole::kInput};
  const Field target{.name = "b", .role = FieldRole::kTarget};
  using List = std::vector<Field>;
  EXPECT_NO_THROW(Fields(List{input, target}));
  EXPECT_THROW(Fields(List{input}), UsageError);
  EXPECT_THROW(Fields(List{target}), UsageError);
  EXPECT_THROW(Fields(List{input, target, target}), UsageError);
  Field ragged = input;
  ragged.padding = 0;
  EXPECT_THROW(Fields(List{ragged, target}), UsageError);
}

TEST(Loader, LaysImagesOutChannelsLast) {
  const TinyImages samples;
  Loader loader(samples, {.batch = 2}, {});
  const auto batch = loader.next();
  EXPECT_EQ(batch->input().sizes(), (std::vector<int64_t>{2, 2, 2, 3}));
  EXPECT_EQ(batch->input().strides(), (std::vector<int64_t>{12, 1, 6, 2}));
  EXPECT_EQ(batch->input().const_data_ptr<uint8_t>()[12 + 5], 5);
}

}  // namespace
}  // namespace gallop::data
