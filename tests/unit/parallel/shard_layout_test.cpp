#include "gallop/parallel/shard_layout.h"

#include <algorithm>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "gallop/kernel/update.h"

namespace gallop::parallel {
namespace {

constexpr int64_t kMiB = 1 << 20;

std::vector<ParameterShape> shapes_of(const std::vector<int64_t>& elements, bool is_whole = false) {
  std::vector<ParameterShape> shapes;
  for (const int64_t one : elements) {
    shapes.push_back({.name = std::to_string(shapes.size()),
                      .elements = one,
                      .unit = {.is_whole = is_whole, .cost = static_cast<double>(one)}});
  }
  return shapes;
}

std::vector<size_t> last_first(size_t count) {
  std::vector<size_t> order(count);
  std::iota(order.rbegin(), order.rend(), size_t{0});
  return order;
}

ShardLayout layout_of(const std::vector<ParameterShape>& shapes, int64_t bytes, int processes) {
  return {shapes, last_first(shapes.size()), bytes, processes};
}

// Sizes as of a transformer, with small ones in between.
std::vector<int64_t> of_transformer(int64_t layers, int64_t width) {
  std::vector<int64_t> elements = {1000 * width, 128 * width};
  for (int64_t layer = 0; layer < layers; ++layer) {
    for (const int64_t one :
         {width, width, 3 * width * width, 3 * width, width * width, width, width, width,
          4 * width * width, 4 * width, 4 * width * width, width}) {
      elements.push_back(one);
    }
  }
  elements.insert(elements.end(), {width, width});
  return elements;
}

// Each element has one owner, what a rank has lies in its part of a bucket, and cuts are at whole
// chunks that leave a whole chunk.
void expect_valid(const ShardLayout& layout, const std::vector<ParameterShape>& shapes,
                  int processes) {
  std::vector<int> seen(shapes.size());
  for (const auto& bucket : layout.buckets()) {
    ASSERT_EQ(static_cast<int>(bucket.sizes.size()), processes);
    std::vector<int64_t> ends(bucket.sizes.size());
    std::partial_sum(bucket.sizes.begin(), bucket.sizes.end(), ends.begin());
    for (size_t k = 0; k < bucket.parameters.size(); ++k) {
      const size_t i = bucket.parameters[k];
      seen[i] += 1;
      EXPECT_EQ(bucket.offsets[k] % 16, 0);
      int64_t end = 0;
      for (const auto& part : layout.parts(i)) {
        EXPECT_EQ(part.begin, end);
        EXPECT_EQ(part.begin % kernel::kNormChunk, 0);
        EXPECT_TRUE(part.end == shapes[i].elements || part.size() >= kernel::kNormChunk);
        EXPECT_TRUE(part.begin == 0 || part.size() >= kernel::kNormChunk);
        const auto rank = static_cast<size_t>(part.rank);
        EXPECT_GE(bucket.offsets[k] + part.begin, ends[rank] - bucket.sizes[rank]);
        EXPECT_LE(bucket.offsets[k] + part.end, ends[rank]);
        end = part.end;
      }
      EXPECT_EQ(end, shapes[i].elements);
    }
  }
  EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](int times) { return times == 1; }));
}

TEST(ShardLayout, DividesEqually) {
  const auto elements = of_transformer(12, 768);
  const auto shapes = shapes_of(elements);
  const int64_t all = std::accumulate(elements.begin(), elements.end(), int64_t{0});
  for (const int processes : {1, 2, 3, 4, 64, 256}) {
    const auto layout = layout_of(shapes, 25 * kMiB, processes);
    expect_valid(layout, shapes, processes);
    int64_t sum = 0;
    for (int rank = 0; rank < processes; ++rank) {
      const int64_t own = layout.elements_of(rank);
      sum += own;
      EXPECT_NEAR(static_cast<double>(own) * processes / static_cast<double>(all), 1, 0.03);
    }
    EXPECT_EQ(sum, all);
  }
}

TEST(ShardLayout, DividesAnySizes) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<int64_t> elements;
    for (int i = 0; i < 20; ++i) elements.push_back(random() % (round % 3 == 0 ? 40000 : 9000));
    const auto shapes = shapes_of(elements);
    const int processes = 1 + static_cast<int>(random() % 9);
    expect_valid(layout_of(shapes, 1 << (8 + random() % 12), processes), shapes, processes);
  }
}

TEST(ShardLayout, GivesWholeParametersToOwners) {
  const auto shapes = shapes_of({100, 90, 80, 70, 60, 50, 40, 30, 20, 10}, /*is_whole=*/true);
  const auto layout = layout_of(shapes, kMiB, 3);
  expect_valid(layout, shapes, 3);
  for (int rank = 0; rank < 3; ++rank) EXPECT_NEAR(layout.elements_of(rank), 550 / 3.0, 20);
  for (size_t i = 0; i < shapes.size(); ++i) EXPECT_EQ(layout.parts(i).size(), 1);
  EXPECT_EQ(layout.part_of(0, 0).size(), 100);
  EXPECT_EQ(layout.part_of(0, 1).size(), 0);
}

// The most expensive are divided by cost, but no process gets far more elements than others.
TEST(ShardLayout, LimitsTheElementsOfAnOwner) {
  auto shapes = shapes_of(std::vector<int64_t>(12, 100), /*is_whole=*/true);
  for (size_t i = 0; i < 3; ++i) shapes[i].unit.cost = 1e6;
  const auto layout = layout_of(shapes, kMiB, 4);
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_GE(layout.elements_of(rank), 200);
    EXPECT_LE(layout.elements_of(rank), 390);
  }
}

TEST(ShardLayout, KeepsKindsInBucketsOfTheirOwn) {
  auto shapes = shapes_of({5000, 300, 6000, 200, 7000});
  shapes[2].unit.is_whole = true;
  shapes[4].is_trained = false;
  shapes[1].type = c10::kBFloat16;
  const auto layout = layout_of(shapes, kMiB, 2);
  expect_valid(layout, shapes, 2);
  ASSERT_EQ(layout.buckets().size(), 4);
  EXPECT_FALSE(layout.buckets().back().is_trained);
  EXPECT_EQ(layout.buckets().back().parameters, std::vector<size_t>{4});
  // By the parameter that came last: 2, then 1, then 0 with 3.
  EXPECT_EQ(layout.buckets()[0].parameters, std::vector<size_t>{2});
  EXPECT_EQ(layout.buckets()[2].parameters, (std::vector<size_t>{3, 0}));
}

// Processes along tp have parts of different sizes next to the same whole parameters.
TEST(ShardLayout, DividesWholeParametersAlikeNextToOtherParts) {
  auto shapes = shapes_of({9000, 20000, 12288, 300, 8192, 30000, 5000});
  for (const size_t i : {1, 2, 5}) shapes[i].is_part = true;
  auto others = shapes;
  for (const size_t i : {1, 2, 5}) others[i].elements += 7000;
  const auto one = layout_of(shapes, 64 << 10, 3), other = layout_of(others, 64 << 10, 3);
  expect_valid(one, shapes, 3);
  expect_valid(other, others, 3);
  for (const size_t i : {0, 3, 4, 6}) {
    ASSERT_EQ(one.parts(i).size(), other.parts(i).size()) << i;
    for (size_t k = 0; k < one.parts(i).size(); ++k) {
      EXPECT_EQ(one.parts(i)[k].rank, other.parts(i)[k].rank) << i;
      EXPECT_EQ(one.parts(i)[k].begin, other.parts(i)[k].begin) << i;
      EXPECT_EQ(one.parts(i)[k].end, other.parts(i)[k].end) << i;
    }
  }
}

}  // namespace
}  // namespace gallop::parallel
