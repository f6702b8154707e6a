#include <gtest/gtest.h>

#include "gallop/config/resolve.h"

namespace gallop::config {
namespace {

struct Item {
  std::string match;
  double factor = 1;
  std::optional<double> decay;
};
void visit(Visitor& v, Item& c) {
  v.field({.name = "match", .help = "names"}, c.match);
  v.field({.name = "factor", .help = "of the rate", .min = 0}, c.factor);
  v.field({.name = "decay", .help = "own decay"}, c.decay);
}

struct Holder {
  std::vector<Item> items{{.match = "preset"}};
};
void visit(Visitor& v, Holder& c) { v.list({.name = "items", .help = "all of them"}, c.items); }

std::string read(const Node& root, Holder& holder) {
  Problems problems;
  read_fields(
      root, [&](Visitor& v) { visit(v, holder); }, problems);
  std::string text;
  for (const Problem& problem : problems.list()) {
    text += problem.origin.describe() + " " + problem.key + ": " + problem.message + "\n";
  }
  return text;
}

struct Ranges {
  std::vector<double> degrees = {-1, 1};
  std::vector<double> scale = {1, 2};
};
void visit(Visitor& v, Ranges& c) {
  v.field({.name = "degrees", .help = "of rotation", .min = 0, .or_item = true}, c.degrees);
  v.field({.name = "scale", .help = "of size"}, c.scale);
}

TEST(ListOfNumbers, MayBeWrittenAsItsOnlyItemWhereAllowed) {
  const auto read_ranges = [](const char* text, Ranges& ranges) {
    Problems problems;
    read_fields(
        parse_yaml(text, "r.yaml"), [&](Visitor& v) { visit(v, ranges); }, problems);
    return problems.list().empty() ? std::string() : problems.list()[0].message;
  };
  Ranges ranges;
  EXPECT_EQ(read_ranges("{degrees: 10}", ranges), "");
  EXPECT_EQ(ranges.degrees, (std::vector<double>{10}));
  EXPECT_EQ(read_ranges("{degrees: [3, 4]}", ranges), "");
  EXPECT_EQ(ranges.degrees, (std::vector<double>{3, 4}));
  EXPECT_NE(read_ranges("{degrees: -10}", ranges), "");
  EXPECT_NE(read_ranges("{degrees: ten}", ranges), "");
  EXPECT_NE(read_ranges("{degrees: {a: 1}}", ranges).find("must be a list of numbers"),
            std::string::npos);
  EXPECT_NE(read_ranges("{scale: 2}", ranges).find("must be a list of numbers"), std::string::npos);
  const auto help = describe_fields([&](Visitor& v) { visit(v, ranges); }, "");
  EXPECT_EQ(help[0].type, "one item or a list of numbers");
  EXPECT_EQ(help[1].type, "list of numbers");
}

TEST(ListOfMaps, IsReadItemByItem) {
  Holder holder;
  Node root = parse_yaml("items:\n- {match: a, factor: 2}\n- {match: b, decay: 0}\n", "r.yaml");
  Problems problems;
  apply_override(root, "items.1.factor", parse_override_value("3", "items.1.factor"), problems);
  EXPECT_EQ(read(root, holder), "");
  ASSERT_EQ(holder.items.size(), 2u);
  EXPECT_EQ(holder.items[0].factor, 2);
  EXPECT_EQ(holder.items[0].decay, std::nullopt);
  EXPECT_EQ(holder.items[1].match, "b");
  EXPECT_EQ(holder.items[1].factor, 3);
  EXPECT_EQ(holder.items[1].decay, 0);
}

TEST(ListOfMaps, KeepsItsDefaultAndMayBeEmpty) {
  Holder holder;
  EXPECT_EQ(read(parse_yaml("{}", "r.yaml"), holder), "");
  EXPECT_EQ(holder.items.size(), 1u);
  EXPECT_EQ(read(parse_yaml("items: []", "r.yaml"), holder), "");
  EXPECT_TRUE(holder.items.empty());
}

TEST(ListOfMaps, ReportsEveryMistakeWithItsPosition) {
  Holder holder;
  const std::string message =
      read(parse_yaml("items:\n- {mach: a}\n- {factor: -1}\n- 7\n", "r.yaml"), holder);
  EXPECT_NE(message.find("r.yaml:2:4 items.0.mach: unknown key 'mach'; did you mean 'match'?"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("items.1.factor: must be a number of at least 0"), std::string::npos)
      << message;
  EXPECT_NE(message.find("items.2: must be a map of options, not '7'"), std::string::npos)
      << message;
  EXPECT_NE(read(parse_yaml("items: {a: 1}", "r.yaml"), holder).find("must be a list of maps"),
            std::string::npos);
}

TEST(ListOfMaps, RoundTripsAndIsDescribed) {
  Holder holder, again;
  const Node root = parse_yaml("items: [{match: a*, decay: 0.5}]", "r.yaml");
  EXPECT_EQ(read(root, holder), "");
  const auto visit_holder = [&](Visitor& v) { visit(v, holder); };
  const Node written = write_fields(visit_holder, root);
  EXPECT_EQ(read(parse_yaml(to_yaml(written, true), "again.yaml"), again), "");
  ASSERT_EQ(again.items.size(), 1u);
  EXPECT_EQ(again.items[0].match, "a*");
  EXPECT_EQ(again.items[0].decay, 0.5);
  const auto help = describe_fields(visit_holder, "");
  ASSERT_EQ(help.size(), 4u);
  EXPECT_EQ(help[0].type, "list of {match, factor, decay}");
  EXPECT_EQ(help[1].key, "items.N.match");
}

}  // namespace
}  // namespace gallop::config
