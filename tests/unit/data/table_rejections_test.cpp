// What tables of CSV and JSON Lines reject or skip, with its line and column.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "gallop/data/skips.h"
#include "gallop/data/table.h"
#include "unit/data/expect_error.h"
#include "unit/data/table_folder.h"

namespace gallop::data {
namespace {

// Advice is given once, and long values are shortened.
TEST_F(Tables, MessagesAreShort) {
  std::string late = "x,y\n";
  for (int i = 0; i < 60; ++i)
    late += std::to_string(i % 7) + ".5," + std::to_string(i % 9) + ".25\n";
  const std::string wrong = late + std::string(100'000, 'x') + ",1.5\n";
  config.on_error = "stop";
  const std::string scanned = data_error([&] { open(wrong, {.target = "y"}); });
  EXPECT_TRUE(contains(scanned, "is '" + std::string(80, 'x') + "...', but nearly all"));
  EXPECT_LT(scanned.size(), 500u);
  const std::string read = data_error([&] { open(wrong, {.target = "y", .numbers = {"x"}}); });
  EXPECT_LT(read.size(), 500u);
  EXPECT_EQ(read.find("data.on_error"), read.rfind("data.on_error"));
  EXPECT_TRUE(contains(read, "leave such items out with data.on_error=skip"));
  config.on_error = "skip";
  const auto skipped = open(wrong, {.target = "y"});
  EXPECT_TRUE(contains(skipped->notes.back(), "1 skipped (value that is not a number)"));
  EXPECT_EQ(skipped->notes.back().find("data.on_error"), std::string::npos);
  // Cut between characters of UTF-8.
  const std::string umlauts = [&] {
    std::string text = late + "x";
    for (int i = 0; i < 100; ++i) text += "\xC3\xA4";
    return text + ",1.5\n";
  }();
  config.on_error = "stop";
  EXPECT_TRUE(contains(data_error([&] { open(umlauts, {.target = "y"}); }), "\xC3\xA4...', but"));
}

TEST_F(Tables, SayWhyNoRowIsLeft) {
  config.on_error = "skip";
  EXPECT_TRUE(
      contains(data_error([&] { open("x,y\na,1.5\nb,2.5\n", {.target = "y", .numbers = {"x"}}); }),
               "a.csv: has no usable rows; 2 skipped (value that is not a number), the first: "));
}

TEST_F(Tables, RejectionsNameLineAndColumn) {
  EXPECT_TRUE(contains(error_of("a,b,a\n1,2,3\n"), "a.csv:1:5: two columns are named 'a'"));
  EXPECT_TRUE(contains(error_of("a,,b\n1,2,3\n"), "a.csv:1:3: column 2 has no name"));
  EXPECT_TRUE(contains(error_of("a,b\n1,2\n1,2,3\n"), "a.csv:3:5: 3 fields"));
  EXPECT_TRUE(contains(error_of("a,b\n1,2\n1\n"), "a.csv:3:1: 1 fields"));
  EXPECT_TRUE(
      contains(error_of("a,b\n1,2\n3,\"open\n5,6\n"), "a.csv:3:3: this quote is not closed"));
  EXPECT_TRUE(contains(error_of("a,b\n\"x\"y,2\n"), "a.csv:2:4: text follows"));
  EXPECT_TRUE(contains(error_of("a,b\n1,caf\xE9\n"), "a.csv:2:6: not UTF-8 (byte 0xe9)"));
  EXPECT_TRUE(contains(error_of(std::string("a,b\n1,\0\n", 8)), "a.csv:2:3: a zero byte"));
  EXPECT_TRUE(contains(error_of("\xFF\xFEx"), "UTF-16"));
  EXPECT_TRUE(contains(error_of("a,b\n"), "has no rows"));
  EXPECT_TRUE(contains(error_of(""), "the file is empty"));
}

TEST_F(Tables, OnlyTheFirstSkippedRowOfAReasonIsDescribed) {
  SkipPolicy skips(/*skips=*/true);
  int described = 0;
  for (int i = 0; i < 3; ++i) {
    skips.add("bad row", [&] { return "row " + std::to_string(++described); });
  }
  EXPECT_EQ(described, 1);
  ASSERT_EQ(skips.counts().size(), 1u);
  EXPECT_EQ(skips.counts()[0].count, 3);
  EXPECT_EQ(skips.counts()[0].first, "row 1");
  TableReader file({add("x,y\n1,2\n1,2,3\na,2\n4\nb,2\n")}, {});
  SkipPolicy of_file(/*skips=*/true);
  EXPECT_EQ(file.read(std::vector<ColumnType>(2), of_file).rows(), 1);
  ASSERT_EQ(of_file.counts().size(), 2u);
  EXPECT_EQ(of_file.counts()[0].count, 2);
  EXPECT_TRUE(contains(of_file.counts()[0].first, "a.csv:3:5: 3 fields in line 3"));
  EXPECT_EQ(of_file.counts()[1].count, 2);
  EXPECT_TRUE(contains(of_file.counts()[1].first, "a.csv:4:1: column 'x' is 'a'"));
}

TEST_F(Tables, RejectionsOfJsonLinesNameTheLine) {
  const auto error_of_json = [&](const std::string& text) {
    return data_error([&] { read_file(add(text, "a.jsonl")); });
  };
  EXPECT_TRUE(contains(error_of_json("{\"a\": 1}\n{\"a\": 2,}\n"), "a.jsonl:2:9: is not JSON"));
  EXPECT_TRUE(contains(error_of_json("{\"a\": 1}\n[2]\n"), "a.jsonl:2:1: is not a JSON object"));
  EXPECT_TRUE(
      contains(error_of_json("{\"a\": {\"b\": 1}}\n"), "a.jsonl:1: the value of 'a' is an object"));
  EXPECT_TRUE(contains(error_of_json("{\"a\": [[1]]}\n"), "a.jsonl:1: the value of 'a'"));
  EXPECT_TRUE(contains(error_of_json("{\"a\": [1, 2]}\n"),
                       "a.jsonl:1: column 'a' is a list, which is not a table value"));
  EXPECT_TRUE(contains(error_of_json("{}\n"), "no line that is a JSON object with keys"));
  // Digits that a floating-point number cannot hold are kept.
  EXPECT_EQ(
      read_file(add("{\"id\": 123456789012345678901}\n{\"id\": 9007199254740993}\n", "b.jsonl"))
          .columns[0]
          .values,
      (std::vector<std::string>{"123456789012345678901", "9007199254740993"}));
}

}  // namespace
}  // namespace gallop::data
