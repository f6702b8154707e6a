// Seeds LibTorch's random numbers before each test, which begin with the time otherwise. Linked
// into every test program of a module that uses LibTorch; --gtest_random_seed takes other numbers.
#include <ATen/Context.h>
#include <gtest/gtest.h>

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
  return true;
}();

}  // namespace
}  // namespace gallop
