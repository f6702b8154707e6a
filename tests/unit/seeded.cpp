// Seeds LibTorch's random numbers before each test; by default they are seeded by time. Linked
// into every test program of a module that uses LibTorch; --gtest_random_seed takes other numbers.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "unit/left_behind.h"

namespace gallop {
namespace {

class Seeded : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override {
    at::manual_seed(static_cast<uint64_t>(GTEST_FLAG_GET(random_seed)));
  }
};

// GoogleTest owns its listeners.
[[maybe_unused]] const bool kSeeded = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new Seeded);
  threads_of_libtorch() = &at::get_num_threads;
  return true;
}();

}  // namespace
}  // namespace gallop
