#include "gallop/data/tagged_text.h"

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/data/loader.h"
#include "gallop/data/quality/data_quality.h"
#include "gallop/data/report.h"
#include "gallop/data/text_samples.h"
#include "gallop/data/tokenizer.h"
#include "unit/data/data_folder.h"
#include "unit/data/expect_error.h"
#include "unit/data/text_files.h"

namespace gallop::data {
namespace {

using Values = std::vector<int64_t>;

class TaggedTextTest : public DataFolder {
 protected:
  std::unique_ptr<DataModule> open(int64_t min_count = 1) const {
    return open_tagged_text({.min_count = min_count}, context());
  }
  std::string error_of(const std::string& content) {
    config.path = folder.add("a.conll", content).string();
    return data_error([&] { open(); });
  }
};

struct TaggedRow {
  Values tokens, labels;
};

TaggedRow row_of_tags(const Samples& samples, int64_t index) {
  const auto most = static_cast<size_t>(samples.fields().input().shape.sizes[0]);
  TaggedRow row{Values(most), Values(most)};
  void* const rows[] = {row.tokens.data(), row.labels.data()};
  int64_t lengths[] = {-1, -1};
  const auto scratch = samples.make_scratch();
  EXPECT_TRUE(samples.fill(index, 0, SampleRow(rows, lengths), *scratch));
  EXPECT_EQ(lengths[0], lengths[1]);
  row.tokens.resize(static_cast<size_t>(lengths[0]));
  row.labels.resize(static_cast<size_t>(lengths[1]));
  return row;
}

// As in the paper: four columns, of which the first and the last are read.
constexpr const char* kConll =
    "-DOCSTART- -X- -X- O\n"
    "\n"
    "U.N. NNP I-NP I-ORG\n"
    "heads NNS I-NP O\n"
    "for IN I-PP O\n"
    "Baghdad NNP I-NP I-LOC\n"
    "\n"
    "  \n"
    "heads\tO\r\n"
    "New York\tI-LOC\r\n";

TEST_F(TaggedTextTest, ReadsConll2003) {
  config.path = folder.add("a.conll", kConll).string();
  const auto data = open();
  EXPECT_EQ(data->signature.task, "token-classification");
  EXPECT_EQ(data->signature.classes, (std::vector<std::string>{"I-LOC", "I-ORG", "O"}));
  EXPECT_EQ(
      vocabulary_of(data->signature),
      (std::vector<std::string>{"[unknown word]", "Baghdad", "New York", "U.N.", "for", "heads"}));
  ASSERT_EQ(data->train->size(), 2);
  EXPECT_EQ(row_of_tags(*data->train, 0).tokens, (Values{3, 5, 4, 1}));
  EXPECT_EQ(row_of_tags(*data->train, 0).labels, (Values{1, 2, 2, 0}));
  EXPECT_EQ(row_of_tags(*data->train, 1).tokens, (Values{5, 2}));
  EXPECT_EQ(row_of_tags(*data->train, 1).labels, (Values{2, 0}));
  EXPECT_TRUE(data->train->describe(0).ends_with("a.conll:3"));
  EXPECT_TRUE(data->train->describe(1).ends_with("a.conll:9"));
  EXPECT_FALSE(data->train->every_target_counts());
}

TEST_F(TaggedTextTest, SharesATokenAmongRareAndNewWords) {
  folder.add("train.conll", kConll);
  folder.add("val.txt", "heads O\nnever O\n");
  config.path = folder.name();
  const auto data = open(2);
  EXPECT_EQ(vocabulary_of(data->signature), (std::vector<std::string>{"[unknown word]", "heads"}));
  EXPECT_EQ(row_of_tags(*data->train, 0).tokens, (Values{0, 1, 0, 0}));
  EXPECT_EQ(row_of_tags(*data->validation, 0).tokens, (Values{1, kUnknownToken}));
}

TEST_F(TaggedTextTest, PadsTargetsThatDoNotCount) {
  config.path = folder.add("a.conll", kConll).string();
  config.context = 8;
  const auto data = open();
  Loader loader(*data->train, {.batch = 2, .shuffle = false}, {});
  const auto batch = loader.next();
  EXPECT_EQ(values_of(batch->input()), (Values{3, 5, 4, 1, 5, 2, kPaddingToken, kPaddingToken}));
  EXPECT_EQ(values_of(batch->target()), (Values{1, 2, 2, 0, 2, 0, kIgnoredTarget, kIgnoredTarget}));
  config.context = 3;
  const auto cut = open();
  EXPECT_EQ(row_of_tags(*cut->train, 0).labels, (Values{1, 2, 2}));
  EXPECT_TRUE(contains(cut->notes[0], "1 of 2 texts have more than data.context=3 tokens"));
  EXPECT_TRUE(contains(to_text(cut->inspect(1)), "train: 1 I-LOC, 1 I-ORG and 3 O"));
}

TEST_F(TaggedTextTest, NamesFileAndLineOfWhatIsBroken) {
  EXPECT_TRUE(contains(error_of("a O\nb\n"), "a.conll:2: the line has no tag"));
  EXPECT_TRUE(contains(error_of("a O\nb \n"), "a.conll:2: the line has no tag"));
  EXPECT_TRUE(contains(error_of("a\t\n"), "a.conll:1: the tag is empty"));
  EXPECT_TRUE(contains(error_of("\tO\n"), "a.conll:1: the line has no word"));
  EXPECT_TRUE(contains(error_of("a \xFF\n"), "a.conll:1: the tag is not UTF-8"));
  EXPECT_TRUE(contains(error_of("-DOCSTART- O\n"), "has no usable sentence"));
  EXPECT_TRUE(contains(error_of(""), "the file is empty"));
  folder.add("train.conll", "a O\n");
  folder.add("test.conll", "\na O\nb B\n");
  config.path = folder.name();
  EXPECT_TRUE(contains(data_error([&] { open(); }),
                       "test.conll:3: tag 'B' does not occur in the training split"));
}

TEST_F(TaggedTextTest, LeavesBrokenSentencesOutAsAWhole) {
  folder.add("train.conll", "a O\nb\nc O\n\nd B\ne O\n\nO\nx\n\n");
  folder.add("test.conll", "a O\nd X\n\nd O\n");
  config.path = folder.name();
  config.on_error = "skip";
  const auto data = open();
  EXPECT_EQ(data->train->size(), 1);
  EXPECT_EQ(vocabulary_of(data->signature), (std::vector<std::string>{"[unknown word]", "d", "e"}));
  EXPECT_EQ(data->test->size(), 1);
  EXPECT_TRUE(contains(data->notes[0], "2 skipped (invalid line of a sentence), the first: "));
  EXPECT_TRUE(contains(data->notes[1], "1 skipped (unknown tag), the first: "));
}

TEST_F(TaggedTextTest, ReadsSentencesToTag) {
  const auto table = read_sentences_to_tag(folder.add("new.conll", "a\nb x\n\nc\n").string());
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0].values, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(table.rows[1].line, 4);
}

}  // namespace
}  // namespace gallop::data
