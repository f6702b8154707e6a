// Arrays as NumPy writes them, by tests/parity/make_arrays.py.
#include "gallop/data/arrays.h"

#include <cmath>
#include <fstream>

#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gallop/data/array_files.h"
#include "gallop/data/loader.h"
#include "unit/base/error_of.h"
#include "unit/data/data_folder.h"
#include "unit/data/expect_error.h"
#include "unit/fixtures.h"

namespace gallop::data {
namespace {

using Names = std::vector<std::string>;
using Floats = std::vector<float>;

fs::path fixture(const std::string& name) { return fixtures() / "arrays" / name; }

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// A file as numpy.save() writes it.
std::string npy(const std::string& dtype, const std::string& shape, const std::string& values) {
  std::string header =
      "{'descr': '" + dtype + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() % 256);
  file += static_cast<char>(header.size() / 256);
  return file + header + values;
}

class Arrays : public DataFolder {
 protected:
  std::unique_ptr<DataModule> open(const ArraysConfig& arrays = {}) {
    return open_arrays(arrays, context());
  }
  void add(const std::string& name, const Floats& values, const std::string& shape) {
    folder.add(name + ".npy", npy("<f4", shape, bytes_of(values)));
  }
  void add(const std::string& name, const std::vector<int64_t>& values, const std::string& shape) {
    folder.add(name + ".npy", npy("<i8", shape, bytes_of(values)));
  }
  Arrays() { config.path = folder.name(); }
};

TEST(Npy, EveryDtypeHasTheValuesOfNumPy) {
  std::ifstream file(fixture("values.json"));
  const auto wanted = nlohmann::json::parse(file);
  const ArrayFiles arrays(fixture("types.npz"));
  EXPECT_EQ(arrays.arrays().size(), wanted.size() + 1);
  for (const auto& [name, rows] : wanted.items()) {
    SCOPED_TRACE(name);
    DataConfig config(built_in_data_modules(), built_in_augmentations(),
                      built_in_batch_transforms());
    config.path = fixture("types.npz").string();
    const AugmentationRegistry augmentations = built_in_augmentations();
    const OpenOptions options{.cores = 1};
    const auto data = open_arrays(
        {.inputs = {name}}, {.config = config, .augmentations = augmentations, .options = options});
    Loader loader(*data->train, {.batch = 2, .shuffle = false}, {});
    const at::Tensor input = loader.next()->input();
    const bool is_float = name.starts_with("float");
    EXPECT_EQ(input.scalar_type(), is_float ? at::kFloat : at::kLong);
    for (int64_t row = 0; row < 2; ++row) {
      for (int64_t i = 0; i < 3; ++i) {
        const auto& value = rows[static_cast<size_t>(row)][static_cast<size_t>(i)];
        if (is_float) {
          EXPECT_EQ(input[row][i].item<float>(), value.get<float>());
        } else {
          EXPECT_EQ(input[row][i].item<int64_t>(), value.get<int64_t>());
        }
      }
    }
  }
}

TEST_F(Arrays, CompressedArchivesAreDecompressed) {
  config.path = fixture("compressed.npz").string();
  const auto data = open();
  Loader loader(*data->train, {.batch = 2, .shuffle = false}, {});
  const at::Tensor input = loader.next()->input();
  const float* const x = input.const_data_ptr<float>();
  EXPECT_EQ(Floats(x, x + 6), (Floats{0.1F, -2.5F, 6e-5F, 3, 0.333F, 65504}));
  // Damaged contents and sizes are errors, whatever the damage.
  const std::string bytes = read_file(fixture("compressed.npz"));
  config.path = (folder.path() / "damaged.npz").string();
  const auto error_of = [&](const std::string& changed) {
    folder.add("damaged.npz", changed);
    return data_error([&] { open(); });
  };
  for (size_t at = 60; at < 120; ++at) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x55);
    EXPECT_TRUE(contains(error_of(changed), "damaged.npz: ")) << at;
  }
  const size_t header = bytes.find("PK\x01\x02");
  ASSERT_NE(header, std::string::npos);
  std::string changed = bytes;
  // A size that deflate cannot reach is refused before memory is allocated.
  changed.replace(header + 24, 4, "\xff\xff\xff\x7f");
  EXPECT_TRUE(contains(error_of(changed), "cannot have 2147483647 bytes"));
  changed = bytes;
  changed[header + 10] = 12;
  EXPECT_TRUE(contains(error_of(changed), "is compressed (method 12)"));
}

TEST(Npy, OtherArraysAreRefusedByName) {
  const auto error_of = [](const std::string& name) {
    const std::string file = read_file(fixture(name));
    return data_error([&] { parse_npy(file); });
  };
  EXPECT_TRUE(contains(error_of("refused/big-endian.npy"), "the array is big-endian ('>f4')"));
  EXPECT_TRUE(contains(error_of("refused/fortran.npy"), "save numpy.ascontiguousarray(array)"));
  EXPECT_TRUE(contains(error_of("refused/complex.npy"), "the array's dtype '<c8' is none of"));
  EXPECT_TRUE(contains(error_of("refused/records.npy"), "the array has records"));
  EXPECT_TRUE(contains(error_of("refused/objects.npy"), "the array's dtype '|O' is none of"));
  EXPECT_TRUE(contains(error_of("refused/texts.npy"), "the array's dtype '<U1' is none of"));
  const NpyArray array = parse_npy(read_file(fixture("version2.npy")));
  EXPECT_EQ(array.sizes, (std::vector<int64_t>{4, 2, 3}));
  EXPECT_EQ(array.row_bytes(), 24U);
  const std::string whole = read_file(fixture("version2.npy"));
  for (size_t length = 0; length < whole.size(); ++length) {
    const std::string part = whole.substr(0, length);
    EXPECT_THROW(parse_npy(part), DataError) << length;
  }
  for (const char* shape : {"-1,", "9223372036854775807, 9", "4 4", "a,"}) {
    const std::string file = npy("<f4", shape, "1234");
    EXPECT_THROW(parse_npy(file), DataError) << shape;
  }
}

TEST_F(Arrays, FieldsAreBoundByName) {
  add("train/signal", Floats{1, 2, 3, 4}, "2, 2");
  add("train/speed", Floats{5, 6}, "2,");
  add("train/kind", std::vector<int64_t>{2, 0}, "2,");
  add("test/signal", Floats{7, 8}, "1, 2");
  add("test/speed", Floats{9}, "1,");
  add("test/kind", std::vector<int64_t>{1}, "1,");
  const auto data = open({.target = "kind"});
  EXPECT_EQ(data->signature.task, "classification");
  EXPECT_EQ(data->signature.kind, "numbers");
  EXPECT_EQ(data->signature.classes, (Names{"0", "1", "2"}));
  EXPECT_EQ(data->signature.columns, (Names{"signal[0]", "signal[1]"}));
  const Fields& fields = data->train->fields();
  EXPECT_EQ(fields.input().name, "signal");
  EXPECT_EQ(fields.target().name, "kind");
  EXPECT_EQ(fields[fields.find("speed")].role, FieldRole::kInput);
  EXPECT_EQ(data->train->label(0), 2);
  EXPECT_TRUE(data->train->describe(1).ends_with("train: row 1"));
  Loader loader(*data->test, {.batch = 1, .shuffle = false}, {});
  const auto batch = loader.next();
  EXPECT_EQ(batch->input()[0][1].item<float>(), 8);
  EXPECT_EQ((*batch)["speed"][0].item<float>(), 9);
  EXPECT_EQ(data->files.size(), 6U);
  // Chosen and in another order; whole numbers as floating-point ones.
  const auto chosen = open({.inputs = {"kind"}, .target = "speed", .floats = {"kind"}});
  EXPECT_EQ(chosen->signature.task, "regression");
  EXPECT_EQ(chosen->signature.targets, (Names{"speed"}));
  EXPECT_EQ(chosen->train->fields().input().shape.dtype, at::kFloat);
  EXPECT_EQ(chosen->train->fields().target().shape.sizes, (std::vector<int64_t>{1}));
}

TEST_F(Arrays, TasksFollowFromTheTarget) {
  add("x", Floats(2 * 3 * 2 * 2), "2, 3, 2, 2");
  add("y", std::vector<int64_t>{0, 1, 1, 0}, "2, 2");
  auto data = open({.classes = {"wet", "cold"}});
  EXPECT_EQ(data->signature.kind, "images");
  EXPECT_EQ(data->signature.channels, 3);
  EXPECT_EQ(data->signature.task, "multi-label");
  EXPECT_EQ(data->signature.classes, (Names{"wet", "cold"}));
  EXPECT_EQ(data->train->fields().target().shape.dtype, at::kFloat);
  add("y", std::vector<int64_t>{0, 1, 3, 0, 1, 1, 1, 1}, "2, 2, 2");
  data = open();
  EXPECT_EQ(data->signature.task, "segmentation");
  EXPECT_EQ(data->signature.classes.size(), 4U);
  add("y", Floats{0.5, 1, 2, 3}, "2, 2");
  data = open();
  EXPECT_EQ(data->signature.task, "regression");
  EXPECT_EQ(data->signature.targets, (Names{"y[0]", "y[1]"}));
  add("y", std::vector<int64_t>{3, 4}, "2,");
  config.task = "regression";
  EXPECT_EQ(open()->signature.task, "regression");
}

TEST_F(Arrays, RowsOfTwoDimensionsAreSequences) {
  add("x", Floats(2 * 3 * 2), "2, 3, 2");
  add("y", std::vector<int64_t>{0, 1}, "2,");
  const auto data = open();
  EXPECT_EQ(data->signature.kind, "numbers");
  EXPECT_EQ(data->signature.context, 3);
  EXPECT_EQ(data->signature.columns, (Names{"x[0]", "x[1]"}));
  EXPECT_TRUE(data->signature.mean.empty());
  // Evaluations read other data with the mean and the standard deviation of the signature.
  config.mean = {1, 2, 3};
  config.deviation = {1, 1, 4};
  EXPECT_EQ(open()->signature.mean, config.mean);
  EXPECT_EQ(open()->signature.deviation, config.deviation);
}

TEST_F(Arrays, IntegersMayHaveTheMeanOfASignature) {
  add("x", std::vector<int64_t>{5, 6, 7, 8}, "2, 2");
  add("y", std::vector<int64_t>{0, 1}, "2,");
  const auto data = open();
  config.mean = data->signature.mean;
  config.deviation = data->signature.deviation;
  EXPECT_EQ(config.mean, (std::vector<double>{0, 0}));
  EXPECT_EQ(open()->train->fields().input().shape.dtype, at::kLong);
}

TEST_F(Arrays, ClassesMayHaveProbabilities) {
  config.task = "classification";
  add("x", Floats(2 * 3), "2, 3");
  add("y", Floats{0.25, 0.25, 0.5, 1, 0, 0}, "2, 3");
  const auto data = open();
  EXPECT_EQ(data->signature.task, "classification");
  EXPECT_EQ(data->signature.classes, (Names{"0", "1", "2"}));
  EXPECT_EQ(data->train->fields().target().shape.dtype, at::kFloat);
  EXPECT_EQ(data->train->label(0), std::nullopt);
  EXPECT_FALSE(data->train->every_target_counts());
  EXPECT_EQ(open({.classes = {"a", "b", "c"}})->signature.classes, (Names{"a", "b", "c"}));
  EXPECT_TRUE(contains(data_error([&] {
                         open({.classes = {"a", "b"}});
                       }),
                       "'y' has probabilities of 3 classes, but there are 2"));
  for (const Floats& row : {Floats{0.25, 0.25, 0.4}, Floats{-0.5, 0.5, 1}, Floats{NAN, 0, 1}}) {
    add("y", Floats{1, 0, 0, row[0], row[1], row[2]}, "2, 3");
    EXPECT_TRUE(contains(data_error([&] { open(); }), "row 1 of 'y' has no class probabilities"));
  }
  config.task = "auto";
  EXPECT_EQ(open()->signature.task, "regression");
}

TEST_F(Arrays, TargetsMayBeIgnored) {
  add("x", Floats(3), "3, 1");
  add("y", std::vector<int64_t>{1, -100, 0}, "3,");
  const auto data = open();
  EXPECT_EQ(data->signature.classes, (Names{"0", "1"}));
  EXPECT_FALSE(data->train->every_target_counts());
  EXPECT_EQ(data->train->label(1), -100);
  add("y", std::vector<int64_t>{1, 1, 0}, "3,");
  EXPECT_TRUE(open()->train->every_target_counts());
  add("y", std::vector<int64_t>{1, -100, -1}, "3,");
  EXPECT_TRUE(contains(data_error([&] { open(); }), "'y' has values from -1 to 1, but classes"));
}

TEST_F(Arrays, PairsHaveTheirViewsInTheFirstDimension) {
  config.task = "pair-embedding";
  add("x", Floats{1, 2, 3, 4, 5, 6, 7, 8}, "2, 2, 2");
  auto data = open();
  EXPECT_EQ(data->signature.task, "pair-embedding");
  EXPECT_EQ(data->signature.kind, "numbers");
  EXPECT_EQ(data->signature.views, 2);
  EXPECT_EQ(data->signature.columns, (Names{"x[0]", "x[1]"}));
  EXPECT_EQ(data->signature.outputs(), 0);
  EXPECT_EQ(data->train->fields().input().shape.sizes, (std::vector<int64_t>{2, 2}));
  // Without a target, all pairs match.
  const Field& match = data->train->fields().target();
  EXPECT_EQ(match.name, "match");
  Loader loader(*data->train, {.batch = 2, .shuffle = false}, {});
  const at::Tensor targets = loader.next()->target();
  EXPECT_EQ(Floats(targets.const_data_ptr<float>(), targets.const_data_ptr<float>() + 2),
            (Floats{1, 1}));
  add("y", std::vector<int64_t>{-1, 1}, "2, 1");
  data = open();
  EXPECT_EQ(data->train->fields().target().shape.sizes, std::vector<int64_t>());
  Loader signs(*data->train, {.batch = 2, .shuffle = false}, {});
  EXPECT_EQ(signs.next()->target()[0].item<float>(), -1);
  // The mean and the standard deviation are those of a view.
  config.mean = {1, 0};
  config.deviation = {2, 4};
  data = open();
  Loader normalized(*data->train, {.batch = 2, .shuffle = false}, {});
  const at::Tensor input = normalized.next()->input();
  EXPECT_EQ(Floats(input.const_data_ptr<float>(), input.const_data_ptr<float>() + 8),
            (Floats{0, 0.5, 1, 1, 2, 1.5, 3, 2}));
  config.mean = config.deviation = {};
  add("x", Floats(2 * 2 * 3 * 4), "2, 2, 1, 3, 4");
  data = open();
  EXPECT_EQ(data->signature.kind, "images");
  EXPECT_EQ(data->signature.width, 4);
  add("x", Floats(2 * 2 * 3 * 4), "2, 2, 3, 4");
  EXPECT_EQ(open()->signature.context, 3);
}

TEST_F(Arrays, ViewsMayBeArraysOfTheirOwn) {
  config.task = "pair-embedding";
  add("anchor", Floats{1, 2, 3, 4}, "2, 2");
  add("positive", std::vector<int64_t>{5, 6, 7, 8}, "2, 2");
  add("negative", Floats{9, 10, 11, 12}, "2, 2");
  const auto data = open({.inputs = {"anchor", "positive", "negative"}});
  EXPECT_EQ(data->signature.views, 3);
  EXPECT_EQ(data->signature.columns, (Names{"views[0]", "views[1]"}));
  EXPECT_EQ(data->train->fields().input().name, "views");
  Loader loader(*data->train, {.batch = 1, .shuffle = false}, {});
  const at::Tensor input = loader.next()->input();
  EXPECT_EQ(Floats(input.const_data_ptr<float>(), input.const_data_ptr<float>() + 6),
            (Floats{1, 2, 5, 6, 9, 10}));
  EXPECT_THROW(open(), UsageError);  // In which order?
  add("negative", Floats(6), "2, 3");
  EXPECT_TRUE(contains(data_error([&] {
                         open({.inputs = {"anchor", "negative"}});
                       }),
                       "rows of 'negative' have sizes [3], and those of 'anchor' [2]"));
}

TEST_F(Arrays, PairsThatDoNotFitAreNamed) {
  config.task = "pair-embedding";
  add("x", Floats(4), "2, 2");
  EXPECT_TRUE(contains(data_error([&] { open(); }), "rows of 'x' have sizes [2], but data.task"));
  add("x", Floats(8), "2, 1, 4");
  EXPECT_TRUE(contains(data_error([&] { open(); }), "rows of 'x' have sizes [1, 4]"));
  add("x", Floats(8), "2, 2, 2");
  add("y", Floats{1, 0.5}, "2,");
  EXPECT_TRUE(contains(data_error([&] { open(); }), "row 1 of 'y' is 0.5, but with"));
  add("y", Floats{1, 1, 1, 1}, "2, 2");
  EXPECT_TRUE(contains(data_error([&] { open(); }), "a pair has one target"));
  add("y", Floats{1, 1}, "2,");
  EXPECT_THROW(open({.classes = {"a", "b"}}), UsageError);
  add("x", Floats(12), "2, 3, 2");
  EXPECT_THROW(open(), UsageError);
  EXPECT_THROW(open({.inputs = {"x"}, .target = "y"}), UsageError);
  EXPECT_EQ(open({.inputs = {"x"}})->train->fields().target().name, "match");
}

TEST_F(Arrays, MeanAndDeviationOfTheRecipeAreApplied) {
  add("x", Floats{1, 2, 3, 4}, "2, 2");
  add("y", std::vector<int64_t>{0, 1}, "2,");
  config.mean = {1, 0};
  config.deviation = {2, 4};
  const auto data = open();
  Loader loader(*data->train, {.batch = 2, .shuffle = false}, {});
  const at::Tensor input = loader.next()->input();
  EXPECT_EQ(input[1][0].item<float>(), 1);
  EXPECT_EQ(input[1][1].item<float>(), 1);
}

TEST_F(Arrays, WhatDoesNotFitIsNamed) {
  add("x", Floats{1, 2, 3, 4}, "2, 2");
  EXPECT_TRUE(contains(data_error([&] { open(); }), "set data.target to the one to predict"));
  add("y", std::vector<int64_t>{0, 1, 2}, "3,");
  EXPECT_TRUE(contains(data_error([&] { open(); }), "y.npy: has 3 rows, but 'x' has 2"));
  add("y", std::vector<int64_t>{0, -1}, "2,");
  EXPECT_TRUE(contains(data_error([&] { open(); }), "'y' has values from -1 to 0, but classes"));
  add("y", std::vector<int64_t>{0, 1}, "2,");
  EXPECT_TRUE(contains(data_error([&] { open({.inputs = {"xs"}}); }), "has no array 'xs'"));
  config.path = fixture("refused").string();
  EXPECT_TRUE(contains(data_error([&] { open(); }), "refused/big-endian.npy: the array is big"));
  add("train/x", Floats{1, 2}, "2, 1");
  add("train/y", std::vector<int64_t>{0, 1}, "2,");
  add("val/x", Floats{1, 2}, "1, 2");
  add("val/y", std::vector<int64_t>{1}, "1,");
  config.path = folder.name();
  EXPECT_TRUE(
      contains(data_error([&] { open(); }), "val: rows of 'x' are Float [2], but those of"));
  add("val/x", Floats{1}, "1, 1");
  add("val/y", std::vector<int64_t>{2}, "1,");
  EXPECT_TRUE(contains(data_error([&] { open(); }), "val: 'y' has values from 2 to 2"));
}

TEST_F(Arrays, SequencesOfClassesHaveABlank) {
  config.task = "sequence-recognition";
  add("x", Floats(4 * 6), "2, 4, 3");
  add("y", std::vector<int64_t>{1, 3, -100, 2, -100, -100}, "2, 3");
  const auto data = open();
  EXPECT_EQ(data->signature.classes, (Names{"blank", "1", "2", "3"}));
  EXPECT_EQ(data->signature.blank, 0);
  EXPECT_EQ(data->train->fields().target().shape.dtype, c10::kLong);
  EXPECT_EQ(open({.classes = {"", "a", "b", "c"}})->signature.classes.back(), "c");
  EXPECT_TRUE(contains(error_of([&] {
                         open({.classes = {"a", "b"}});
                       }),
                       "data.classes has 2 names, but there are classes up to 3"));
  // A class 0 that is a target leaves a further class to the blank.
  add("y", std::vector<int64_t>{1, 0, -100, 2, -100, -100}, "2, 3");
  EXPECT_EQ(open()->signature.classes, (Names{"0", "1", "2", "blank"}));
  EXPECT_EQ(open()->signature.blank, 3);
  EXPECT_EQ(open({.classes = {"a", "b", "c"}})->signature.classes.back(), "blank");
  EXPECT_EQ(open({.classes = {"a", "b", "c", "-"}})->signature.classes.back(), "-");
}

TEST_F(Arrays, SequencesEndAtTheirLengths) {
  config.task = "sequence-recognition";
  add("x", Floats(4 * 6), "2, 4, 3");
  add("y", std::vector<int64_t>{1, 3, 0, 2, 0, 0}, "2, 3");
  add("target_lengths", std::vector<int64_t>{2, 1}, "2");
  add("input_lengths", std::vector<int64_t>{4, 3}, "2");
  const auto data = open();
  EXPECT_EQ(data->signature.blank, 0);
  Loader loader(*data->train, {.batch = 2, .shuffle = false}, {});
  const auto batch = loader.next();
  EXPECT_TRUE(at::equal(batch->target(), at::tensor({1, 3, -100, 2, -100, -100}).reshape({2, 3})));
  const NamedTensors fields = batch->by_role();
  EXPECT_EQ(fields.back().name, "input_lengths");
  EXPECT_TRUE(at::equal(fields.back().tensor, at::tensor({4, 3})));

  add("target_lengths", std::vector<int64_t>{2, 4}, "2");
  EXPECT_TRUE(contains(data_error([&] { open(); }), "row 1 of 'target_lengths' is 4, but lengths"));
  add("target_lengths", std::vector<int64_t>{2, 1, 1}, "3");
  EXPECT_NE(data_error([&] { open(); }), "");
  add("target_lengths", Floats{2, 1}, "2");
  EXPECT_TRUE(contains(data_error([&] { open(); }), "is not one whole number for each of 2"));
  add("target_lengths", std::vector<int64_t>{0, 0}, "2");
  EXPECT_TRUE(contains(data_error([&] { open(); }), "all its sequences are empty"));
  add("target_lengths", std::vector<int64_t>{2, 1}, "2");
  add("input_lengths", std::vector<int64_t>{4, 0}, "2");
  EXPECT_TRUE(contains(data_error([&] { open(); }), "row 1 of 'input_lengths' is 0"));
}

}  // namespace
}  // namespace gallop::data
