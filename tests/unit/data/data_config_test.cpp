#include "gallop/data/data_config.h"

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/config/resolve.h"
#include "gallop/data/dataset.h"
#include "gallop/data/loader.h"

namespace gallop::data {
namespace {

struct NoOptions {};
void visit(config::Visitor&, NoOptions&) {}
std::unique_ptr<DataModule> no_data(const NoOptions&, const DataContext&) {
  return std::make_unique<DataModule>();
}

class DataSection : public testing::Test {
 protected:
  DataSection() { modules.add("flowers", "for the test", no_data); }

  DataConfig read(const std::string& yaml) {
    config::Problems problems;
    DataConfig config(modules, augmentations, batch_transforms);
    config::read_fields(
        config::parse_yaml(yaml, "recipe.yaml"),
        [&](config::Visitor& visitor) { visit(visitor, config); }, problems);
    problems.throw_if_any();
    return config;
  }

  std::string refusal(const std::string& yaml) {
    try {
      read(yaml);
      return "nothing";
    } catch (const UsageError& error) {
      return error.what();
    }
  }

  DataModuleRegistry modules{"data set"};
  BatchTransformRegistry batch_transforms = built_in_batch_transforms();
  AugmentationRegistry augmentations = built_in_augmentations();
};

TEST_F(DataSection, IsReadFromARecipe) {
  const DataConfig config = read(
      "{name: flowers, batch_size: 64, augment: [random-horizontal-flip, {random-crop: {padding: "
      "2, mode: reflect}}], std: "
      "[0.2], "
      "mean: [0.5], on_error: skip, threads: 3}");
  EXPECT_EQ(config.module.name(), "flowers");
  EXPECT_EQ(config.batch_size, 64);
  ASSERT_EQ(config.augment.items.size(), 2u);
  EXPECT_EQ(config.augment.items[1].name(), "random-crop");
  EXPECT_EQ(config.deviation, std::vector<double>{0.2});
  EXPECT_TRUE(read_context(config, 8).skip_broken);
  EXPECT_TRUE(read_context(config, 8).orient);
  EXPECT_FALSE(read_context(read("{name: flowers, exif_orientation: ignore}"), 8).orient);
  EXPECT_EQ(read_context(config, 8).threads, 3);
}

TEST_F(DataSection, RefusesWhatCannotBe) {
  EXPECT_NE(refusal("{batch_size: 0}").find("data"), 0u);
  for (const char* yaml :
       {"{batch_size: 0}", "{threads: -2}", "{prefetch: 0}", "{validation: 1}", "{channels: 4}",
        "{in_memory: maybe}", "{on_error: hide}", "{normalize: well}", "{std: [0]}", "{context: 0}",
        "{name: flower}", "{augment: [flop]}", "{augment: [{random-crop: {padding: -1}}]}",
        "{bach: 5}", "{augment: [{random-horizontal-flip: {mode: never}}]}",
        "{augment: [{random-resized-crop: {scale: [0, 1]}}]}"}) {
    EXPECT_NE(refusal(yaml), "nothing") << yaml;
  }
}

TEST_F(DataSection, SetsUpLoaders) {
  const DataConfig plain = read("{batch_size: 64}");
  EXPECT_EQ(training_loader(plain, 6).threads, 6);
  EXPECT_TRUE(training_loader(plain, 6).shuffle);
  EXPECT_FALSE(evaluation_loader(plain, 6).shuffle);
  EXPECT_EQ(evaluation_loader(plain, 6).batch, 64);
  const DataConfig set = read("{batch_size: 64, eval_batch: 500, threads: 0, shuffle: false}");
  EXPECT_EQ(training_loader(set, 6).threads, 0);
  EXPECT_FALSE(training_loader(set, 6).shuffle);
  EXPECT_EQ(evaluation_loader(set, 6).batch, 500);
  EXPECT_EQ(read_context(set, 6).threads, 1);
}

}  // namespace
}  // namespace gallop::data
