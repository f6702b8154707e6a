#include "gallop/data/labeled_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/data/data_config.h"
#include "gallop/data/loader.h"
#include "gallop/data/report.h"
#include "gallop/data/text_columns.h"
#include "gallop/data/tokenizer.h"
#include "unit/data/data_folder.h"
#include "unit/data/expect_error.h"
#include "unit/data/text_files.h"

namespace gallop::data {
namespace {

using Tokens = std::vector<int64_t>;

class LabeledTextTest : public DataFolder {
 protected:
  std::unique_ptr<DataModule> open(const LabeledTextConfig& texts = {}) const {
    return open_labeled_text(texts, context());
  }
  std::string error_of(const std::string& file, const std::string& content,
                       const LabeledTextConfig& texts = {}) {
    config.path = folder.add(file, content).string();
    return data_error([&] { open(texts); });
  }
};

TEST_F(LabeledTextTest, ReadsCsvTsvAndJsonLinesAlike) {
  const char* const files[][2] = {
      {"a.csv", "\xEF\xBB\xBFlabel,text\nneg,ba\npos,\"a\"\"b\"\n"},
      {"a.tsv", "label\ttext\nneg\tba\npos\t\"a\"\"b\"\n"},
      {"a.jsonl",
       "{\"text\": \"ba\", \"label\": \"neg\"}\r\n\n{\"label\":\"pos\",\"text\":\"a\\\"b\"}"},
  };
  for (const auto& [name, content] : files) {
    config.path = folder.add(name, content).string();
    const auto data = open();
    EXPECT_EQ(data->signature.kind, "text");
    EXPECT_EQ(data->signature.task, "text-classification");
    EXPECT_EQ(data->signature.unit, "characters");
    EXPECT_TRUE(data->signature.separate_texts);
    EXPECT_EQ(data->signature.classes, (std::vector<std::string>{"neg", "pos"}));
    EXPECT_EQ(vocabulary_of(data->signature),
              (std::vector<std::string>{"[unknown character]", "\"", "a", "b"}));
    ASSERT_EQ(data->train->size(), 2) << name;
    EXPECT_EQ(row_of(*data->train, 0).tokens, (Tokens{3, 2}));
    EXPECT_EQ(row_of(*data->train, 0).label, 0);
    EXPECT_EQ(row_of(*data->train, 1).tokens, (Tokens{2, 1, 3}));
    EXPECT_EQ(row_of(*data->train, 1).label, 1);
    EXPECT_TRUE(data->train->every_target_counts());
    EXPECT_TRUE(data->train->describe(1).ends_with(name == std::string("a.jsonl") ? ":3" : ":3"));
  }
}

TEST_F(LabeledTextTest, TakesVocabularyAndClassesOfTheTrainingPart) {
  folder.add("train.csv", "text,label\naab,1\nb\xC3\xBC,0\n");
  folder.add("val.jsonl", "{\"text\": \"a\\u00fcz\", \"label\": 1}\n");
  config.path = folder.name();
  const auto data = open();
  EXPECT_EQ(data->signature.classes, (std::vector<std::string>{"0", "1"}));
  EXPECT_EQ(row_of(*data->validation, 0).tokens, (Tokens{1, 3, kUnknownToken}));
  EXPECT_EQ(row_of(*data->validation, 0).label, 1);
  EXPECT_EQ(data->test, nullptr);

  LabeledTextConfig rare;
  rare.tokenizer.min_count = 2;
  const auto fewer = open(rare);
  EXPECT_EQ(vocabulary_of(fewer->signature),
            (std::vector<std::string>{"[unknown character]", "a", "b"}));
  EXPECT_EQ(row_of(*fewer->train, 1).tokens, (Tokens{2, kUnknownToken}));
}

TEST_F(LabeledTextTest, SplitsBytesAndWords) {
  config.path = folder.add("a.csv", "text,label\n\" to  be\tor to\n\",x\n").string();
  LabeledTextConfig texts;
  texts.tokenizer.unit = "words";
  auto data = open(texts);
  EXPECT_EQ(vocabulary_of(data->signature),
            (std::vector<std::string>{"[unknown word]", "be", "or", "to"}));
  EXPECT_EQ(row_of(*data->train, 0).tokens, (Tokens{3, 1, 2, 3}));

  config.path = folder.add("b.csv", "text,label\n\xFF\x01,x\n").string();
  texts.tokenizer.unit = "bytes";
  data = open(texts);
  EXPECT_EQ(data->signature.vocabulary.size(), 257u);
  EXPECT_EQ(row_of(*data->train, 0).tokens, (Tokens{256, 2}));
  texts.tokenizer.min_count = 2;
  EXPECT_THROW(open(texts), UsageError);
}

TEST_F(LabeledTextTest, CutsAtTheContextAndPadsToTheLongestOfABatch) {
  config.path =
      folder.add("a.csv", "text,label\na,x\naaa,y\naaaaaaaaaaaaaaaaaaaa,x\naaaaa,y\n").string();
  config.context = 16;
  const auto data = open();
  ASSERT_EQ(data->notes.size(), 1u);
  EXPECT_TRUE(contains(data->notes[0], "1 of 4 texts have more than data.context=16 tokens"));
  EXPECT_EQ(row_of(*data->train, 2).tokens, Tokens(16, 1));
  Loader loader(*data->train, {.batch = 2, .shuffle = false}, {});
  // An eighth of the context is 2: batch lengths are multiples of 2.
  const auto first = loader.next();
  EXPECT_EQ(values_of(first->input()), (Tokens{1, -1, -1, -1, 1, 1, 1, -1}));
  EXPECT_EQ(values_of(first->target()), (Tokens{0, 1}));
  const auto second = loader.next();
  EXPECT_EQ(second->input().sizes(), (Tokens{2, 16}));
}

TEST_F(LabeledTextTest, NamesFileAndLineOfWhatIsBroken) {
  EXPECT_TRUE(contains(error_of("a.csv", "text,label\na,x\n,y\n"), "a.csv:3: the text is empty"));
  EXPECT_TRUE(contains(error_of("a.csv", "text,label\na,\n"), "a.csv:2: the label is empty"));
  EXPECT_TRUE(
      contains(error_of("a.csv", "text,label\na,\xFF\n"), "a.csv:2: the label is not UTF-8"));
  EXPECT_TRUE(contains(error_of("a.csv", "text,label\na,x,y\n"), "a.csv:2:5: 3 fields"));
  EXPECT_TRUE(contains(error_of("a.csv", "text,label\n\"a\nb\",x\na\xFF,x\n"),
                       "a.csv:4: not UTF-8 at byte 1 (0xff)"));
  EXPECT_TRUE(contains(error_of("a.csv", "text,lable\na,x\n"), "did you mean 'lable'?"));
  EXPECT_TRUE(contains(error_of("a.csv", "text,label\n"), "has no rows"));
  EXPECT_TRUE(contains(error_of("a.jsonl", "{\"text\": \"a\"}\n"),
                       "a.jsonl: has no column 'label'. Its columns: text"));
  EXPECT_TRUE(contains(error_of("a.jsonl", "\n{\"text\": [1], \"label\": 1}\n"),
                       "a.jsonl:2: the value of 'text' is a list"));
  EXPECT_TRUE(contains(error_of("a.jsonl", "{\"text\"\n"), "a.jsonl:1:8: is not JSON"));
  EXPECT_TRUE(contains(error_of("a.jsonl", "3\n"), "a.jsonl:1:1: is not a JSON object"));
  EXPECT_TRUE(contains(error_of("a.txt", "a\n"), "ends in .csv, .tsv"));
  folder.add("train.csv", "text,label\na,x\n");
  folder.add("test.csv", "text,label\na,z\n");
  config.path = folder.name();
  EXPECT_TRUE(contains(data_error([&] { open(); }),
                       "test.csv:2: class 'z' does not occur in the training split"));
}

TEST_F(LabeledTextTest, CountsWhatItSkips) {
  folder.add("train.csv", "text,label\na,x\n,y\nb,\nb,y,z\nc,y\n");
  folder.add("test.csv", "text,label\na,z\nb,x\n");
  config.path = folder.name();
  config.on_error = "skip";
  const auto data = open();
  EXPECT_EQ(data->train->size(), 2);
  EXPECT_EQ(data->test->size(), 1);
  // Skipped rows add nothing to the vocabulary.
  EXPECT_EQ(vocabulary_of(data->signature),
            (std::vector<std::string>{"[unknown character]", "a", "c"}));
  std::string notes;
  for (const std::string& note : data->notes) notes += note + "\n";
  for (const char* reason :
       {"1 skipped (line with another number of fields)", "1 skipped (unusable text)",
        "1 skipped (invalid label)", "1 skipped (unknown class)"}) {
    EXPECT_TRUE(contains(notes, reason));
  }
}

TEST_F(LabeledTextTest, ReportsItsSplits) {
  folder.add("train.csv", "text,label\na,x\nbb,y\nccc,y\n");
  folder.add("test.csv", "text,label\na,x\n");
  config.path = folder.name();
  const DataReport report = open()->inspect(1);
  EXPECT_EQ(to_text(report),
            "split  texts  tokens\n"
            "train      3       6\n"
            "test       1       1\n\n"
            "vocabulary  4 tokens: [unknown character]abc\n\n"
            "train: 1 x and 2 y\n"
            "test: 1 x and 0 y\n"
            "training batches of 128: 87.5 % of the tokens are padding\n");
  EXPECT_TRUE(contains(to_json(report), "\"splits\""));
}

TEST_F(LabeledTextTest, TakesVocabularyAndClassesOfATrainedModel) {
  config.path = folder.add("a.csv", "text,label\nba,x\nb,y\n").string();
  const Signature trained = open()->signature;
  folder.add("other/train.csv", "text,label\nac,y\n");
  folder.add("other/test.csv", "text,label\nbcd,y\na,y\n");
  options.trained = &trained;
  EXPECT_EQ(open()->notes, std::vector<std::string>());
  config.path = folder.name() + "/other";
  const auto data = open();
  EXPECT_EQ(data->signature.vocabulary, trained.vocabulary);
  EXPECT_EQ(data->signature.classes, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(row_of(*data->test, 0).tokens, (Tokens{2, kUnknownToken, kUnknownToken}));
  EXPECT_EQ(row_of(*data->test, 0).label, 1);
  EXPECT_EQ(data->notes,
            (std::vector<std::string>{
                "train: 1 of 2 characters (50.0 %) are not in the vocabulary that the model was "
                "trained with, and are its unknown token",
                "test: 2 of 4 characters (50.0 %) are not in the vocabulary that the model was "
                "trained with, and are its unknown token"}));
  folder.add("other/test.csv", "text,label\nb,z\n");
  EXPECT_TRUE(contains(data_error([&] { open(); }), "class 'z' does not occur"));
}

TEST(TokenizerTest, SplitsAsTheVocabularySays) {
  const auto of = [](const std::string& unit, const std::vector<std::string>& tokens) {
    Signature signature{.kind = "text"};
    VocabularyBuilder builder({.unit = unit});
    for (const std::string& token : tokens) builder.add(token);
    for (const std::string& token : builder.vocabulary()) {
      signature.vocabulary.push_back(to_hex(token));
    }
    Signature undeclared = signature;
    complete_undeclared(undeclared);
    EXPECT_EQ(undeclared.unit, unit);
    EXPECT_TRUE(undeclared.separate_texts && undeclared.padded);
    signature.unit = unit;
    return Tokenizer(signature);
  };
  using Row = std::vector<int32_t>;
  EXPECT_EQ(of("words", {"a", "bc"}).tokens_of(" bc a\tab [unknown word]"), (Row{2, 1, 0, 0, 0}));
  EXPECT_EQ(of("characters", {"a", "\xC3\xBC"})
                .tokens_of("\xC3\xBC"
                           "ab"),
            (Row{2, 1, 0}));
  EXPECT_EQ(of("bytes", {}).tokens_of("\xFF"), (Row{256}));
  for (Signature other : {Signature{.kind = "text", .vocabulary = {to_hex("a")}}, Signature()}) {
    complete_undeclared(other);
    EXPECT_EQ(other.unit, "");
    EXPECT_FALSE(other.separate_texts || other.padded);
  }
}

TEST_F(LabeledTextTest, ReadsTextsToPredict) {
  const auto texts_of = [&](const std::string& file, const std::string& content) {
    std::string all;
    const auto table = read_texts_to_predict(folder.add(file, content).string(), {"text"});
    for (const TextRow& row : table.rows) all += fmt::format("{} {};", row.line, row.values[0]);
    return all;
  };
  EXPECT_EQ(texts_of("new.txt", "b a\n\nnew a b\r\nlast"), "1 b a;3 new a b;4 last;");
  EXPECT_EQ(texts_of("new.csv", "id,text\n1,b\n"), "2 b;");
  EXPECT_EQ(texts_of("new.jsonl", "{\"text\": \"b\"}\n"), "1 b;");
  EXPECT_TRUE(contains(data_error([&] { texts_of("new.txt", " \n"); }), "has no text"));
}

TEST_F(LabeledTextTest, RejectsOptionsForOtherData) {
  config.path = folder.add("a.csv", "text,label\na,x\n").string();
  config.task = "causal-lm";
  EXPECT_THROW(open(), UsageError);
  config.task = "auto";
  config.eval_stride = 2;
  EXPECT_THROW(open(), UsageError);
}

}  // namespace
}  // namespace gallop::data
