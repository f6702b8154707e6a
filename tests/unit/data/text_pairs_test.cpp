#include "gallop/data/text_pairs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/data/data_config.h"
#include "gallop/data/loader.h"
#include "gallop/data/quality/data_quality.h"
#include "gallop/data/report.h"
#include "gallop/data/text_columns.h"
#include "gallop/data/tokenizer.h"
#include "unit/config/component_of.h"
#include "unit/data/data_folder.h"
#include "unit/data/expect_error.h"
#include "unit/data/text_files.h"

namespace gallop::data {
namespace {

using Names = std::vector<std::string>;
using Tokens = std::vector<int64_t>;

class TextPairsTest : public DataFolder {
 protected:
  std::unique_ptr<DataModule> open(const TextPairsConfig& texts = {}) const {
    return open_text_pairs(texts, context());
  }
  Names columns_of(const std::string& file, const std::string& content,
                   const TextPairsConfig& texts = {}) {
    config.path = folder.add(file, content).string();
    return open(texts)->signature.columns;
  }
  std::string error_of(const std::string& file, const std::string& content,
                       const TextPairsConfig& texts = {}) {
    return data_error([&] { columns_of(file, content, texts); });
  }
};

TEST_F(TextPairsTest, ReadsCsvTsvAndJsonLinesAlike) {
  const char* const files[][2] = {
      {"a.csv", "\xEF\xBB\xBFid,answer,question\n1,a,ba\n2,b,aab\n"},
      {"a.tsv", "answer\tid\tquestion\na\t1\tba\nb\t2\taab\n"},
      {"a.jsonl",
       "\n{\"question\": \"ba\", \"answer\": \"a\", \"id\": 1}\n"
       "{\"answer\": \"b\", \"question\": \"aab\"}\n"},
  };
  for (const auto& [name, content] : files) {
    config.path = folder.add(name, content).string();
    const auto data = open();
    EXPECT_EQ(data->signature.kind, "text");
    EXPECT_EQ(data->signature.task, "pair-embedding");
    EXPECT_EQ(data->signature.unit, "characters");
    EXPECT_EQ(data->signature.views, 2);
    EXPECT_TRUE(data->signature.separate_texts);
    EXPECT_EQ(data->signature.columns, (Names{"question", "answer"}));
    EXPECT_EQ(vocabulary_of(data->signature), (Names{"[unknown character]", "a", "b"}));
    ASSERT_EQ(data->train->size(), 2) << name;
    Loader loader(*data->train, {.batch = 2, .shuffle = false}, {});
    const auto batch = loader.next();
    EXPECT_EQ(batch->input().sizes(), (Tokens{2, 16, 2}));
    // The tokens of both texts are interleaved, with padding after the shorter one.
    EXPECT_EQ(values_of(batch->input().narrow(1, 0, 4)),
              (Tokens{2, 1, 1, -1, -1, -1, -1, -1, 1, 2, 1, -1, 2, -1, -1, -1}));
    EXPECT_EQ(batch->target().sum().item<float>(), 2);
    EXPECT_TRUE(data->train->describe(1).ends_with(":3"));
  }
}

TEST_F(TextPairsTest, ChoosesTheColumns) {
  EXPECT_EQ(columns_of("a.csv", "sentence2,score,sentence1\na,1,b\n"),
            (Names{"sentence1", "sentence2"}));
  EXPECT_EQ(columns_of("a.csv", "text_a,text_b,text\na,b,c\n"), (Names{"text_a", "text_b"}));
  EXPECT_EQ(columns_of("a.tsv", "query\tpositive\tn\na\tb\tc\n"), (Names{"query", "positive"}));
  EXPECT_EQ(columns_of("a.csv", "title,body\na,b\n"), (Names{"title", "body"}));
  EXPECT_EQ(columns_of("a.jsonl", "{\"title\": \"a\", \"body\": \"b\"}\n"),
            (Names{"title", "body"}));
  EXPECT_EQ(columns_of("a.csv", "question,answer,title\na,b,c\n", {.texts = {"title", "answer"}}),
            (Names{"title", "answer"}));
  EXPECT_TRUE(contains(error_of("a.csv", "id,title,body\n1,a,b\n"),
                       "a.csv: which two columns are the texts of a pair? It has id, title and "
                       "body; name two, such as data.texts=[question, answer]"));
  EXPECT_TRUE(contains(error_of("a.csv", "title,body\na,b\n", {.texts = {"titel", "body"}}),
                       "did you mean 'title'?"));
  EXPECT_THROW(columns_of("a.csv", "title,body\na,b\n", {.texts = {"title"}}), UsageError);
  EXPECT_THROW(columns_of("a.csv", "title,body\na,b\n", {.texts = {"title", "title"}}), UsageError);
  EXPECT_TRUE(contains(error_of("a.jsonl", "[1]\nno\n"), "a.jsonl:1:1: is not a JSON object"));
}

TEST_F(TextPairsTest, NamesWhatIsBrokenOrCountsIt) {
  EXPECT_TRUE(contains(error_of("a.csv", "question,answer\na,b\na,\n"),
                       "a.csv:3: column 'answer': the text is empty"));
  EXPECT_TRUE(contains(error_of("a.csv", "question,answer\n\xFF,b\n"),
                       "a.csv:2: column 'question': not UTF-8 at byte 0 (0xff)"));
  EXPECT_TRUE(contains(error_of("a.csv", "question,answer\n"), "has no rows"));
  config.on_error = "skip";
  folder.add("train.csv", "question,answer\na,b\na,\n,b\nc,d,e\nc,a\n");
  folder.add("test.jsonl", "{\"question\": \"a\", \"answer\": \"z\"}\n{\"question\": \"a\"}\n");
  config.path = folder.name();
  const auto data = open();
  EXPECT_EQ(data->train->size(), 2);
  EXPECT_EQ(data->test->size(), 1);
  EXPECT_EQ(vocabulary_of(data->signature), (Names{"[unknown character]", "a", "b", "c"}));
  std::string notes;
  for (const std::string& note : data->notes) notes += note + "\n";
  for (const char* reason :
       {"1 skipped (line with another number of fields)", "3 skipped (unusable text)"}) {
    EXPECT_TRUE(contains(notes, reason)) << notes;
  }
}

TEST_F(TextPairsTest, CutsBothTextsAndHoldsPairsBack) {
  config.path = folder.add("a.csv", "question,answer\naaaaaa,b\nb,aaaaaaa\na,b\nb,a\n").string();
  config.context = 4;
  config.validation = 0.25;
  config.module = config::component_of(modules, "text-pairs");
  const auto data = open_data(config, modules, augmentations, options);
  EXPECT_TRUE(data->signature.padded);
  EXPECT_EQ(data->train->size(), 3);
  EXPECT_EQ(data->validation->size(), 1);
  ASSERT_EQ(data->notes.size(), 1u);
  EXPECT_TRUE(contains(data->notes[0], "2 of 8 texts have more than data.context=4 tokens"));
}

TEST_F(TextPairsTest, ReportsItsSplits) {
  folder.add("train.csv", "question,answer\na b,b\nc,a\n");
  folder.add("test.csv", "question,answer\na,b\n");
  config.path = folder.name();
  TextPairsConfig words;
  words.tokenizer.unit = "words";
  EXPECT_EQ(to_text(open(words)->inspect(1)),
            "split  pairs  tokens\n"
            "train      2       5\n"
            "test       1       2\n\n"
            "vocabulary  4 tokens: [unknown word] a b c\n\n"
            "training batches of 128: 90.6 % of the tokens are padding\n");
}

}  // namespace
}  // namespace gallop::data
