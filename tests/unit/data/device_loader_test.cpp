#include "gallop/data/device_loader.h"

#include <gtest/gtest.h>

#include "unit/data/fake_accelerator.h"
#include "unit/data/numbered_samples.h"

namespace gallop::data {
namespace {

using Fingerprints = std::vector<std::vector<int64_t>>;

std::vector<int64_t> fingerprint_on_host(Batch batch) {
  batch.to(c10::kCPU);
  return fingerprint(batch);
}

// The fingerprints of some batches, with "failed" in place of a batch that threw.
Fingerprints stream(DeviceLoader& loader, int batches) {
  Fingerprints result;
  for (int i = 0; i < batches; ++i) {
    try {
      result.push_back(fingerprint_on_host(*loader.next()));
    } catch (const DataError&) {
      result.push_back({-1});
    }
  }
  return result;
}

TEST(DeviceLoader, GivesTheSameStreamOnEveryDevice) {
  NumberedSamples samples(103);
  samples.skip = {5, 50, 51};
  samples.fail = {20};
  for (const int threads : {0, 1, 4}) {
    const LoaderConfig config{.batch = 8, .threads = threads, .prefetch = 3};
    DeviceLoader on_cpu(samples, config, {.seed = 7}, c10::kCPU);
    DeviceLoader on_device(samples, config, {.seed = 7}, fake_accelerator());
    EXPECT_EQ(stream(on_device, 60), stream(on_cpu, 60)) << threads << " threads";
  }
}

TEST(DeviceLoader, LeavesBatchesOnTheDevice) {
  const NumberedSamples samples(10);
  DeviceLoader loader(samples, {.batch = 4, .threads = 1}, {}, fake_accelerator());
  const auto batch = loader.next();
  EXPECT_EQ(batch->input().device(), fake_accelerator());
  EXPECT_EQ(batch->target().device(), fake_accelerator());
}

TEST(DeviceLoader, CopiesTheNextBatchWhileThisOneIsUsed) {
  NumberedSamples samples(100);
  samples.jitter = false;
  DeviceLoader loader(samples, {.batch = 4, .threads = 1}, {}, fake_accelerator());
  // Only a ready batch is copied ahead; the loader thread prepares it eventually.
  do {
    fingerprint_on_host(*loader.next());
  } while (copies_in_flight() == 0);
  EXPECT_EQ(copies_in_flight(), 2);  // Input and target.
}

TEST(DeviceLoader, KeepsABufferUntilItIsCopied) {
  const NumberedSamples samples(100);
  const LoaderConfig config{.batch = 4, .threads = 2, .prefetch = 1};
  DeviceLoader on_device(samples, config, {}, fake_accelerator());
  std::vector<Batch> batches;
  for (int i = 0; i < 20; ++i) batches.push_back(*on_device.next());
  Fingerprints seen;
  for (const Batch& batch : batches) seen.push_back(fingerprint_on_host(batch));
  DeviceLoader on_cpu(samples, config, {}, c10::kCPU);
  EXPECT_EQ(seen, stream(on_cpu, 20));
}

TEST(DeviceLoader, StateLeavesOutWhatWasCopiedAhead) {
  const NumberedSamples samples(50);
  const LoaderConfig config{.batch = 8, .threads = 2};
  DeviceLoader whole(samples, config, {.seed = 3}, fake_accelerator());
  for (int begun = 0; begun < 12; ++begun) {
    const LoaderState state = whole.state();
    EXPECT_EQ(state.position, begun % 7 * 8);
    DeviceLoader resumed(samples, config, state, fake_accelerator());
    EXPECT_EQ(stream(resumed, 1), stream(whole, 1));
  }
}

TEST(DeviceLoader, SeeksAwayFromWhatWasCopiedAhead) {
  const NumberedSamples samples(50);
  const LoaderConfig config{.batch = 8, .threads = 2};
  DeviceLoader loader(samples, config, {.seed = 3}, fake_accelerator());
  const Fingerprints expected = stream(loader, 10);
  for (int i = 0; i < 5; ++i) {
    loader.seek({.seed = 3});
    EXPECT_EQ(loader.state().position, 0);
    EXPECT_EQ(stream(loader, 10), expected);
  }
}

TEST(DeviceLoader, EndsWithTheEpoch) {
  const NumberedSamples samples(20);
  DeviceLoader loader(samples, {.batch = 8, .threads = 2, .one_epoch = true}, {},
                      fake_accelerator());
  stream(loader, 3);
  EXPECT_FALSE(loader.next());
  EXPECT_FALSE(loader.next());
}

TEST(DeviceLoader, StopsWhenAsked) {
  const NumberedSamples samples(100);
  DeviceLoader loader(samples, {.batch = 8, .threads = 2}, {}, fake_accelerator());
  stream(loader, 2);
  const LoaderState before = loader.state();
  StopRequest stop;
  stop.request(-1);
  EXPECT_FALSE(loader.next(&stop));
  EXPECT_EQ(loader.state().position, before.position);
}

}  // namespace
}  // namespace gallop::data
