#include "gallop/data/normalize.h"

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "gallop/base/error.h"

namespace gallop::data {
namespace {

float from_bfloat16(uint16_t bits) {
  const uint32_t wide = uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

TEST(Normalizer, FollowsTheFormulaForEveryCountAndChannel) {
  const std::vector<double> mean = {0.49, 0.48, 0.44}, deviation = {0.25, 0.24, 0.26};
  const Normalizer normalizer(mean, deviation, c10::ScalarType::Float);
  std::vector<uint8_t> bytes(300);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 7);
  for (const int64_t count : {1, 47, 48, 49, 96, 300}) {
    std::vector<float> out(static_cast<size_t>(count) + 1, -7);
    normalizer.write(bytes.data(), count, out.data());
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      EXPECT_NEAR(out[i], (bytes[i] / 255.0 - mean[i % 3]) / deviation[i % 3], 1e-6);
    }
    EXPECT_EQ(out.back(), -7);
  }
}

TEST(Normalizer, RoundsToTheNearestBfloat16) {
  const Normalizer exact({0.3}, {0.2}, c10::ScalarType::Float);
  const Normalizer rounded({0.3}, {0.2}, c10::ScalarType::BFloat16);
  uint8_t bytes[256];
  for (int i = 0; i < 256; ++i) bytes[i] = static_cast<uint8_t>(i);
  float wide[256];
  uint16_t narrow[256];
  exact.write(bytes, 256, wide);
  rounded.write(bytes, 256, narrow);
  for (int i = 0; i < 256; ++i) {
    EXPECT_LE(std::abs(from_bfloat16(narrow[i]) - wide[i]), std::abs(wide[i]) / 256) << i;
  }
}

TEST(Normalizer, RefusesWhatItCannotWrite) {
  EXPECT_THROW(Normalizer({0, 0}, {1, 1}, c10::ScalarType::Float), InternalError);
  EXPECT_THROW(Normalizer({0}, {1}, c10::ScalarType::Half), InternalError);
}

}  // namespace
}  // namespace gallop::data
