#include "gallop/data/resize.h"

#include <cstring>

#include <gtest/gtest.h>

#include "gallop/base/file.h"
#include "gallop/data/resize_kernels.h"
#include "unit/fixtures.h"

namespace gallop::data {
namespace {

std::vector<uint8_t> noise(size_t count) {
  uint32_t state = 12345;
  std::vector<uint8_t> bytes(count);
  for (auto& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<uint8_t>(state >> 24);
  }
  return bytes;
}

TEST(Resizer, IsWithinOneLevelOfPillow) {
  const std::string fixture = read_file(fixtures() / "resize.bin");
  const char* at = fixture.data();
  const auto next = [&at] {
    int32_t value;
    std::memcpy(&value, at, sizeof(value));
    at += sizeof(value);
    return value;
  };
  const int cases = next();
  ASSERT_EQ(cases, 7);
  Resizer resizer;
  for (int i = 0; i < cases; ++i) {
    const int height = next(), width = next(), channels = next();
    const int top = next(), left = next(), box_height = next(), box_width = next();
    const int out_height = next(), out_width = next();
    const auto source = noise(static_cast<size_t>(height * width * channels));
    std::vector<uint8_t> out(static_cast<size_t>(out_height * out_width * channels));
    resizer.resize({source.data(), height, width, channels},
                   {.top = double(top),
                    .left = double(left),
                    .height = double(box_height),
                    .width = double(box_width)},
                   out_height, out_width, out.data());
    int worst = 0;
    for (const uint8_t byte : out)
      worst = std::max(worst, std::abs(byte - static_cast<uint8_t>(*at++)));
    EXPECT_LE(worst, 1) << "case " << i;
  }
  EXPECT_EQ(at, fixture.data() + fixture.size());
}

TEST(Resizer, KeepsAPlainColorExactly) {
  const std::vector<uint8_t> white(100 * 80 * 3, 255);
  std::vector<uint8_t> out(17 * 31 * 3);
  Resizer().resize({white.data(), 100, 80, 3},
                   {.top = 0.5, .left = 3.25, .height = 99.5, .width = 70}, 17, 31, out.data());
  EXPECT_EQ(out, std::vector<uint8_t>(out.size(), 255));
}

TEST(Resizer, CopiesWhatHasTheRightSize) {
  const auto source = noise(6 * 5 * 3);
  std::vector<uint8_t> out(source.size());
  Resizer().resize({source.data(), 6, 5, 3}, {.height = 6, .width = 5}, 6, 5, out.data());
  EXPECT_EQ(out, source);
}

TEST(Resizer, ReadsNothingOutsideTheBox) {
  // Zeros around a block of 200: any of them would darken the result.
  std::vector<uint8_t> source(40 * 40, 0);
  for (int y = 10; y < 30; ++y) std::fill_n(&source[static_cast<size_t>(y * 40 + 12)], 16, 200);
  for (const int size : {3, 16, 50}) {
    std::vector<uint8_t> out(static_cast<size_t>(size * size));
    Resizer().resize({source.data(), 40, 40, 1}, {.top = 10, .left = 12, .height = 20, .width = 16},
                     size, size, out.data());
    EXPECT_EQ(out, std::vector<uint8_t>(out.size(), 200)) << size;
  }
}

TEST(ResizeKernels, AgreeBitForBit) {
  const ResizeKernels plain = portable_resize_kernels(), best = best_resize_kernels();
  const auto bytes = noise(600);
  for (const int count : {1, 15, 16, 17, 47, 96}) {
    const uint8_t* rows[] = {&bytes[0], &bytes[100], &bytes[200], &bytes[300]};
    const int16_t weights[] = {100, 16000, 200, 84};
    std::vector<int16_t> a(128, -1), b(128, -1);
    plain.blend_rows(rows, weights, 4, count, a.data());
    best.blend_rows(rows, weights, 4, count, b.data());
    EXPECT_TRUE(std::equal(a.begin(), a.begin() + count, b.begin())) << count;
  }
  std::vector<int16_t> row(300);
  for (size_t i = 0; i < row.size(); ++i) row[i] = static_cast<int16_t>(bytes[i] * 128);
  const int begin[] = {0, 3, 9, 50};
  const int16_t weights[] = {16384, 0, 8000, 8384, 1, 16383, 5000, 11384};
  for (const int channels : {1, 3}) {
    std::vector<uint8_t> a(13, 7), b(13, 7);
    plain.blend_columns(row.data(), begin, weights, 2, 4, channels, a.data());
    best.blend_columns(row.data(), begin, weights, 2, 4, channels, b.data());
    EXPECT_EQ(a, b) << channels;
  }
}

}  // namespace
}  // namespace gallop::data
