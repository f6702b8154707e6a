#include "gallop/data/text.h"

#include "gallop/data/readers.h"
#include "unit/data/expect_error.h"
#include "unit/data/format_files.h"

namespace gallop::data {
namespace {

std::string decoded(const TextSet& text) {
  std::string all;
  for (const int32_t token : text.tokens) all += text.vocabulary[static_cast<size_t>(token)];
  return all;
}

std::unique_ptr<TextSet> characters(const std::string& content) {
  return std::move(tokenize_characters({{content, "x.txt"}})[0]);
}

TEST(Text, TakesCharactersSortedByCodePoint) {
  const std::string content = "bä\n漢a😀b";
  const auto text = characters(content);
  EXPECT_EQ(text->vocabulary, (std::vector<std::string>{"\n", "a", "b", "ä", "漢", "😀"}));
  EXPECT_EQ(text->tokens, (std::vector<int32_t>{2, 3, 0, 4, 1, 5, 2}));
  EXPECT_EQ(decoded(*text), content);
}

TEST(Text, TakesTheSmallestAndLargestCodePointOfEachLength) {
  std::string content(
      "\x01\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf");
  content += "\xed\x9f\xbf\xee\x80\x80";
  content += '\0';
  const auto text = characters(content);
  EXPECT_EQ(text->tokens.size(), 11u);
  EXPECT_EQ(decoded(*text), content);
}

TEST(Text, RefusesWhatIsNotUtf8) {
  for (const std::string wrong : {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80",
                                  "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
                                  "\xff", "\xc3", "\xe6\xbc", "\xf0\x9f\x98", "\xc3("}) {
    const std::string message = data_error([&] { characters("ab" + wrong); });
    EXPECT_TRUE(contains(message, "x.txt: not UTF-8 at byte 2 (0x"));
    EXPECT_TRUE(contains(message, "data.unit=bytes"));
  }
}

TEST(Text, TakesBytes) {
  const std::string content("a\xff\0b", 4);
  const auto text = std::move(tokenize_bytes({{content, "x"}})[0]);
  EXPECT_EQ(text->tokens, (std::vector<int32_t>{97, 255, 0, 98}));
  EXPECT_EQ(text->vocabulary.size(), 256u);
  EXPECT_EQ(decoded(*text), content);
}

TEST(Text, ReadsOneFileOrAFolderWithOneVocabulary) {
  const TestFolder folder;
  folder.add("train.txt", "abc");
  folder.add("valid.txt", "cd");
  const auto one = read_text({}, {.path = folder.name() + "/train.txt"});
  EXPECT_EQ(one->train->vocabulary.size(), 3u);
  EXPECT_EQ(one->validation, nullptr);
  const auto parts = read_text({}, {.path = folder.name()});
  EXPECT_EQ(parts->train->vocabulary, (std::vector<std::string>{"a", "b", "c", "d"}));
  EXPECT_EQ(parts->validation->vocabulary, parts->train->vocabulary);
  EXPECT_EQ(decoded(*parts->validation), "cd");
  EXPECT_EQ(parts->test, nullptr);
  EXPECT_EQ(parts->files.size(), 2u);
  EXPECT_EQ(read_text({.unit = "bytes"}, {.path = folder.name()})->validation->tokens[1], 'd');
}

TEST(Text, SaysWhatIsWrongWithItsFiles) {
  const TestFolder folder;
  const auto error = [&](const std::string& path) {
    return data_error([&] { read_text({}, {.path = path}); });
  };
  EXPECT_TRUE(contains(error(folder.name()), folder.name() + ": has no train.txt"));
  folder.add("train.txt", "");
  EXPECT_TRUE(contains(error(folder.name()), "train.txt: the file is empty"));
  EXPECT_TRUE(contains(error(folder.name() + "/none.txt"), "none of these exists"));
  folder.add("val.txt", "a");
  folder.add("valid.txt", "a");
  EXPECT_TRUE(
      contains(error(folder.name()), "val.txt and valid.txt both name the validation split"));
}

}  // namespace
}  // namespace gallop::data
