#include "gallop/data/packing.h"

#include <algorithm>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gallop/base/philox.h"
#include "gallop/data/data_config.h"
#include "gallop/data/length_order.h"
#include "gallop/data/loader.h"
#include "unit/base/error_of.h"
#include "unit/data/numbered_texts.h"
#include "unit/fixtures.h"

namespace gallop::data {
namespace {

// The texts of each row, in order.
std::vector<std::vector<int64_t>> rows_of(const Packing& packing) {
  std::vector<std::vector<std::pair<int64_t, int64_t>>> placed(static_cast<size_t>(packing.rows));
  for (size_t text = 0; text < packing.places.size(); ++text) {
    const auto [row, begin] = packing.places[text];
    placed.at(static_cast<size_t>(row)).emplace_back(begin, static_cast<int64_t>(text));
  }
  std::vector<std::vector<int64_t>> rows;
  for (auto& row : placed) {
    std::sort(row.begin(), row.end());
    auto& texts = rows.emplace_back();
    for (const auto& [begin, text] : row) texts.push_back(text);
  }
  return rows;
}

TEST(Packing, IsBestFitDecreasing) {
  const std::vector<int64_t> lengths = {3, 8, 5, 2, 7, 2};
  // 8 and 2, 7 and 3, 5 and 2: the first 2 is where least is free.
  EXPECT_EQ(rows_of(pack(lengths, 10)),
            (std::vector<std::vector<int64_t>>{{1, 3}, {4, 0}, {2, 5}}));
  EXPECT_EQ(pack({}, 10).rows, 0);
  EXPECT_EQ(pack(std::vector<int64_t>{10, 10}, 10).rows, 2);
}

// The rows are as full as those of TRL's `bfd`, which chooses otherwise among rows that are equally
// full. See make_packing.py.
TEST(Packing, FillsRowsAsTrl) {
  std::ifstream file(fixtures() / "packing.json");
  const auto cases = nlohmann::json::parse(file).at("cases");
  ASSERT_GE(cases.size(), 5U);
  for (const auto& one : cases) {
    const auto lengths = one.at("lengths").get<std::vector<int64_t>>();
    std::vector<int64_t> tokens;
    for (const auto& row : rows_of(pack(lengths, one.at("capacity")))) {
      int64_t& of_row = tokens.emplace_back(0);
      for (const int64_t text : row) of_row += lengths[static_cast<size_t>(text)];
    }
    std::sort(tokens.begin(), tokens.end());
    EXPECT_EQ(tokens, one.at("tokens").get<std::vector<int64_t>>());
  }
}

TEST(Packing, HasFewNumbersOfRows) {
  int64_t before = 0, numbers = 0;
  for (int64_t rows = 1; rows <= 1024; ++rows) {
    const int64_t padded = padded_rows(rows);
    EXPECT_GE(padded, rows);
    EXPECT_LE(static_cast<double>(padded), 1.07 * static_cast<double>(rows));
    numbers += padded != before ? 1 : 0;
    before = padded;
  }
  EXPECT_LT(numbers, 130);
  EXPECT_EQ(padded_rows(0), 0);
}

// Every text once, with its position ids; padding counts on as a text of its own.
void expect_texts(const Batch& batch, const std::vector<int64_t>& wanted) {
  const at::Tensor &tokens = batch.input(), &labels = batch.target(),
                   &ids = batch[kPositionIdsField];
  EXPECT_EQ(tokens.sizes(), ids.sizes());
  EXPECT_EQ(tokens.sizes(), labels.sizes());
  std::vector<int64_t> found;
  for (int64_t row = 0; row < tokens.size(0); ++row) {
    for (int64_t t = 0; t < tokens.size(1); ++t) {
      const auto token = tokens[row][t].item<int64_t>(), id = ids[row][t].item<int64_t>();
      const bool begins = t == 0 || tokens[row][t - 1].item<int64_t>() != token;
      EXPECT_EQ(id, begins ? 0 : ids[row][t - 1].item<int64_t>() + 1);
      EXPECT_EQ(labels[row][t].item<int64_t>(), token < 0 ? -100 : token + 1000 * id);
      if (begins && token >= 0) found.push_back(token);
    }
  }
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, wanted);
}

std::vector<int64_t> texts_of(const Batch& batch) {
  std::vector<int64_t> texts;
  for (int64_t row = 0; row < batch.size(); ++row) {
    texts.push_back(batch.input()[row][0].item<int64_t>());
  }
  std::sort(texts.begin(), texts.end());
  return texts;
}

// The same samples in a batch as without packing, of any threads, processes and from any position.
TEST(PackedBatches, HaveTheSamplesOfPaddedOnes) {
  NumberedTexts samples(203, 64);
  samples.broken = {5, 50, 51};
  for (const int parts : {1, 3}) {
    for (int part = 0; part < parts; ++part) {
      const LoaderConfig config{.batch = 16, .threads = 2, .part = part, .parts = parts};
      LoaderConfig packing = config;
      packing.packs = true;
      Loader padded(samples, config, {.seed = 7}), packed(samples, packing, {.seed = 7});
      packing.threads = 0;
      Loader later(samples, packing, {.seed = 7, .position = 160});
      for (int i = 0; i < 30; ++i) {
        const auto wanted = padded.next(), found = packed.next();
        expect_texts(*found, texts_of(*wanted));
        EXPECT_EQ(found->size(), wanted->size());
        EXPECT_EQ(found->rows(), padded_rows(found->rows()));
        EXPECT_EQ(found->skipped, wanted->skipped);
        EXPECT_EQ(found->position, wanted->position);
        EXPECT_EQ(packed.state().position, padded.state().position);
        if (i < 10) continue;
        const auto again = later.next();
        for (size_t field = 0; field < again->tensors.size(); ++field) {
          EXPECT_TRUE(again->tensors[field].equal(found->tensors[field]));
        }
      }
    }
  }
}

TEST(PackedBatches, OutliveTheirLoader) {
  const NumberedTexts samples(20, 16);
  std::optional<Batch> batch;
  {
    Loader loader(samples, {.batch = 8, .packs = true}, {});
    batch = loader.next();
  }
  EXPECT_EQ(batch->by_role().back().name, kPositionIdsField);
  EXPECT_THROW(Loader(NumberedTexts(9, 8, 8, /*one_target=*/true), {.packs = true}, {}),
               InternalError);
}

TEST(PackedBatches, PadLess) {
  DataModule module;
  module.train = std::make_unique<NumberedTexts>(2000, 64, /*most_length=*/24);
  const auto share = padding_share(module, {.batch = 64, .packing = true, .seed = 3});
  ASSERT_TRUE(share && share->packed);
  EXPECT_EQ(share->share, *share->packed);
  Loader loader(*module.train, {.batch = 64, .one_epoch = true, .packs = true}, {.seed = 3});
  double real = 0, all = 0;
  while (const auto batch = loader.next()) {
    real += static_cast<double>(batch->input().ge(0).sum().item<int64_t>());
    all += static_cast<double>(batch->input().numel());
  }
  EXPECT_NEAR(*share->packed, 1 - real / all, 1e-9);
  EXPECT_LT(*share->packed, 0.06);
  EXPECT_GT(padding_share(module, {.batch = 64, .seed = 3})->share, 0.4);
}

class CheckPacking : public ::testing::Test {
 protected:
  std::string error() {
    return error_of([&] { check_packing(module_, config_); });
  }
  const DataModuleRegistry modules_ = built_in_data_modules();
  const AugmentationRegistry augmentations_ = built_in_augmentations();
  const BatchTransformRegistry transforms_ = built_in_batch_transforms();
  DataConfig config_{modules_, augmentations_, transforms_};
  DataModule module_;
};

TEST_F(CheckPacking, RejectsWhatCannotBePacked) {
  config_.packing = true;
  module_.train = std::make_unique<NumberedTexts>(9, 8);
  EXPECT_NO_THROW(check_packing(module_, config_));
  config_.group_by_length = true;
  EXPECT_NE(error().find("set one of them"), std::string::npos);
  config_.group_by_length = false;
  module_.train = std::make_unique<NumberedTexts>(9, 8, 8, /*one_target=*/true);
  EXPECT_NE(error().find("a target for each token"), std::string::npos);
  EXPECT_NE(error().find("data.group_by_length"), std::string::npos);
}

}  // namespace
}  // namespace gallop::data
