#include "gallop/data/exclusion.h"

#include <set>

#include "gallop/data/quality/data_quality.h"
#include "gallop/data/table.h"
#include "unit/data/data_folder.h"
#include "unit/data/expect_error.h"

namespace gallop::data {
namespace {

using Names = std::vector<std::string>;

class Excluding : public DataFolder {
 protected:
  void add_pictures() {
    for (int i = 0; i < 12; ++i) {
      const std::string number = std::to_string(i);
      folder.add("train/cat/" + number + ".png", picture(i));
      folder.add("train/dog/" + number + ".png", picture(100 + i));
      if (i < 3) folder.add("test/cat/" + number + ".png", picture(200 + i));
    }
    folder.add("test/dog/1.png", picture(300));
    config.module = config::Component(modules, "folder");
    config.path = folder.name();
  }
  static std::string picture(int seed) {
    return make_png(4, 4, make_picture(4, 4, 3, seed).pixels);
  }

  std::unique_ptr<DataModule> open() const {
    return open_data(config, modules, augmentations, options);
  }
  std::set<std::string> names(const Samples& samples) const {
    std::set<std::string> all;
    for (int64_t i = 0; i < samples.size(); ++i) {
      all.insert(samples.describe(i).substr(folder.name().size() + 1));
    }
    return all;
  }
  std::string usage_error() const {
    try {
      open();
    } catch (const UsageError& error) {
      return error.what();
    }
    ADD_FAILURE() << "no UsageError was thrown";
    return {};
  }
};

TEST_F(Excluding, LeavesSamplesOutOfAllSplits) {
  add_pictures();
  const auto list = folder.add("list.txt", "# duplicates\ntrain/dog/3.png\n\ntest/cat/0.png\r\n");
  config.exclude = {"cat/11.png", list.string()};
  const auto data = open();
  EXPECT_EQ(data->train->size(), 22);
  EXPECT_EQ(data->test->size(), 3);
  EXPECT_FALSE(names(*data->train).contains("train/dog/3.png"));
  EXPECT_FALSE(names(*data->train).contains("train/cat/11.png"));
  EXPECT_TRUE(names(*data->train).contains("train/cat/3.png"));
  EXPECT_FALSE(names(*data->test).contains("test/cat/0.png"));
  EXPECT_EQ(data->notes.at(0), "2 training and 1 test samples are left out (data.exclude)");
}

TEST_F(Excluding, NamesMustBeOfOneSample) {
  add_pictures();
  config.exclude = {"train/cat/12.png"};
  EXPECT_TRUE(contains(usage_error(),
                       "data.exclude: no sample is called 'train/cat/12.png'; the "
                       "first sample's name is '" +
                           folder.name() + "/train/cat/0.png'"));
  config.exclude = {"1", "2", "3", "4", "5"};
  EXPECT_TRUE(contains(usage_error(), "is called '1', '2', '3' and 2 more;"));
  config.exclude = {"dog/1.png"};
  EXPECT_TRUE(contains(usage_error(), "data.exclude: 2 samples are called 'dog/1.png', such as '" +
                                          folder.name() + "/train/dog/1.png' and '" +
                                          folder.name() + "/test/dog/1.png'"));
  config.exclude = {folder.name() + "/none.txt"};
  EXPECT_TRUE(
      contains(data_error([&] { open(); }), "data.exclude: " + folder.name() + "/none.txt"));
  config.exclude = {"test/cat/0.png", "test/cat/1.png", "test/cat/2.png", "test/dog/1.png"};
  EXPECT_TRUE(
      contains(data_error([&] { open(); }), "data.exclude leaves no sample of the test split"));
}

TEST_F(Excluding, DoesNotMoveOtherSamplesBetweenSplits) {
  add_pictures();
  config.folds = 3;
  std::set<std::string> out;
  for (const bool excludes : {false, true}) {
    if (excludes) config.exclude = {"train/cat/4.png", "train/dog/7.png"};
    std::set<std::string> held_out;
    for (config.fold = 0; config.fold < 3; ++config.fold) {
      const auto data = open();
      for (const std::string& name : names(*data->validation)) {
        held_out.insert(std::to_string(config.fold) + name);
      }
    }
    if (!excludes) {
      EXPECT_EQ(held_out.size(), 24u);
      out = held_out;
      continue;
    }
    EXPECT_EQ(held_out.size(), 22u);
    for (const std::string& name : held_out) EXPECT_TRUE(out.contains(name)) << name;
  }
}

TEST_F(Excluding, DamagedFilesCanBeExcluded) {
  add_pictures();
  folder.add("train/cat/broken.png", "no image");
  EXPECT_TRUE(contains(data_error([&] { open(); }), "train/cat/broken.png"));
  config.exclude = {"train/cat/broken.png"};
  EXPECT_EQ(open()->train->size(), 24);
}

TEST_F(Excluding, StatisticsAreThoseOfTheRemainingSamples) {
  folder.add("train.csv", "x,price\n1,5\n3,6\n101,7\n");
  folder.add("test.csv", "x,price\n3,5\n9,6\n");
  config.module = config::Component(modules, "table");
  config.path = folder.name();
  config.exclude = {"train.csv:4", "test.csv:2"};
  const auto data = open();
  EXPECT_EQ(data->signature.mean, (std::vector<double>{2}));
  EXPECT_EQ(names(*data->train), (std::set<std::string>{"train.csv:2", "train.csv:3"}));
  EXPECT_EQ(names(*data->test), (std::set<std::string>{"test.csv:3"}));
  // Means of images are cached by their files; not if others are left out.
  add_pictures();
  config.exclude.clear();
  const auto all = open()->signature.mean;
  config.exclude = {"train/cat/4.png"};
  EXPECT_NE(open()->signature.mean, all);
}

TEST_F(Excluding, WorksForTextsButNotForRunningText) {
  folder.add("texts.csv", "text,label\nabc,a\nabcd,b\nab,a\n");
  config.module = config::Component(modules, "labeled-text");
  config.path = folder.name() + "/texts.csv";
  config.exclude = {"texts.csv:3"};
  EXPECT_EQ(names(*open()->train), (std::set<std::string>{"texts.csv:2", "texts.csv:4"}));
  folder.add("text.txt", "to be or not to be, that is the question");
  config.module = config::Component(modules, "text");
  config.path = folder.name() + "/text.txt";
  config.context = 4;
  EXPECT_TRUE(contains(usage_error(), "windows of running text have no names"));
}

TEST_F(Excluding, TakesTheNamesOfAReport) {
  folder.add("images.csv", "image,label\n1.png,a\nold/1.png,b\n2.png,a\nold/3.png,b\n");
  for (const char* name : {"1.png", "old/3.png"}) folder.add(name, "no image");
  for (const char* name : {"old/1.png", "2.png"}) folder.add(name, picture(name[0]));
  config.module = config::Component(modules, "image-table");
  config.path = folder.name() + "/images.csv";
  const auto quality = read_data(config, modules, augmentations, options)->check_quality(1);
  ASSERT_EQ(quality.findings.at(0).kind, "damaged-files");
  config.exclude = quality.findings[0].excluded;
  EXPECT_EQ(config.exclude, (Names{folder.name() + "/1.png", "old/3.png"}));
  EXPECT_EQ(names(*open()->train), (std::set<std::string>{"old/1.png", "2.png"}));
}

TEST_F(Excluding, TablesAndTextsAreCheckedForDuplicates) {
  folder.add("a/train.csv", "x,none,kind\n1,,a\n2,,b\n1,,a\n2,,a\n3,,a\n");
  folder.add("a/test.csv", "x,none,kind\n3,,a\n5,,b\n");
  config.module = config::Component(modules, "table");
  config.path = folder.name() + "/a";
  const auto table = read_data(config, modules, augmentations, options)->check_quality(1);
  EXPECT_EQ(table.unit, "rows");
  std::map<std::string, Names> excluded;
  for (const QualityFinding& one : table.findings) excluded[one.kind] = one.excluded;
  EXPECT_EQ(excluded["leakage"], (Names{"train.csv:6"}));
  EXPECT_EQ(excluded["conflicting-labels"], (Names{"train.csv:3", "train.csv:5"}));
  EXPECT_EQ(excluded["exact-duplicates"], (Names{"train.csv:4", "train.csv:5"}));
  EXPECT_TRUE(excluded.contains("empty-columns"));

  folder.add("texts.csv", "text,label\nabc,a\nabcd,b\nabc,a\nab,a\n");
  config.module = config::Component(modules, "labeled-text");
  config.path = folder.name() + "/texts.csv";
  const auto texts = read_data(config, modules, augmentations, options)->check_quality(1);
  ASSERT_EQ(texts.findings.size(), 1u);
  EXPECT_EQ(texts.findings[0].excluded, (Names{"texts.csv:4"}));
  EXPECT_EQ(texts.findings[0].text, "2 texts in 1 group have the same content");
}

}  // namespace
}  // namespace gallop::data
