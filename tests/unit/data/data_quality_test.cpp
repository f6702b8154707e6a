// Perceptual hashes, label errors and fences next to imagehash, cleanlab and numpy, by
// tests/parity/make_data_quality.py.
#include "gallop/data/quality/data_quality.h"

#include <bit>
#include <cstring>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/data/quality/column_quality.h"
#include "gallop/data/quality/duplicate_findings.h"
#include "gallop/data/quality/duplicates.h"
#include "gallop/data/quality/label_errors.h"
#include "gallop/data/quality/outliers.h"
#include "gallop/data/quality/perceptual_hash.h"
#include "gallop/data/signature.h"
#include "unit/data/expect_error.h"
#include "unit/fixtures.h"

namespace gallop::data {
namespace {

const nlohmann::json& fixture() {
  static const nlohmann::json json = [] {
    std::ifstream file(fixtures() / "data_quality.json");
    return nlohmann::json::parse(file);
  }();
  return json;
}

TEST(PerceptualHash, EqualsImagehash) {
  for (const auto& one : fixture()["hashes"]) {
    const std::string pixels = from_hex(one["pixels"]);
    const Image image{.height = one["height"],
                      .width = one["width"],
                      .channels = one["channels"],
                      .pixels = {pixels.begin(), pixels.end()}};
    const uint64_t wanted = std::stoull(one["hash"].get<std::string>());
    const uint64_t hash = perceptual_hash(hashed_pixels(image));
    const int distance = std::popcount(hash ^ wanted);
    if (image.height == kHashedSide && image.width == kHashedSide) {
      EXPECT_EQ(distance, 0);
    } else {
      // imagehash resizes by a Lanczos filter.
      EXPECT_LE(distance, 4) << image.height << " x " << image.width;
    }
  }
}

LabeledPredictions predictions_of(const nlohmann::json& one) {
  LabeledPredictions predictions{.classes = one["classes"],
                                 .labels = one["labels"].get<std::vector<int64_t>>()};
  const std::string bytes = from_hex(one["probabilities"]);
  predictions.probabilities.resize(bytes.size() / sizeof(float));
  std::memcpy(predictions.probabilities.data(), bytes.data(), bytes.size());
  return predictions;
}

TEST(LabelErrors, EqualCleanlab) {
  for (const auto& one : fixture()["label errors"]) {
    const LabeledPredictions predictions = predictions_of(one);
    for (const auto& [quality, name] :
         {std::pair(LabelQuality::kSelfConfidence, "self_confidence"),
          std::pair(LabelQuality::kNormalizedMargin, "normalized_margin")}) {
      const LabelErrors found = find_label_errors(predictions, quality);
      EXPECT_EQ(nlohmann::json(found.joint), one["joint"]);
      EXPECT_EQ(nlohmann::json(found.samples), one[name]["errors"]) << name;
      for (size_t i = 0; i < found.samples.size(); ++i) {
        EXPECT_NEAR(label_quality(predictions, found.samples[i], quality),
                    one[name]["scores"][i].get<double>(), 1e-6);
      }
    }
    const LabelErrors unlike = find_label_errors(predictions, LabelQuality::kSelfConfidence,
                                                 LabelFilter::kPredictedNeqGiven);
    EXPECT_EQ(nlohmann::json(unlike.samples), one["predicted_neq_given"]);
  }
}

TEST(LabelErrors, ClassesWithoutSamplesHaveNone) {
  const LabeledPredictions predictions{
      .classes = 3,
      .probabilities = {0.8F, 0.1F, 0.1F, 0.9F, 0.1F, 0, 0, 0.9F, 0.1F, 0.1F, 0.8F, 0.1F, 0.05F,
                        0.9F, 0.05F},
      .labels = {0, 0, 1, 1, 0}};
  const LabelErrors found = find_label_errors(predictions, LabelQuality::kSelfConfidence);
  EXPECT_EQ(found.samples, (std::vector<int64_t>{4}));
  EXPECT_EQ(found.joint[2], (std::vector<int64_t>{0, 0, 0}));
  EXPECT_THROW(find_label_errors({.classes = 3}, LabelQuality::kSelfConfidence), UsageError);
  EXPECT_THROW(find_label_errors({.classes = 1, .probabilities = {1}, .labels = {0}},
                                 LabelQuality::kSelfConfidence),
               UsageError);
}

TEST(Fences, EqualPercentilesOfNumpy) {
  for (const auto& one : fixture()["fences"]) {
    const Fences found = fences(one["values"], 1.5, 0);
    EXPECT_NEAR(found.low, one["low"].get<double>(), 1e-12);
    EXPECT_NEAR(found.high, one["high"].get<double>(), 1e-12);
  }
}

TEST(Fences, OutliersAreTheFarthestFirst) {
  const std::vector<double> values = {5, 5, 5, 5, 9, 5, 5, -20, 5};
  EXPECT_EQ(outliers(values, fences(values, 1.5, 0)), (std::vector<int64_t>{7, 4}));
  EXPECT_EQ(outliers(values, fences(values, 1.5, 10)), (std::vector<int64_t>{7}));
  EXPECT_TRUE(outliers({}, fences({}, 1.5, 0)).empty());
}

Fingerprint fingerprint(uint64_t exact, uint64_t perceptual, int slope) {
  // The hash of the mirror image is one that no image has.
  Fingerprint made{.exact = exact, .perceptual = perceptual, .mirrored = ~perceptual};
  for (size_t i = 0; i < made.detail.size(); ++i) {
    made.detail[i] = static_cast<int8_t>(slope * (static_cast<int>(i) % 7 - 3));
  }
  return made;
}

std::vector<std::pair<int64_t, int64_t>> indices(const std::vector<NearPair>& pairs) {
  std::vector<std::pair<int64_t, int64_t>> found;
  for (const NearPair& pair : pairs) found.emplace_back(pair.first, pair.second);
  std::sort(found.begin(), found.end());
  return found;
}

TEST(NearPairs, HaveSimilarHashesAndDetails) {
  const std::vector<Fingerprint> images = {
      fingerprint(1, 0xFF00, 1),
      fingerprint(2, 0xF0F0F0F0, 1),
      fingerprint(1, 0xFF00, 1),  // The first one again.
      fingerprint(3, 0xFF00 ^ 0x0101010101010100, 2),
      fingerprint(4, 0xF0F0F0F0, -1),  // A similar hash, another content.
      fingerprint(5, 0xF0F0F0F1, -1),
      fingerprint(6, 0xF0F0F0F1, 0)};  // Without details.
  for (const int threads : {1, 3}) {
    EXPECT_EQ(indices(near_pairs(images, threads)),
              (std::vector<std::pair<int64_t, int64_t>>{{0, 3}, {4, 5}}));
  }
  EXPECT_TRUE(near_pairs({}, 1).empty());
}

TEST(NearPairs, OneMayBeMirrored) {
  Fingerprint image = fingerprint(1, 0xFF00, 1), other = fingerprint(2, 0x12345678, 0);
  other.mirrored = 0xFF01;
  other.detail = mirror(image.detail);
  ASSERT_NE(other.detail, image.detail);
  const auto found = near_pairs({other, image, fingerprint(3, 0xFF00, 1)}, 2);
  // 0 is compared as it is with the mirror images of the others, whose hashes are far.
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(indices(found), (std::vector<std::pair<int64_t, int64_t>>{{1, 2}}));
  const auto mirrored = near_pairs({image, other}, 1);
  ASSERT_EQ(mirrored.size(), 1u);
  EXPECT_TRUE(mirrored[0].is_mirrored);
  EXPECT_DOUBLE_EQ(mirrored[0].similarity, 1);
  // The mirror image of a symmetric one is not listed a second time.
  other.perceptual = 0xFF00;
  EXPECT_EQ(near_pairs({image, other}, 1).size(), 1u);
}

TEST(NearPairs, AreAllThatComparingEachWithEachFinds) {
  std::vector<Fingerprint> images;
  uint64_t state = 1;
  const auto next = [&] { return state = state * 6364136223846793005U + 1442695040888963407U; };
  for (uint64_t i = 0; i < 300; ++i) {
    uint64_t hash = i % 3 == 0 ? next() : images[i - 1].perceptual;
    for (int bit = 0; bit < static_cast<int>(i % 3) * 5; ++bit)
      hash ^= uint64_t{1} << (next() >> 58);
    images.push_back(fingerprint(i, hash, 1));
  }
  std::vector<std::pair<int64_t, int64_t>> wanted;
  for (size_t a = 0; a < images.size(); ++a) {
    for (size_t b = a + 1; b < images.size(); ++b) {
      if (std::popcount(images[a].perceptual ^ images[b].perceptual) > kMaxDistance) continue;
      wanted.emplace_back(a, b);
    }
  }
  EXPECT_GT(wanted.size(), 90u);
  EXPECT_EQ(indices(near_pairs(images, 2)), wanted);
}

TEST(GroupDuplicates, MembersAreDuplicatesOfTheFirstOne) {
  using Members = std::vector<int64_t>;
  const std::vector<Part> train(6, Part::kTrain);
  // 1 is near 0, and 2 is near 1 but not 0.
  const auto chain = group_duplicates(train, {1, 2, 3, 4, 4, 5}, {{0, 1, 0.95}, {1, 2, 0.97}});
  ASSERT_EQ(chain.size(), 2u);
  EXPECT_EQ(chain[0].members, (Members{3, 4}));
  EXPECT_TRUE(chain[0].is_exact);
  EXPECT_EQ(chain[1].members, (Members{0, 1}));
  EXPECT_FALSE(chain[1].is_exact);
  EXPECT_EQ(chain[1].similarity, 0.95);
}

TEST(GroupDuplicates, NameMirroredMembers) {
  const auto groups = group_duplicates(
      {Part::kTrain, Part::kTrain, Part::kTest}, {1, 2, 3},
      {{.first = 0, .second = 1, .similarity = 0.95}, {0, 2, 0.99, /*is_mirrored=*/true}});
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].members, (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(groups[0].mirrored, (std::vector<int64_t>{0}));
  EXPECT_TRUE(groups[1].mirrored.empty());
}

TEST(GroupDuplicates, ThoseOfOtherSplitsAreGroupedByTheLaterOne) {
  using Members = std::vector<int64_t>;
  const std::vector<Part> parts = {Part::kTrain, Part::kTrain,      Part::kTrain,
                                   Part::kTrain, Part::kValidation, Part::kTest};
  // 0 = 3 = 5 (test), 1 is near 0, and 2 = 4 (validation).
  const auto groups = group_duplicates(parts, {7, 8, 9, 7, 9, 7}, {{0, 1, 0.92}});
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].members, (Members{2, 4}));
  EXPECT_TRUE(groups[0].is_across && groups[0].is_exact);
  EXPECT_EQ(groups[1].members, (Members{0, 1, 3}));
  EXPECT_FALSE(groups[1].is_across || groups[1].is_exact);
  EXPECT_EQ(groups[2].members, (Members{0, 1, 3, 5}));
  EXPECT_TRUE(groups[2].is_across);
}

FoundSample sample(Part part, const std::string& name, const std::string& label) {
  return {.part = part, .name = name, .label = label};
}

TEST(DuplicateFindings, DistinguishLeakageConflictsAndDuplicates) {
  const std::vector<FoundSample> samples = {
      sample(Part::kTrain, "a", "cat"), sample(Part::kTrain, "b", "cat"),
      sample(Part::kTrain, "c", "cat"), sample(Part::kTrain, "d", "dog"),
      sample(Part::kTrain, "e", "cat"), sample(Part::kTest, "f", "cat"),
      sample(Part::kTest, "g", "cat"),  sample(Part::kTest, "h", "cat")};
  DataQuality quality{.unit = "images"};
  add_duplicates(
      {{.members = {0, 1}},
       {.members = {2, 3}},
       {.members = {4, 5}, .is_exact = false, .is_across = true},
       {.members = {6, 7}, .is_exact = false}},
      [&](int64_t i) { return samples[static_cast<size_t>(i)]; }, quality);
  std::map<std::string, std::vector<std::string>> excluded;
  std::map<std::string, std::string> texts;
  for (const QualityFinding& one : quality.findings) {
    excluded[one.kind] = one.excluded;
    texts[one.kind] = one.text;
  }
  using Names = std::vector<std::string>;
  EXPECT_EQ(excluded.size(), 4u);
  EXPECT_EQ(excluded["leakage"], (Names{"e"}));
  EXPECT_EQ(excluded["conflicting-labels"], (Names{"c", "d"}));
  EXPECT_EQ(excluded["exact-duplicates"], (Names{"b", "d"}));
  EXPECT_EQ(excluded["near-duplicates"], (Names{"h"}));
  EXPECT_EQ(
      texts["leakage"],
      "1 image of the test split and 1 image of the train split have nearly the same content");
  EXPECT_EQ(texts["exact-duplicates"], "4 images in 2 groups have the same content");
}

TEST(SampleNames, LeaveOutTheSharedFolder) {
  const SampleNames folder({"/d/train/cat/1.jpg", "/d/test/cat/1.jpg"});
  EXPECT_EQ(folder.shorten("/d/test/cat/1.jpg"), "test/cat/1.jpg");
  const SampleNames shard({"/d/a.tar: cat/1.jpg", "/d/a.tar: cat/2.jpg"});
  EXPECT_EQ(shard.shorten("/d/a.tar: cat/2.jpg"), "a.tar: cat/2.jpg");
  const SampleNames similar({"/d/train1/1.jpg", "/d/train2/1.jpg"});
  EXPECT_EQ(similar.shorten("/d/train1/1.jpg"), "train1/1.jpg");
  const SampleNames items({"train images, item 1", "test images, item 1"});
  EXPECT_EQ(items.shorten("test images, item 1"), "test images, item 1");
}

TEST(SampleNames, KeepTheFolderWhereAnotherNameEndsAlike) {
  const SampleNames names({"/d/1.png", "/d/11.png", "/d/old/1.png"});
  EXPECT_EQ(names.shorten("/d/1.png"), "/d/1.png");
  EXPECT_EQ(names.shorten("/d/11.png"), "11.png");
  EXPECT_EQ(names.shorten("/d/old/1.png"), "old/1.png");
}

TEST(ColumnQuality, ReportsEmptyConstantAndMissing) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const std::vector<int64_t> rows = {0, 1, 2, 3};
  const std::vector<TableColumn> columns = {
      {.name = "full", .type = {}, .numbers = {1, 2, 3, 4}},
      {.name = "one, two", .type = {}, .numbers = {2, 2, none, 2}},
      {.name = "none", .type = {}, .numbers = {none, none, none, none}},
      {.name = "kind",
       .type = {.kind = ColumnKind::kCategory},
       .codes = {-1, 0, -1, -1},
       .values = {"a"}}};
  std::vector<ColumnFacts> facts;
  for (const TableColumn& column : columns) facts.push_back(facts_of(column, rows));
  DataQuality quality{.unit = "rows"};
  check_columns(facts, quality);
  ASSERT_EQ(quality.findings.size(), 3u);
  EXPECT_EQ(quality.findings[0].remedy, "data.ignore: [none]");
  EXPECT_EQ(quality.findings[1].remedy, "data.ignore: ['one, two', kind]");
  EXPECT_EQ(quality.findings[2].text,
            "of 4 training rows, values are missing in 'kind' 3 (75.0 %) and 'one, two' 1 "
            "(25.0 %)");
  EXPECT_EQ(quality.findings[2].remedy, "data.ignore: [kind]");
}

TEST(DataQuality, IsTextAndJson) {
  DataQuality quality{
      .unit = "images", .splits = {{"train", 1200}, {"test", 3}}, .checks = {"damaged files"}};
  EXPECT_TRUE(contains(to_text(quality, "out"), "images     1,200 train, 3 test\n"));
  EXPECT_TRUE(contains(to_text(quality, "out"), "nothing found"));
  check_balance({40, 0, 10}, {"cat", "dog", "cow"}, quality);
  quality.findings.push_back(
      {.kind = "damaged-files",
       .title = "Damaged files",
       .text = "1 images cannot be decoded",
       .groups = {{{.part = Part::kTest, .name = "a\n.jpg", .value = "bad"}}},
       .excluded = {"a\n.jpg"},
       .remedy = "data.on_error: skip"});
  const std::string text = to_text(quality, "out");
  EXPECT_TRUE(contains(text, "empty-classes: classes without training images: dog\n"));
  EXPECT_TRUE(contains(text,
                       "the largest class, cat, has 4.0 times the training images of the "
                       "smallest, cow: 40 and 10\n"));
  EXPECT_TRUE(contains(text, "  -> data.sampling: class-balanced\n"));
  EXPECT_TRUE(contains(text,
                       "  a?.jpg: bad\n  -> data.exclude: [out/damaged-files.txt]\n"
                       "  -> data.on_error: skip\n"));
  const auto json = nlohmann::json::parse(to_json(quality));
  EXPECT_EQ(json["splits"]["train"], 1200);
  EXPECT_EQ(json["findings"][2]["groups"][0][0]["split"], "test");
  EXPECT_EQ(json["findings"][2]["exclude"][0], "a\n.jpg");
}

}  // namespace
}  // namespace gallop::data
