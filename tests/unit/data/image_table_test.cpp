// Images that a table lists with their targets.
#include "gallop/data/image_table.h"

#include <map>

#include <gtest/gtest.h>

#include "gallop/data/data_paths.h"
#include "gallop/data/quality/data_quality.h"
#include "gallop/data/report.h"
#include "unit/config/component_of.h"
#include "unit/data/data_folder.h"
#include "unit/data/expect_error.h"
#include "unit/data/image_fields.h"

namespace gallop::data {
namespace {

using Names = std::vector<std::string>;

class ImageTable : public DataFolder {
 protected:
  ImageTable() {
    // One color each, by which it is known: its first pixel.
    for (int i = 0; i < 6; ++i) {
      const std::vector<uint8_t> pixels(3 * 4 * 4, static_cast<uint8_t>(40 * i));
      folder.add("pictures/" + std::to_string(i) + ".png", make_png(4, 4, pixels));
    }
    config.normalize = "none";
    config.path = folder.name();
  }
  std::unique_ptr<DataModule> open(const ImageTableConfig& table = {}) {
    return open_image_table(table, context());
  }
  std::unique_ptr<DataModule> open(const std::string& name, const std::string& text,
                                   const ImageTableConfig& table = {}) {
    config.path = folder.add("pictures/" + name, text).string();
    return open(table);
  }
  std::string error_of(const std::string& name, const std::string& text,
                       const ImageTableConfig& table = {}) {
    return data_error([&] { open(name, text, table); });
  }

  struct Read {
    int picture = -1;
    int64_t label = -1;
    std::vector<float> numbers;
  };
  static Read row(const Samples& samples, int64_t index) {
    Read read;
    std::vector<float> image(3 * 4 * 4);
    const RowShape& target = samples.fields().target().shape;
    const bool is_class = target.dtype == c10::ScalarType::Long;
    if (!is_class) read.numbers.resize(static_cast<size_t>(target.sizes[0]));
    void* const out = is_class ? static_cast<void*>(&read.label) : read.numbers.data();
    EXPECT_TRUE(fill_row(samples, index, 0, image.data(), out));
    read.picture = static_cast<int>(std::lround(image[0] * 255 / 40));
    return read;
  }
};

TEST_F(ImageTable, NamesItsImagesForTheIdentityOfARun) {
  const auto data = open("a.csv", "file_name,label\n4.png,dog\n1.png,cat\n4.png,cat\n");
  const DataPaths paths = paths_of(*data);
  EXPECT_EQ(paths.paths, Names{folder.name() + "/pictures/a.csv"});
  ASSERT_EQ(paths.named.size(), 1u);
  EXPECT_EQ(paths.named[0].folder, folder.name() + "/pictures");
  EXPECT_EQ(paths.named[0].names, (Names{"4.png", "1.png"}));
}

TEST_F(ImageTable, SaysThatAnImageIsAFolder) {
  make_folders(folder.path() / "pictures/more");
  EXPECT_TRUE(contains(error_of("a.csv", "file_name,label\nmore,dog\n1.png,cat\n"),
                       "/pictures/more: cannot read: Is a directory"));
}

TEST_F(ImageTable, ReadsClassesFromCsvTsvAndJsonLinesAlike) {
  const char* const files[][2] = {
      {"a.csv", "file_name,label\r\n4.png,dog\r\n\"1.png\", cat\r\n"},
      {"a.tsv", "label\tfile_name\ndog\t4.png\ncat\t1.png"},
      {"a.jsonl",
       "{\"file_name\": \"4.png\", \"label\": "
       "\"dog\"}\n\n{\"label\":\"cat\",\"file_name\":\"1.png\"}"},
  };
  for (const auto& [name, text] : files) {
    const auto data = open(name, text);
    EXPECT_EQ(data->signature.kind, "images");
    EXPECT_EQ(data->signature.task, "classification");
    EXPECT_EQ(data->signature.classes, (Names{"cat", "dog"}));
    ASSERT_EQ(data->train->size(), 2) << name;
    EXPECT_TRUE(data->train->every_target_counts());
    EXPECT_EQ(data->train->label(0), 1);
    EXPECT_EQ(row(*data->train, 0).picture, 4);
    EXPECT_EQ(row(*data->train, 0).label, 1);
    EXPECT_EQ(row(*data->train, 1).picture, 1);
    EXPECT_TRUE(data->train->describe(1).ends_with("pictures/1.png"));
  }
}

TEST_F(ImageTable, ReadsNumbersStandardizedByTheTrainingPart) {
  folder.add("train.csv", "image,x,y\npictures/0.png,1.5,10\npictures/1.png,2.5,30\n");
  folder.add("val.jsonl", "{\"image\": \"pictures/2.png\", \"y\": 50, \"x\": 1e0}\n");
  const auto data = open({.targets = {"x", "y"}});
  EXPECT_EQ(data->signature.task, "regression");
  EXPECT_EQ(data->signature.targets, (Names{"x", "y"}));
  EXPECT_TRUE(data->signature.classes.empty());
  EXPECT_EQ(data->signature.target_mean, (std::vector<double>{2, 20}));
  EXPECT_EQ(data->signature.target_deviation, (std::vector<double>{0.5, 10}));
  EXPECT_EQ(row(*data->train, 1).numbers, (std::vector<float>{1, 1}));
  EXPECT_EQ(row(*data->validation, 0).numbers, (std::vector<float>{-2, 3}));
  EXPECT_EQ(row(*data->validation, 0).picture, 2);
  EXPECT_FALSE(data->train->every_target_counts());
  EXPECT_EQ(data->train->label(0), std::nullopt);
  const auto plain = open({.targets = {"x", "y"}, .standardize_targets = false});
  EXPECT_EQ(row(*plain->validation, 0).numbers, (std::vector<float>{1, 50}));
  // A held-out part has no part in the statistics.
  fs::remove(folder.path() / "val.jsonl");
  config.validation = 0.5;
  const auto held_out = open({.targets = {"x", "y"}});
  ASSERT_EQ(held_out->train->size(), 1);
  EXPECT_EQ(row(*held_out->train, 0).numbers, (std::vector<float>{0, 0}));
}

TEST_F(ImageTable, ImagesOfAGroupAreInOneSplit) {
  config.validation = 0.5;
  config.group = "person";
  const auto data =
      open("a.csv",
           "image,person,kind\n0.png,b,x\n1.png,a,y\n2.png,b,x\n3.png,a,x\n4.png,b,y\n"
           "5.png,a,y\n",
           {.target = "kind"});
  ASSERT_EQ(data->validation->size(), 3);
  const int first = row(*data->validation, 0).picture % 2;
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(row(*data->validation, i).picture % 2, first);
  // Otherwise it is an expression for their names.
  config.group = "(\\d)\\.png";
  EXPECT_EQ(open({.target = "kind"})->validation->size(), 3);
}

TEST_F(ImageTable, ReadsSeveralLabelsFromColumnsTextsAndLists) {
  const auto columns =
      open("a.csv", "path,cat,dog\n0.png,1,0\n1.png,1,1\n2.png,0,0\n", {.targets = {"cat", "dog"}});
  config.task = "multi-label";
  const auto texts = open("b.csv", "path,tags\n0.png,cat\n1.png,dog | cat\n2.png,\n");
  config.task = "auto";
  const auto lists = open("c.jsonl",
                          "{\"path\": \"0.png\", \"labels\": [\"cat\"]}\n"
                          "{\"path\": \"1.png\", \"labels\": [\"dog\", \"cat\"]}\n"
                          "{\"path\": \"2.png\", \"labels\": []}\n");
  for (const auto* const data : {&columns, &texts, &lists}) {
    EXPECT_EQ((*data)->signature.task, "multi-label");
    EXPECT_EQ((*data)->signature.classes, (Names{"cat", "dog"}));
    ASSERT_EQ((*data)->train->size(), 3);
    EXPECT_EQ(row(*(*data)->train, 0).numbers, (std::vector<float>{1, 0}));
    EXPECT_EQ(row(*(*data)->train, 1).numbers, (std::vector<float>{1, 1}));
    EXPECT_EQ(row(*(*data)->train, 2).numbers, (std::vector<float>{0, 0}));
    const DataReport report = (*data)->inspect(1);
    EXPECT_EQ(report.images[0].class_counts, (std::vector<int64_t>{2, 1}));
  }
}

TEST_F(ImageTable, NumbersHaveNoClassesToCheck) {
  const DataQuality quality =
      open("a.csv", "image,x\n0.png,1.5\n1.png,2\n1.png,2.5\n")->check_quality(1);
  EXPECT_EQ(quality.checks.back(), "brightness");
  for (const QualityFinding& one : quality.findings) {
    EXPECT_NE(one.kind, "conflicting-labels");
    EXPECT_NE(one.kind, "empty-classes");
  }
}

TEST_F(ImageTable, ClassesOfSeveralLabelsAreCheckedByTheirImages) {
  const DataQuality quality = open("a.csv",
                                   "image,cat,dog\n0.png,1,0\n1.png,1,1\n1.png,0,0\n2.png,1,0\n"
                                   "3.png,1,0\n",
                                   {.targets = {"cat", "dog"}})
                                  ->check_quality(1);
  EXPECT_EQ(quality.checks.back(), "class balance");
  std::map<std::string, QualityFinding> findings;
  for (const QualityFinding& one : quality.findings) findings[one.kind] = one;
  EXPECT_FALSE(findings.contains("empty-classes"));
  EXPECT_FALSE(findings.contains("conflicting-labels"));
  EXPECT_TRUE(contains(findings["class-imbalance"].text, "cat, has 4.0 times the training images"));
  EXPECT_EQ(findings["class-imbalance"].remedy, "") << "data.sampling is for one class each";
  EXPECT_EQ(findings["exact-duplicates"].groups.at(0).at(0).label, "");
}

TEST_F(ImageTable, FindsMetadataOfImageFolders) {
  for (const char* part : {"train", "test"}) {
    folder.add(std::string(part) + "/a/x.png", make_png(4, 4, std::vector<uint8_t>(48, 80)));
    folder.add(std::string(part) + "/metadata.csv", "file_name,label\na/x.png,cat\n");
  }
  auto data = open();
  EXPECT_EQ(data->train->size(), 1);
  EXPECT_EQ(data->test->size(), 1);
  EXPECT_TRUE(data->test->describe(0).ends_with("test/a/x.png"));
  EXPECT_EQ(row(*data->test, 0).picture, 2);
  // One file for all splits, which are the folders.
  fs::remove(folder.path() / "train/metadata.csv");
  fs::remove(folder.path() / "test/metadata.csv");
  folder.add("metadata.jsonl",
             "{\"file_name\": \"train/a/x.png\", \"label\": \"cat\"}\n"
             "{\"file_name\": \"test/a/x.png\", \"label\": \"cat\"}\n");
  data = open();
  EXPECT_EQ(data->train->size(), 1);
  EXPECT_EQ(data->test->size(), 1);
  EXPECT_TRUE(data->test->describe(0).ends_with("test/a/x.png"));
  folder.add("metadata.csv", "file_name,label\ntrain/a/x.png,cat\n");
  EXPECT_TRUE(contains(data_error([&] { open(); }), "keep one of them"));
}

TEST_F(ImageTable, ATestSplitWithoutLabelsIsOnlyPredicted) {
  folder.add("train.csv", "image,label\npictures/0.png,a\npictures/1.png,b\n");
  folder.add("test.csv", "image,label\npictures/2.png,\npictures/3.png,\n");
  const auto data = open();
  EXPECT_EQ(data->test, nullptr);
  const Samples* const test = data->samples_for(Part::kTest, data->signature);
  ASSERT_NE(test, nullptr);
  EXPECT_EQ(row(*test, 1).picture, 3);
  ASSERT_EQ(data->notes.size(), 1U);
  EXPECT_TRUE(contains(data->notes[0], "test.csv"));
  folder.add("test.csv", "image,label\npictures/2.png,\npictures/3.png,a\n");
  EXPECT_TRUE(contains(data_error([&] { open(); }), "test.csv:2: column 'label' has no value"));
}

TEST_F(ImageTable, ATestSplitWithoutTheColumnIsOnlyPredicted) {
  folder.add("train.csv", "image,label\npictures/0.png,a\npictures/1.png,b\n");
  folder.add("test.csv", "image\npictures/2.png\n");
  const auto data = open();
  EXPECT_EQ(data->test, nullptr);
  ASSERT_NE(data->samples_for(Part::kTest, data->signature), nullptr);
}

TEST_F(ImageTable, NoLabelIsNotAnEmptyList) {
  folder.add("train.jsonl",
             "{\"image\": \"pictures/0.png\", \"labels\": [\"a\"]}\n"
             "{\"image\": \"pictures/1.png\", \"labels\": []}\n");
  folder.add("test.jsonl", "{\"image\": \"pictures/2.png\", \"labels\": []}\n");
  const auto data = open();
  ASSERT_NE(data->test, nullptr);
  EXPECT_EQ(row(*data->test, 0).numbers, std::vector<float>{0});
  folder.add("test.jsonl", "{\"image\": \"pictures/2.png\", \"labels\": null}\n");
  EXPECT_EQ(open()->test, nullptr);
}

TEST_F(ImageTable, AFolderForEachSplit) {
  folder.add("train/metadata.csv", "file_name,label\n../pictures/0.png,a\n");
  folder.add("val/metadata.csv", "file_name,label\n../pictures/1.png,a\n");
  folder.add("validation/metadata.csv", "file_name,label\n../pictures/2.png,a\n");
  EXPECT_TRUE(contains(data_error([&] { open(); }), "keep one of them"));
}

TEST_F(ImageTable, ReadsShards) {
  folder.add("data/train-00000-of-00002.csv", "image,label\npictures/0.png,a\n");
  folder.add("data/train-00001-of-00002.csv", "image,label\npictures/1.png,b\npictures/2.png\n");
  folder.add("data/validation-00000-of-00001.csv", "image,label\npictures/3.png,b\n");
  const ImageTableConfig table{.root = folder.name()};
  EXPECT_TRUE(contains(data_error([&] { open(table); }), "train-00001-of-00002.csv:3:1: 1 fields"));
  folder.add("data/train-00001-of-00002.csv", "image,label\npictures/1.png,b\n");
  const auto data = open(table);
  EXPECT_EQ(data->train->size(), 2);
  EXPECT_EQ(row(*data->train, 1).picture, 1);
  EXPECT_EQ(data->validation->size(), 1);
  EXPECT_EQ(data->files.size(), 3U);
  folder.add("data/train-00001-of-00002.csv", "image,kind\npictures/1.png,b\n");
  EXPECT_TRUE(contains(data_error([&] { open(table); }),
                       "train-00001-of-00002.csv: has the columns image and kind, but"));
  fs::remove(folder.path() / "data/train-00000-of-00002.csv");
  EXPECT_TRUE(
      contains(data_error([&] { open(table); }), "shard 0 of the 2 of the train split is missing"));
}

TEST_F(ImageTable, NamesPlaceAndRemedyOfWhatIsWrong) {
  EXPECT_TRUE(contains(error_of("a.csv", "file_name,label\n0.png,a\n1.png,\n"),
                       "a.csv:3:7: column 'label' has no value"));
  EXPECT_TRUE(contains(error_of("a.csv", "file_name,label\n0.png,a,b\n"), "a.csv:2:9: 3 fields"));
  EXPECT_TRUE(contains(error_of("a.csv", "photo,label\n0.png,a\n"), "set data.image"));
  EXPECT_TRUE(contains(error_of("a.csv", "image,x,y\n0.png,1,2\n"),
                       "which column is to be predicted? It has x and y"));
  EXPECT_TRUE(contains(error_of("a.csv", "image,label\n0.png,a\n", {.target = "lable"}),
                       "did you mean 'label'?"));
  EXPECT_TRUE(contains(error_of("a.csv", "image,label\n9.png,a\n"), "pictures/9.png: cannot open"));
  config.task = "regression";
  EXPECT_TRUE(contains(error_of("a.csv", "image,y\n0.png,1.5\n1.png,x\n"),
                       "a.csv:3:7: column 'y' is 'x', which is not a number"));
  config.task = "auto";
  folder.add("train.csv", "image,label\npictures/0.png,a\n");
  folder.add("test.csv", "image,label\npictures/0.png,b\npictures/1.png,a\n");
  config.path = folder.name();
  EXPECT_TRUE(contains(data_error([&] { open(); }),
                       "test.csv:2: class 'b' does not occur in the training split"));
  config.on_error = "skip";
  const auto data = open();
  EXPECT_EQ(data->test->size(), 1);
  ASSERT_EQ(data->notes.size(), 1U);
  EXPECT_TRUE(contains(data->notes[0], "1 skipped (invalid target)"));
}

}  // namespace
}  // namespace gallop::data
