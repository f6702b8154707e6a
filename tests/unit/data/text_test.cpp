#include <gtest/gtest.h>

#include <fstream>

#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/data/readers.h"

namespace gallop::data {
namespace {

class ReadText : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  fs::path write(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return folder_ / name;
  }
  std::unique_ptr<Parts> read(const fs::path& path, const std::string& unit = "characters") {
    return read_text({.unit = unit}, {.path = path.string()});
  }
  fs::path folder_;
};

TEST_F(ReadText, CharactersAreSortedCodePoints) {
  const auto parts = read(write("a.txt", "b\u00e4a\u20acb\U0001F600\n"));
  const TextSet& text = *parts->train_text;
  EXPECT_EQ(text.vocabulary, (std::vector<std::string>{"\n", "a", "b", "\u00e4", "\u20ac", "\U0001F600"}));
  EXPECT_EQ(text.tokens, (std::vector<int32_t>{2, 3, 1, 4, 2, 5, 0}));
  EXPECT_FALSE(parts->validation_text);
}

TEST_F(ReadText, BytesTakeAnything) {
  const auto parts = read(write("a.bin", std::string("\xff\x00z", 3)), "bytes");
  EXPECT_EQ(parts->train_text->tokens, (std::vector<int32_t>{255, 0, 'z'}));
  EXPECT_EQ(parts->train_text->vocabulary.size(), 256u);
}

TEST_F(ReadText, AFolderHasPartsThatShareOneVocabulary) {
  write("train.txt", "abc");
  write("valid.txt", "cd");
  write("test.txt", "e");
  const auto parts = read(folder_);
  EXPECT_EQ(parts->validation_text->tokens, (std::vector<int32_t>{2, 3}));
  EXPECT_EQ(parts->test_text->vocabulary, parts->train_text->vocabulary);
  EXPECT_EQ(parts->train_text->vocabulary.size(), 5u);
}

TEST_F(ReadText, InvalidUtf8IsNamedWithItsPlace) {
  for (const char* bad : {"ab\x80", "ab\xc0\xaf", "ab\xed\xa0\x80", "ab\xe2\x82", "ab\xf5\x80\x80\x80"}) {
    try {
      read(write("a.txt", bad));
      ADD_FAILURE() << bad;
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find("byte 2"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("data.unit=bytes"), std::string::npos);
    }
  }
}

TEST_F(ReadText, EmptyAndMissingFilesAreErrors) {
  EXPECT_THROW(read(write("a.txt", "")), DataError);
  EXPECT_THROW(read(folder_ / "none.txt"), DataError);
  EXPECT_THROW(read(folder_), DataError);
}

}  // namespace
}  // namespace gallop::data
