#include "gallop/base/text.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace gallop {
namespace {

TEST(NearestName, FindsOnlyTypos) {
  const std::vector<std::string> names{"momentum", "lr", "weight_decay", "nesterov"};
  EXPECT_EQ(nearest_name("momentun", names), "momentum");
  EXPECT_EQ(nearest_name("weigth_decay", names), "weight_decay");
  EXPECT_EQ(nearest_name("rl", names), "lr");
  EXPECT_EQ(nearest_name("batch", names), "");
}

TEST(Format, FormatsBytesAndDurations) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1234567), "1,234,567");
  EXPECT_EQ(format_count(-123456), "-123,456");
  EXPECT_EQ(format_bytes(1023), "1023 bytes");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_duration(0.25), "0.25 s");
  EXPECT_EQ(format_duration(62), "1:02");
  EXPECT_EQ(format_duration(3725), "1:02:05");
}

TEST(Printable, RemovesTerminalControlSequences) {
  EXPECT_EQ(printable("a\x1b[2Jb\n"), "a?[2Jb?");
  EXPECT_EQ(printable("größe"), "größe");
  EXPECT_EQ(printable("a\xc2\x9b\x32J \xc2\xa0 \xe2\x82\x9b"), "a??2J \xc2\xa0 \xe2\x82\x9b");
}

TEST(ParseNumber, ParsesTheWholeText) {
  EXPECT_EQ(parse_number<int>("0"), 0);
  EXPECT_EQ(parse_number<int>("007"), 7);
  EXPECT_EQ(parse_number<int>("-12"), -12);
  EXPECT_EQ(parse_number<int64_t>("-9223372036854775808"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(parse_number<uint64_t>("18446744073709551615"), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(parse_number<double>("-2.5e-3"), -0.0025);
  EXPECT_EQ(parse_number<double>(".5"), 0.5);
  EXPECT_EQ(parse_number<double>("-inf"), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(*parse_number<double>("nan")));
  EXPECT_EQ(parse_number<int>(std::string_view("123").substr(0, 2)), 12);
}

TEST(ParseNumber, RejectsOtherTexts) {
  for (const char* text : {"", " ", "-", "+1", " 1", "1 ", "1\n", "1x", "x", "0x10", "1,000", "--1",
                           "1.5", "1e3", "99999999999"}) {
    EXPECT_FALSE(parse_number<int>(text)) << text;
  }
  EXPECT_FALSE(parse_number<uint32_t>("-0"));
  EXPECT_FALSE(parse_number<uint32_t>("4294967296"));
  for (const char* text : {"", "+1.0", " 1.0", "1.0 ", "1.0f", "1e999", "0x1p3", ".", "e5"}) {
    EXPECT_FALSE(parse_number<double>(text)) << text;
  }
  EXPECT_FALSE(parse_number<int>(std::string_view("1\0", 2)));
}

TEST(JoinNames, JoinsWithCommasAndAnd) {
  EXPECT_EQ(join_names({}), "");
  EXPECT_EQ(join_names({"a"}), "a");
  EXPECT_EQ(join_names({"a", "b", "c"}), "a, b or c");
}

TEST(MatchesPattern, SupportsStarsAndQuestionMarks) {
  EXPECT_TRUE(matches_pattern("layer1.0.bias", "*.bias"));
  EXPECT_TRUE(matches_pattern("layer1.0.bias", "layer?.*.bias"));
  EXPECT_TRUE(matches_pattern("abcabd", "*ab?"));
  EXPECT_TRUE(matches_pattern("", "*"));
  EXPECT_FALSE(matches_pattern("bias", "*.bias"));
  EXPECT_FALSE(matches_pattern("layer1.0.bias.x", "*.bias"));
  EXPECT_FALSE(matches_pattern("a", "??"));
  EXPECT_FALSE(matches_pattern("a", ""));
}

TEST(XmlText, EscapesMarkupAndControlCharacters) {
  EXPECT_EQ(xml_text("a<b> & \"c\"\x1b é"), "a&lt;b&gt; &amp; &quot;c&quot;? é");
}

TEST(Text, IsWrappedAtSpaces) {
  EXPECT_EQ(wrapped("one two three four", 9, "  "), "one two\n  three\n  four\n");
  EXPECT_EQ(wrapped("one two three", 13), "one two three\n");
  EXPECT_EQ(wrapped("one two three", 0, "  "), "one two three\n");
  EXPECT_EQ(wrapped("indivisible", 4), "indivisible\n");
  EXPECT_EQ(wrapped("", 4), "\n");
}

}  // namespace
}  // namespace gallop
