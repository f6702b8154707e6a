// Parquet files that pyarrow and the library `datasets` wrote, by tests/parity/make_parquet.py,
// next to the CSV that pandas wrote of the same tables.
#include <array>
#include <cmath>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "gallop/data/block_order.h"
#include "gallop/data/data_paths.h"
#include "gallop/data/image_table.h"
#include "gallop/data/labeled_text.h"
#include "gallop/data/loader.h"
#include "gallop/data/parquet_file.h"
#include "gallop/data/parquet_groups.h"
#include "gallop/data/parquet_images.h"
#include "gallop/data/table.h"
#include "gallop/data/table/table_reader.h"
#include "unit/config/component_of.h"
#include "unit/data/data_folder.h"
#include "unit/data/expect_error.h"
#include "unit/data/image_fields.h"
#include "unit/data/text_files.h"
#include "unit/fixtures.h"

namespace gallop::data {
namespace {

using Names = std::vector<std::string>;

std::string fixture(const std::string& name) { return (fixtures() / "parquet" / name).string(); }

Table read_table(const std::string& path, const Names& ignored = {}) {
  TableReader reader({path}, {.unscanned = ignored});
  std::vector<ColumnType> types;
  for (const ColumnScan& scan : reader.scan()) types.push_back(scan.type);
  SkipPolicy skips(/*skips=*/false);
  return reader.read(types, skips);
}

class ParquetCodec : public testing::TestWithParam<const char*> {};

TEST_P(ParquetCodec, GivesTheTableOfItsCsv) {
  const Table csv = read_table(fixture("types.csv"));
  const Table table = read_table(fixture(std::string("types-") + GetParam() + ".parquet"));
  ASSERT_EQ(table.rows(), 40);
  ASSERT_EQ(table.columns.size(), csv.columns.size());
  for (size_t i = 0; i < csv.columns.size(); ++i) {
    const TableColumn &one = csv.columns[i], &other = table.columns[i];
    SCOPED_TRACE(one.name);
    EXPECT_EQ(one.name, other.name);
    EXPECT_EQ(one.type.kind, other.type.kind);
    EXPECT_EQ(one.type.date_format, other.type.date_format);
    EXPECT_EQ(one.has_times, other.has_times);
    EXPECT_EQ(one.codes, other.codes);
    EXPECT_EQ(one.values, other.values);
    ASSERT_EQ(one.numbers.size(), other.numbers.size());
    for (size_t row = 0; row < one.numbers.size(); ++row) {
      const double a = one.numbers[row], b = other.numbers[row];
      EXPECT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << row << ": " << a << " " << b;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ParquetCodec,
                         testing::Values("none", "snappy", "gzip", "zstd", "brotli", "lz4",
                                         "encodings"));

TEST(Parquet, TypesOfColumnsAreFound) {
  const Table table = read_table(fixture("types-snappy.parquet"));
  const auto kind = [&](const char* name) { return table.find(name)->type.kind; };
  for (const char* name : {"int8", "uint32", "half", "float", "double", "decimal", "decimal256"}) {
    EXPECT_EQ(kind(name), ColumnKind::kNumber) << name;
  }
  for (const char* name : {"date32", "date64", "second", "milli", "micro", "nano", "zone"}) {
    EXPECT_EQ(kind(name), ColumnKind::kDate) << name;
  }
  for (const char* name : {"ids", "uint64", "string", "code", "dictionary", "time32", "duration"}) {
    EXPECT_EQ(kind(name), ColumnKind::kCategory) << name;
  }
  EXPECT_EQ(kind("bool"), ColumnKind::kBoolean);
}

TEST(Parquet, GroupsMayBeEmptyAndStructsHaveAColumnForEachField) {
  const Names unread = {"list", "deep", "map.key", "map.value", "bytes"};
  const Table table = read_table(fixture("groups.parquet"), unread);
  ASSERT_EQ(table.rows(), 4);
  EXPECT_EQ(table.lines, (std::vector<int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(table.place(3), fixture("groups.parquet") + ":4");
  EXPECT_EQ(table.find("place.city")->codes, (std::vector<int32_t>{0, -1, -1, 1}));
  EXPECT_EQ(table.find("place.zip")->values, (Names{"01", "02"}));
  EXPECT_TRUE(std::isnan(table.find("x")->numbers[2]));
  const auto error_without = [&](const std::string& read) {
    Names ignored = unread;
    std::erase(ignored, read);
    return data_error([&] { read_table(fixture("groups.parquet"), ignored); });
  };
  EXPECT_TRUE(
      contains(error_without("bytes"),
               "groups.parquet: column 'bytes' has no numbers or texts: its type is binary; "
               "name it in data.ignore"));
  EXPECT_TRUE(
      contains(error_without("deep"), "column 'deep' has no numbers or texts: it is a list"));
  EXPECT_TRUE(contains(error_without("map.key"), "it is a map"));
  EXPECT_TRUE(contains(error_without("list"), "groups.parquet:1: column 'list' is a list"));
}

class ParquetData : public DataFolder {
 protected:
  ParquetData() {
    config.normalize = "none";
    options.memory_bytes = int64_t{1} << 30;
  }
  std::unique_ptr<DataModule> open(const ImageTableConfig& table = {}) {
    return open_image_table(table, context());
  }
  // Pictures are numbered by their color.
  static int picture(const Samples& samples, int64_t index, std::vector<float>* numbers = nullptr) {
    std::vector<float> image(3 * 4 * 5), target(8);
    int64_t label = 0;
    void* const out = numbers != nullptr ? static_cast<void*>(target.data()) : &label;
    EXPECT_TRUE(fill_row(samples, index, 0, image.data(), out));
    if (numbers != nullptr) *numbers = target;
    return static_cast<int>(std::lround(image[0] * 255 / 30));
  }
};

TEST_F(ParquetData, ImagesHaveTheClassesThatTheSchemaDeclares) {
  config.path = fixture("images");
  const auto data = open();
  EXPECT_EQ(data->signature.task, "classification");
  EXPECT_EQ(data->signature.classes, (Names{"zebra", "ape", "never", "bee"}));
  ASSERT_EQ(data->train->size(), 6);
  ASSERT_EQ(data->test->size(), 2);
  const std::array<int64_t, 8> labels = {0, 1, 3, 0, 1, 3, 0, 1};
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(data->train->label(i), labels[static_cast<size_t>(i)]);
    EXPECT_EQ(picture(*data->train, i), i);
  }
  EXPECT_EQ(data->test->label(1), 1);
  EXPECT_EQ(picture(*data->test, 1), 7);
  EXPECT_TRUE(data->train->describe(4).ends_with("train-00001-of-00002.parquet:2"));
  EXPECT_EQ(data->train->window_blocks(), 0);
  EXPECT_EQ(data->files.size(), 3U);
}

TEST_F(ParquetData, ImagesMayHaveNumbersAndListsOfLabels) {
  config.path = fixture("images");
  const auto labels = open({.target = "tags"});
  EXPECT_EQ(labels->signature.task, "multi-label");
  EXPECT_EQ(labels->signature.classes, (Names{"old", "wet"}));
  std::vector<float> target;
  const float wanted[][2] = {{0, 0}, {1, 0}, {0, 1}, {1, 1}};
  for (int i = 0; i < 4; ++i) {
    picture(*labels->train, i, &target);
    EXPECT_EQ(target[0], wanted[i][0]);
    EXPECT_EQ(target[1], wanted[i][1]);
  }
  const auto numbers = open({.target = "size", .standardize_targets = false});
  EXPECT_EQ(numbers->signature.task, "regression");
  picture(*numbers->train, 5, &target);
  EXPECT_EQ(target[0], 2.5F);
}

TEST_F(ParquetData, ImagesWithBytesNameNoFiles) {
  config.path = fixture("images");
  EXPECT_TRUE(paths_of(*open()).named.empty());
}

TEST_F(ParquetData, ImagesWithoutBytesAreBesideTheFile) {
  config.path = fixture("paths");
  const auto data = open();
  EXPECT_EQ(picture(*data->train, 0), 3);
  const auto named = paths_of(*data).named;
  ASSERT_EQ(named.size(), 1u);
  EXPECT_EQ(named[0].folder, fixture("paths"));
  ASSERT_FALSE(named[0].names.empty());
  EXPECT_TRUE(fs::exists(fs::path(named[0].folder) / named[0].names[0]));
  folder.add("train.parquet", read_file(fixture("paths/train.parquet")));
  config.path = folder.name();
  EXPECT_TRUE(contains(data_error([&] { open(); }), "train.parquet:1: "));
}

TEST_F(ParquetData, TextsAndTablesHaveNamesOfClasses) {
  config.path = fixture("texts");
  const auto data = open_labeled_text({}, context());
  EXPECT_EQ(data->signature.classes, (Names{"neg", "pos"}));
  config.path = fixture("texts.jsonl");
  const auto json = open_labeled_text({}, context());
  ASSERT_EQ(data->train->size(), json->train->size());
  EXPECT_EQ(data->signature.vocabulary, json->signature.vocabulary);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(row_of(*data->train, i).tokens, row_of(*json->train, i).tokens);
    EXPECT_EQ(row_of(*data->train, i).label, row_of(*json->train, i).label);
  }
  config.path = fixture("images/data/train-00000-of-00002.parquet");
  const auto table =
      open_table({.target = "label", .ignore = {"image.bytes", "image.path", "tags"}}, context());
  EXPECT_EQ(table->signature.classes, (Names{"zebra", "ape", "never", "bee"}));
  // The columns that a model does not read may have any type.
  EXPECT_EQ(table_rows(config.path, table->signature)->size(), table->train->size());
}

TEST_F(ParquetData, DamagedFilesAreNamed) {
  const std::string whole = read_file(fixture("types-zstd.parquet"));
  const auto error_of = [&](const std::string& content) {
    const std::string path = folder.add("a.parquet", content).string();
    return data_error([&] { read_table(path); });
  };
  EXPECT_TRUE(contains(error_of(""), "a.parquet: "));
  EXPECT_TRUE(contains(error_of("a,b\n1,2\n"), "a.parquet: "));
  EXPECT_TRUE(contains(error_of(whole.substr(0, whole.size() / 2)), "a.parquet: "));
  // Damaged pages, behind an intact footer.
  std::string damaged = whole;
  for (size_t i = 8; i < 2000; ++i) damaged[i] = static_cast<char>(i * 37);
  EXPECT_TRUE(contains(error_of(damaged), "a.parquet: "));
}

TEST_F(ParquetData, GroupsAreReadOnceWhileTheyFit) {
  const Names files = {fixture("images/data/train-00000-of-00002.parquet"),
                       fixture("images/data/train-00001-of-00002.parquet")};
  const ParquetGroups all(files, int64_t{1} << 20);
  EXPECT_EQ(all.window(), 0);
  const auto first = all.get(0, 0, 0);
  EXPECT_EQ(all.get(0, 0, 0), first);
  EXPECT_NE(all.get(1, 0, 0), first);
  EXPECT_EQ(all.get(0, 0, 0), first);
  const ParquetGroups one(files, 1);
  EXPECT_EQ(one.window(), 1);
  const auto kept = one.get(0, 0, 0);
  EXPECT_EQ(one.get(0, 0, 0), kept);
  one.get(1, 0, 0);
  EXPECT_NE(one.get(0, 0, 0), kept);
  EXPECT_EQ((*one.get(0, 0, 0))[1], (*kept)[1]);
  // Threads that need the same group share one reading of it.
  std::vector<std::shared_ptr<const ParquetValues>> found(4);
  std::vector<std::thread> threads;
  for (auto& values : found) threads.emplace_back([&] { values = all.get(1, 1, 0); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& values : found) EXPECT_EQ(values, found[0]);
}

TEST(BlockOrder, ShufflesWithinWindowsOfBlocks) {
  // Blocks of 10 samples, three in a window.
  std::vector<int64_t> blocks;
  for (int64_t i = 0; i < 95; ++i) blocks.push_back(i / 10);
  const BlockOrder order(blocks, 3, 5), again(blocks, 3, 5), other(blocks, 3, 6);
  std::set<std::vector<int64_t>> epochs;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<int64_t> all;
    for (int64_t i = 0; i < 95; ++i) all.push_back(order.index(epoch, i));
    epochs.insert(all);
    EXPECT_EQ(std::set<int64_t>(all.begin(), all.end()).size(), 95U);
    EXPECT_EQ(again.index(epoch, 41), all[41]);
    // The samples of a window are of three blocks, and mixed.
    size_t windows = 0;
    for (size_t begin = 0; begin < 95;) {
      std::set<int64_t> of_window;
      size_t end = begin;
      for (; end < 95; ++end) {
        of_window.insert(all[end] / 10);
        if (of_window.size() > 3) break;
      }
      ++windows;
      begin = end;
    }
    EXPECT_EQ(windows, 4U);
    EXPECT_FALSE(std::is_sorted(all.begin(), all.begin() + 20));
  }
  EXPECT_EQ(epochs.size(), 3U);
  std::vector<int64_t> one, two;
  for (int64_t i = 0; i < 95; ++i) {
    one.push_back(order.index(0, i));
    two.push_back(other.index(0, i));
  }
  EXPECT_NE(one, two);
}

TEST_F(ParquetData, ImagesThatExceedTheirMemoryAreReadInWindowsAndResumeExactly) {
  config.path = fixture("images");
  config.module = config::component_of(modules, "image-table");
  options.memory_bytes = 4 * 4000;  // A quarter is half of the files.
  options.seed = 3;
  const auto data = open_data(config, modules, augmentations, options);
  EXPECT_TRUE(data->train->has_own_order());
  ASSERT_FALSE(data->notes.empty());
  EXPECT_TRUE(contains(data->notes.back(), "shuffled within windows of 1 row groups"));
  const auto rest_of = [&](int64_t position, int threads) {
    Loader loader(*data->train, {.batch = 1, .threads = threads},
                  {.seed = 3, .epoch = 1, .position = position});
    std::vector<int> pictures;
    for (int64_t i = position; i < 6; ++i) {
      const auto batch = loader.next();
      pictures.push_back(
          static_cast<int>(std::lround(batch->input()[0][0][0][0].item<float>() * 255 / 30)));
    }
    return pictures;
  };
  const std::vector<int> all = rest_of(0, 0);
  EXPECT_EQ(std::set<int>(all.begin(), all.end()).size(), 6U);
  EXPECT_EQ(rest_of(0, 2), all);
  EXPECT_EQ(rest_of(4, 0), std::vector<int>(all.begin() + 4, all.end()));
  // Row groups have two or one images, which follow each other.
  const auto group = [](int image) { return image / 3 * 2 + image % 3 / 2; };
  std::vector<int> groups;
  for (const int image : all) {
    if (groups.empty() || groups.back() != group(image)) groups.push_back(group(image));
  }
  EXPECT_EQ(groups.size(), 4U);
}

}  // namespace
}  // namespace gallop::data
