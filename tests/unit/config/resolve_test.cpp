#include "gallop/config/resolve.h"

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/config/component.h"
#include "gallop/config/scalar.h"
#include "gallop/schedule/schedule.h"

namespace gallop::config {
namespace {

struct Inner {
  double lr = 0.1;
  bool nesterov = false;
  std::optional<double> clip;
};
void visit(Visitor& v, Inner& c) {
  v.field({.name = "lr", .help = "learning rate", .min = 0, .above_min = true, .or_auto = true},
          c.lr);
  v.field({.name = "nesterov", .help = "look ahead"}, c.nesterov);
  v.field({.name = "clip", .help = "norm", .min = 0}, c.clip);
}

struct Outer {
  int64_t batch = 32;
  std::string precision = "auto";
  std::vector<int64_t> sizes{1, 2};
  Inner optimizer;
  schedule::ScheduleRegistry registry = schedule::built_in_schedules();
  Component schedule{registry, "constant"};
  ComponentList chain{registry};
};
void visit(Visitor& v, Outer& c) {
  v.field({.name = "batch", .help = "samples", .min = 1}, c.batch);
  v.field({.name = "precision", .help = "format", .choices = {"auto", "fp32", "bf16"}},
          c.precision);
  v.field({.name = "sizes", .help = "widths", .min = 1}, c.sizes);
  v.section({.name = "optimizer", .help = ""}, c.optimizer);
  v.field({.name = "name", .help = "schedule"}, c.schedule);
  v.field({.name = "chain", .help = "schedules"}, c.chain);
}

std::string read(const std::string& yaml, Outer& outer,
                 const std::vector<std::pair<std::string, std::string>>& overrides = {}) {
  Node root = parse_yaml(yaml, "r.yaml");
  Problems problems;
  for (const auto& [key, value] : overrides) {
    apply_override(root, key, parse_override_value(value, key), problems);
  }
  read_fields(
      root, [&](Visitor& v) { visit(v, outer); }, problems);
  try {
    problems.throw_if_any();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(ReadFields, ReadsEveryType) {
  Outer outer;
  EXPECT_EQ(read("batch: 1_024\n"
                 "precision: bf16\n"
                 "sizes: [3, 4, 5]\n"
                 "optimizer: {lr: 5e-4, nesterov: true, clip: 1}\n"
                 "name: one-cycle\n"
                 "warmup: 0.5\n"
                 "chain: [constant, {cosine: {warmup: 0.1}}]\n",
                 outer),
            "");
  EXPECT_EQ(outer.batch, 1024);
  EXPECT_EQ(outer.precision, "bf16");
  EXPECT_EQ(outer.sizes, (std::vector<int64_t>{3, 4, 5}));
  EXPECT_DOUBLE_EQ(outer.optimizer.lr, 5e-4);
  EXPECT_TRUE(outer.optimizer.nesterov);
  EXPECT_EQ(outer.optimizer.clip, 1.0);
  EXPECT_EQ(outer.schedule.name(), "one-cycle");
  EXPECT_EQ(outer.chain.items.size(), 2u);
  EXPECT_NEAR(outer.registry.build(outer.schedule, {})->factor(0.75), 0.5, 1e-12);
  EXPECT_NEAR(outer.registry.build(outer.chain.items[1], {})->factor(0.05), 0.5, 1e-12);
}

TEST(ReadFields, ReportsAllMistakesWithPositionAndNearestName) {
  Outer outer;
  EXPECT_EQ(read("batch: 0\n"
                 "precision: bf61\n"
                 "optimizer:\n"
                 "  lr: fast\n"
                 "  nestrov: true\n"
                 "name: one-cicle\n",
                 outer),
            "r.yaml:1:8: batch: must be an integer of at least 1, not '0'\n"
            "r.yaml:2:12: precision: unknown value 'bf61'; did you mean 'bf16'? "
            "Known: auto, fp32 and bf16\n"
            "r.yaml:4:7: optimizer.lr: must be a number above 0 or auto, not 'fast'\n"
            "r.yaml:5:3: optimizer.nestrov: unknown key 'nestrov'; did you mean 'nesterov'? "
            "Known: lr, nesterov and clip\n"
            "r.yaml:6:7: name: unknown schedule 'one-cicle'; did you mean 'one-cycle'? "
            "Known: " +
                join_names(outer.registry.names(), "and"));
}

TEST(ReadFields, KeepsAuto) {
  Outer outer;
  const std::string yaml = "optimizer: {lr: auto}\n";
  EXPECT_EQ(read(yaml, outer), "");
  EXPECT_DOUBLE_EQ(outer.optimizer.lr, 0.1);
  const Node written = parse_yaml(yaml, "r.yaml");
  EXPECT_TRUE(is_auto(*written.find("optimizer")->find("lr")));
  const Node node = write_fields([&](Visitor& v) { visit(v, outer); }, written);
  EXPECT_EQ(node.find("optimizer")->find("lr")->scalar, "auto");

  EXPECT_EQ(read("batch: auto\n", outer),
            "r.yaml:1:8: batch: must be an integer of at least 1, not 'auto'");
  EXPECT_EQ(read("optimizer: {lr: 'auto'}\n", outer),
            "r.yaml:1:17: optimizer.lr: must be a number above 0 or auto, not 'auto'");
}

TEST(ReadFields, ChecksEachTextOfAList) {
  Outer outer;
  EXPECT_EQ(read("name: multi-step\nmilestones: [0.5, soon, 2]\n", outer),
            "r.yaml:2:19: milestones: must be a fraction of the run from 0 to 1, or such as '30 "
            "epochs' or '500 steps', not 'soon'\n"
            "r.yaml:2:25: milestones: must be a fraction of the run from 0 to 1, or such as '30 "
            "epochs' or '500 steps', not '2'");
}

TEST(ReadFields, MembersCanBeNested) {
  Outer outer;
  EXPECT_EQ(read("name: chained\nmembers: [{chained: {members: [step]}}, cosine]\n", outer), "");
  EXPECT_NEAR(outer.registry.build(outer.schedule, {})->factor(0.5), 0.01 * 0.5, 1e-15);
  EXPECT_EQ(read("name: chained\nmembers: [{chained: {members: [stepp]}}]\n", outer).substr(0, 80),
            "r.yaml:2:32: members.0.chained.members.0: unknown schedule 'stepp'; did you mean");
}

TEST(ReadFields, OverridesTakePrecedenceAndKeepTheirOrigin) {
  Outer outer;
  EXPECT_EQ(read("batch: 8\n", outer, {{"batch", "16"}, {"optimizer.lr", "0.5"}}), "");
  EXPECT_EQ(outer.batch, 16);
  EXPECT_DOUBLE_EQ(outer.optimizer.lr, 0.5);
  Outer wrong;
  EXPECT_EQ(read("batch: 8\n", wrong, {{"batch", "many"}}),
            "command line: batch: must be an integer of at least 1, not 'many'");
  EXPECT_EQ(read("batch: 8\n", wrong, {{"batch.size", "1"}}),
            "command line: batch.size: 'size' is inside a scalar");
}

// A section that chooses a member of a family, and one that does not.
struct Sections {
  schedule::ScheduleRegistry registry = schedule::built_in_schedules();
  Component schedule{registry, "constant"};
  Inner optimizer;
};
struct ScheduleSection {
  Component& schedule;
};
void visit(Visitor& v, ScheduleSection& c) {
  v.field({.name = "name", .help = "schedule"}, c.schedule);
}
void visit(Visitor& v, Sections& c) {
  ScheduleSection section{c.schedule};
  v.section({.name = "schedule", .help = ""}, section);
  v.section({.name = "optimizer", .help = ""}, c.optimizer);
}

// The values that were read, written with their origins; or the error.
std::string read_sections(const std::string& yaml, const std::string& key = {},
                          const std::string& value = {}) {
  Node root = parse_yaml(yaml, "r.yaml");
  Problems problems;
  if (!key.empty()) apply_override(root, key, parse_override_value(value, key), problems);
  Sections sections;
  const VisitFields fields = [&](Visitor& v) { visit(v, sections); };
  read_fields(root, fields, problems);
  try {
    problems.throw_if_any();
  } catch (const UsageError& error) {
    return error.what();
  }
  return to_yaml(*write_fields(fields, root).find("schedule"), true);
}

TEST(ReadFields, ANameSelectsAMember) {
  EXPECT_NE(read_sections("schedule: exponential\n").find("name: exponential"), std::string::npos);
  EXPECT_NE(read_sections("schedule: exponential\n").find("# r.yaml:1:11"), std::string::npos);
  EXPECT_NE(read_sections("schedule: step\n", "schedule.gamma", "0.5").find("gamma: 0.5"),
            std::string::npos);
  EXPECT_NE(read_sections("", "schedule", "step").find("name: step"), std::string::npos);
  EXPECT_TRUE(
      read_sections("schedule: stepp\n")
          .starts_with("r.yaml:1:11: schedule.name: unknown schedule 'stepp'; did you mean"));
  EXPECT_EQ(read_sections("optimizer: adamw\n"),
            "r.yaml:1:12: optimizer: must be a map of options, not 'adamw'");
  EXPECT_EQ(read_sections("optimizer: 3\n", "optimizer.lr", "1"),
            "command line: optimizer.lr: 'lr' is inside a scalar\n"
            "r.yaml:1:12: optimizer: must be a map of options, not '3'");
}

TEST(WriteFields, RoundTripsAndShowsOrigins) {
  Outer outer;
  const Node root = parse_yaml("optimizer: {lr: 0.25}\nchain: [{step: {gamma: 0.5}}]\n", "r.yaml");
  Problems problems;
  const VisitFields fields = [&](Visitor& v) { visit(v, outer); };
  read_fields(root, fields, problems);
  const Node resolved = write_fields(fields, root);
  EXPECT_EQ(to_yaml(resolved, true),
            "batch: 32                                       # default\n"
            "precision: auto                                 # default\n"
            "sizes: [1, 2]                                   # default\n"
            "optimizer:\n"
            "  lr: 0.25                                      # r.yaml:1:17\n"
            "  nesterov: false                               # default\n"
            "  clip: none                                    # default\n"
            "name: constant                                  # default\n"
            "chain: [{step: {step_size: 0.25, gamma: 0.5}}]  # r.yaml:2:8\n");
  Outer again;
  EXPECT_EQ(read(to_yaml(resolved, false), again), "");
  EXPECT_EQ(to_yaml(write_fields([&](Visitor& v) { visit(v, again); }, Node()), false),
            to_yaml(resolved, false));
}

TEST(ParseYaml, RejectsUnsupportedYaml) {
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"a: 1\na: 2\n", "r.yaml:2:1: a: duplicate key"},
           {"a: &x 1\n", "r.yaml:1:4: anchors"},
           {"a: [1, 2\n", "r.yaml:"},
           {"[a]: 1\n", "r.yaml:1:1: a key must be plain text"},
           {std::string(40, '[') + std::string(40, ']'), "nested deeper than 32"}}) {
    try {
      parse_yaml(text, "r.yaml");
      ADD_FAILURE() << "accepted: " << text;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
    }
  }
}

TEST(ToJson, InfersTypesFromTheText) {
  EXPECT_EQ(to_json(parse_yaml("a: 1\nb: 2.5\nc: [true, x, null]\nd: '7'\n", "r")),
            R"({"a":1,"b":2.5,"c":[true,"x",null],"d":"7"})");
  EXPECT_EQ(to_json(parse_yaml("a: none\nb: [~, None, 'null', Null]\nc:\n", "r")),
            R"({"a":"none","b":[null,"None","null",null],"c":null})");
}

TEST(DescribeFields, ListsKeysTypesAndDefaults) {
  Outer outer;
  const auto lines = describe_fields([&](Visitor& v) { visit(v, outer); }, "");
  ASSERT_GE(lines.size(), 6u);
  EXPECT_EQ(lines[0].key, "batch");
  EXPECT_EQ(lines[0].type, "integer of at least 1");
  EXPECT_EQ(lines[3].key, "optimizer.lr");
  EXPECT_EQ(lines[3].initial, "0.1");
}

struct Files {
  std::string file = "", other = "";
};
void visit(Visitor& v, Files& c) {
  v.field({.name = "file", .help = "a file", .is_path = true}, c.file);
  v.field({.name = "other", .help = "another file", .is_path = true}, c.other);
}

TEST(Resolve, PathsAreRelativeToTheRecipeOrToTheWorkingDirectory) {
  const auto read_files = [](const std::string& yaml, const std::string& other) {
    Node root = parse_yaml(yaml, "/a/recipes/r.yaml");
    Problems problems;
    if (!other.empty()) {
      apply_override(root, "other", parse_override_value(other, "other"), problems);
    }
    Files files;
    read_fields(
        root, [&](Visitor& v) { visit(v, files); }, problems);
    problems.throw_if_any();
    return files;
  };
  EXPECT_EQ(read_files("file: net.pt2", "").file, "/a/recipes/net.pt2");
  EXPECT_EQ(read_files("file: ../nets/net.pt2", "").file, "/a/nets/net.pt2");
  EXPECT_EQ(read_files("file: /b/net.pt2", "").file, "/b/net.pt2");
  EXPECT_EQ(read_files("file: net.pt2", "").other, "");
  EXPECT_EQ(read_files("file: net.pt2", "net.pt2").other,
            (std::filesystem::current_path() / "net.pt2").string());
  const char* const home = std::getenv("HOME");
  if (home != nullptr) {
    EXPECT_EQ(read_files("file: ~/net.pt2", "").file, std::string(home) + "/net.pt2");
  }
  Files none;
  EXPECT_EQ(describe_fields([&](Visitor& v) { visit(v, none); }, "").front().type, "path");
}

}  // namespace
}  // namespace gallop::config
