#include "gallop/data/documents.h"

#include <gtest/gtest.h>

#include "gallop/data/data_config.h"
#include "gallop/data/text_samples.h"
#include "gallop/data/tokenizer.h"
#include "unit/base/error_of.h"
#include "unit/data/data_folder.h"
#include "unit/data/expect_error.h"

namespace gallop::data {
namespace {

using Tokens = std::vector<int64_t>;

// The tokens and the labels of a sample.
std::pair<Tokens, Tokens> row_of(const Samples& samples, int64_t index) {
  const auto context = static_cast<size_t>(samples.fields().input().shape.sizes[0]);
  Tokens tokens(context), labels(context);
  void* const rows[] = {tokens.data(), labels.data()};
  int64_t lengths[] = {-1, -1};
  EXPECT_TRUE(samples.fill(index, 0, SampleRow(rows, lengths), *samples.make_scratch()));
  EXPECT_EQ(lengths[0], lengths[1]);
  tokens.resize(static_cast<size_t>(lengths[0]));
  labels.resize(static_cast<size_t>(lengths[1]));
  return {tokens, labels};
}

class DocumentsTest : public DataFolder {
 protected:
  std::unique_ptr<DataModule> open(const DocumentsConfig& documents = {}) const {
    return open_documents(documents, context());
  }
};

TEST_F(DocumentsTest, AreBetweenTwoEndTokens) {
  config.path = folder.add("a.csv", "text,id\nab,1\nb,2\n").string();
  const auto data = open();
  EXPECT_EQ(data->signature.task, "causal-lm");
  EXPECT_TRUE(data->signature.separate_texts);
  EXPECT_EQ(data->signature.end_token, to_hex(kEndToken));
  EXPECT_EQ(vocabulary_of(data->signature),
            (std::vector<std::string>{"[unknown character]", "a", "b", kEndToken}));
  ASSERT_EQ(data->train->size(), 2);
  EXPECT_EQ(row_of(*data->train, 0), (std::pair<Tokens, Tokens>{{3, 1, 2}, {1, 2, 3}}));
  EXPECT_EQ(row_of(*data->train, 1), (std::pair<Tokens, Tokens>{{3, 2}, {2, 3}}));
  EXPECT_TRUE(data->train->describe(1).ends_with("a.csv:3"));
  EXPECT_FALSE(data->train->every_target_counts());
  EXPECT_EQ(data->train->fields().input().padding, static_cast<double>(kPaddingToken));
  EXPECT_EQ(data->train->fields().target().padding, static_cast<double>(kIgnoredTarget));
}

// Every token is predicted once, from the one before.
TEST_F(DocumentsTest, AreSplitIfTheyAreLong) {
  config.path = folder.add("a.jsonl", "{\"text\": \"abcde\"}\n{\"text\": \"abc\"}\n").string();
  config.context = 4;
  const auto data = open();
  ASSERT_EQ(data->train->size(), 3);
  EXPECT_EQ(row_of(*data->train, 0), (std::pair<Tokens, Tokens>{{6, 1, 2, 3}, {1, 2, 3, 4}}));
  EXPECT_EQ(row_of(*data->train, 1), (std::pair<Tokens, Tokens>{{4, 5}, {5, 6}}));
  EXPECT_EQ(row_of(*data->train, 2), (std::pair<Tokens, Tokens>{{6, 1, 2, 3}, {1, 2, 3, 6}}));
  EXPECT_TRUE(data->train->describe(1).ends_with("a.jsonl:1"));
  ASSERT_EQ(data->notes.size(), 1U);
  EXPECT_TRUE(contains(data->notes[0], "1 of 2 documents have more than data.context=4 tokens"));
}

TEST_F(DocumentsTest, HaveTheVocabularyOfTheTrainingPartAndOfATrainedModel) {
  folder.add("train.csv", "text\nthe <|endoftext|> cat\n");
  folder.add("val.csv", "text\nthe dog\n");
  config.path = folder.name();
  const DocumentsConfig words{.tokenizer = {.unit = "words"}};
  const auto data = open(words);
  // As a word of the texts, it is the end token as well.
  EXPECT_EQ(vocabulary_of(data->signature),
            (std::vector<std::string>{"[unknown word]", kEndToken, "cat", "the"}));
  EXPECT_EQ(row_of(*data->validation, 0), (std::pair<Tokens, Tokens>{{1, 3, 0}, {3, 0, 1}}));

  const TestFolder other;
  config.path = other.add("a.csv", "text\na dog\n").string();
  options.trained = &data->signature;
  const auto later = open(words);
  EXPECT_EQ(later->signature.vocabulary, data->signature.vocabulary);
  EXPECT_EQ(row_of(*later->train, 0), (std::pair<Tokens, Tokens>{{1, 0, 0}, {0, 0, 1}}));
}

TEST_F(DocumentsTest, RejectsMistakes) {
  config.path = folder.add("a.csv", "text\nab\n\"\"\n").string();
  EXPECT_TRUE(contains(data_error([&] { open(); }), "a.csv:3: the text is empty"));
  EXPECT_TRUE(contains(data_error([&] { open({.text = "story"}); }), "story"));
  config.on_error = "skip";
  EXPECT_EQ(open()->train->size(), 1);
  config.task = "masked-lm";
  EXPECT_TRUE(contains(error_of([&] { open(); }), "causal-lm"));
}

}  // namespace
}  // namespace gallop::data
