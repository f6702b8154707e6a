#include "gallop/base/text.h"

#include <gtest/gtest.h>

namespace gallop {
namespace {

TEST(NearestName, FindsTypingMistakesAndNothingElse) {
  const std::vector<std::string> names{"momentum", "lr", "weight_decay", "nesterov"};
  EXPECT_EQ(nearest_name("momentun", names), "momentum");
  EXPECT_EQ(nearest_name("weigth_decay", names), "weight_decay");
  EXPECT_EQ(nearest_name("rl", names), "lr");
  EXPECT_EQ(nearest_name("batch", names), "");
}

TEST(Format, CountsBytesAndDurations) {
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

TEST(Printable, RemovesWhatCouldSteerATerminal) {
  EXPECT_EQ(printable("a\x1b[2Jb\n"), "a?[2Jb?");
  EXPECT_EQ(printable("größe"), "größe");
}

TEST(JoinNames, ReadsAsASentence) {
  EXPECT_EQ(join_names({}), "");
  EXPECT_EQ(join_names({"a"}), "a");
  EXPECT_EQ(join_names({"a", "b", "c"}), "a, b or c");
}

TEST(MatchesPattern, TakesStarsAndQuestionMarks) {
  EXPECT_TRUE(matches_pattern("layer1.0.bias", "*.bias"));
  EXPECT_TRUE(matches_pattern("layer1.0.bias", "layer?.*.bias"));
  EXPECT_TRUE(matches_pattern("abcabd", "*ab?"));
  EXPECT_TRUE(matches_pattern("", "*"));
  EXPECT_FALSE(matches_pattern("bias", "*.bias"));
  EXPECT_FALSE(matches_pattern("layer1.0.bias.x", "*.bias"));
  EXPECT_FALSE(matches_pattern("a", "??"));
  EXPECT_FALSE(matches_pattern("a", ""));
}

TEST(XmlText, HasNoMarkupAndNoControlCharacters) {
  EXPECT_EQ(xml_text("a<b> & \"c\"\x1b é"), "a&lt;b&gt; &amp; &quot;c&quot;? é");
}

}  // namespace
}  // namespace gallop
