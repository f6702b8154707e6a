#include <unistd.h>

#include <cstdlib>

#include <gtest/gtest.h>

#include "gallop/base/file.h"
#include "gallop/base/hash.h"
#include "gallop/data/data_config.h"
#include "gallop/data/data_module.h"
#include "gallop/data/loader.h"

namespace gallop::data {
namespace {

std::string_view bytes_of(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

class RealLoading : public testing::Test {
 protected:
  void SetUp() override {
    const char* given = std::getenv("GALLOP_TEST_DATA");
    if (given == nullptr) GTEST_SKIP() << "GALLOP_TEST_DATA is not set";
    archive = fs::path(given) / "cifar10-jpeg.tar";
    if (!fs::exists(archive)) GTEST_SKIP() << "GALLOP_TEST_DATA has no cifar10-jpeg.tar";
  }
  void TearDown() override { fs::remove_all(cache); }

  // A hash of the first batches of two epochs.
  std::string stream(const char* in_memory, int threads) const {
    DataConfig config(modules, augmentations, batch_transforms);
    config.module = config::Component(modules, "tar");
    config.path = archive.string();
    config.in_memory = in_memory;
    config.augment.items.emplace_back(augmentations, "random-crop");
    config.augment.items.emplace_back(augmentations, "random-horizontal-flip");
    const auto data =
        open_data(config, modules, augmentations, {.seed = 5, .cores = 2, .cache_folder = cache});
    Loader loader(*data->train, {.batch = 100, .threads = threads}, {.seed = 5});
    Hasher hasher;
    for (const int64_t epoch : {0, 1}) {
      loader.seek({.seed = 5, .epoch = epoch});
      for (int i = 0; i < 8; ++i) {
        const auto batch = loader.next();
        hasher.update(bytes_of(batch->input()).data(), batch->input().nbytes());
        hasher.update(bytes_of(batch->target()).data(), batch->target().nbytes());
      }
    }
    return hasher.digest();
  }

  fs::path archive;
  const fs::path cache = fs::path(testing::TempDir()) / ("loading-" + std::to_string(getpid()));
  const DataModuleRegistry modules = built_in_data_modules();
  const AugmentationRegistry augmentations = built_in_augmentations();
  const BatchTransformRegistry batch_transforms = built_in_batch_transforms();
};

TEST_F(RealLoading, DoesNotDependOnThreadsOrMemory) {
  const std::string expected = stream("no", 0);
  EXPECT_EQ(stream("yes", 0), expected);
  for (const int threads : {1, 2, 4}) {
    EXPECT_EQ(stream("no", threads), expected) << threads;
    EXPECT_EQ(stream("yes", threads), expected) << threads;
  }
}

}  // namespace
}  // namespace gallop::data
