#include "gallop/config/renamed_options.h"

#include <set>

#include <gtest/gtest.h>

#include "gallop/base/error.h"

namespace gallop::config {
namespace {

struct Renamed {
  std::string yaml;
  std::vector<std::string> warnings;
  std::string error;
};

Renamed renamed(const std::string& yaml) {
  Node root = parse_yaml(yaml, "r.yaml");
  Problems problems;
  Renamed result;
  for (const OldName& one : rename_old_options(root, problems)) {
    result.warnings.push_back(one.describe());
  }
  result.yaml = to_yaml(root, /*show_origins=*/false);
  try {
    problems.throw_if_any();
  } catch (const UsageError& error) {
    result.error = error.what();
  }
  return result;
}

TEST(RenamedOptions, RenamesKeysInPlace) {
  const Renamed found = renamed(
      "data: {name: mnist, batch: 8}\n"
      "vary: {momentum: {name: linear, to: 0.8}}\n"
      "train: {clip: 1, accumulate: 2, recompute: {every: 1}}\n");
  EXPECT_EQ(found.yaml, renamed("data: {name: mnist, batch_size: 8}\n"
                                "schedules: {momentum: {name: linear, to: 0.8}}\n"
                                "train: {clip_grad_norm: 1, gradient_accumulation: 2, "
                                "activation_checkpointing: {every: 1}}\n")
                            .yaml);
  EXPECT_EQ(
      found.warnings,
      (std::vector<std::string>{
          "r.yaml:1:21: data.batch is deprecated; write data.batch_size",
          "r.yaml:2:1: vary is deprecated; write schedules",
          "r.yaml:3:9: train.clip is deprecated; write train.clip_grad_norm",
          "r.yaml:3:18: train.accumulate is deprecated; write train.gradient_accumulation",
          "r.yaml:3:33: train.recompute is deprecated; write train.activation_checkpointing"}));
  EXPECT_EQ(found.error, "");
}

TEST(RenamedOptions, RenamesMembersOfLists) {
  const Renamed found = renamed("data: {augment: [flip, {crop: {padding: 2}}]}\n");
  EXPECT_EQ(
      found.yaml,
      renamed("data: {augment: [random-horizontal-flip, {random-crop: {padding: 2}}]}\n").yaml);
  EXPECT_EQ(
      found.warnings,
      (std::vector<std::string>{
          "r.yaml:1:18: data.augment.0.flip is deprecated; write "
          "data.augment.0.random-horizontal-flip",
          "r.yaml:1:25: data.augment.1.crop is deprecated; write data.augment.1.random-crop"}));
}

TEST(RenamedOptions, KeepsCurrentNames) {
  const char* const yaml =
      "data: {name: mnist, batch_size: 8}\nmodel: {name: gpt, batch: 8, clip: 3}\nclip: 2\n";
  EXPECT_EQ(renamed(yaml).warnings, std::vector<std::string>());
  EXPECT_EQ(renamed(yaml).yaml, to_yaml(parse_yaml(yaml, "r.yaml"), false));
}

TEST(RenamedOptions, BothNamesAreAnError) {
  EXPECT_EQ(renamed("data: {batch: 8, batch_size: 16}\n").error,
            "r.yaml:1:8: data.batch: this is the old name of data.batch_size, which is given as "
            "well; remove one of them");
}

TEST(RenamedOptions, RenamesPaths) {
  EXPECT_EQ(current_path("data.batch"), "data.batch_size");
  EXPECT_EQ(current_path("data.batch_size"), "data.batch_size");
  EXPECT_EQ(current_path("vary.momentum.to"), "schedules.momentum.to");
  EXPECT_EQ(current_path("optimizer.wrap.0.ema.decay"), "optimizer.wrappers.0.ema.decay");
  EXPECT_EQ(current_path("data.augment.3.crop.padding"), "data.augment.3.random-crop.padding");
  EXPECT_EQ(current_path("model.batch"), "model.batch");
  EXPECT_EQ(current_path("data.augment.flip"), "data.augment.flip");
  EXPECT_EQ(current_path("data..batch"), "data..batch");
  EXPECT_EQ(current_path(""), "");
}

TEST(RenamedOptions, NoNameIsBothOldAndCurrent) {
  std::set<std::string> old, current;
  for (const RenamedOption& one : renamed_options()) {
    old.insert(std::string(one.parent) + "." + one.old_name);
    current.insert(std::string(one.parent) + "." + one.name);
  }
  EXPECT_EQ(old.size(), renamed_options().size());
  for (const std::string& name : current) EXPECT_FALSE(old.contains(name)) << name;
}

}  // namespace
}  // namespace gallop::config
