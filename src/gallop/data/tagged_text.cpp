#include "gallop/data/tagged_text.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/data_config.h"
#include "gallop/data/data_file.h"
#include "gallop/data/find.h"
#include "gallop/data/skip_summary.h"
#include "gallop/data/text_columns.h"
#include "gallop/data/text_lines.h"
#include "gallop/data/text_samples.h"
#include "gallop/data/texts_module.h"

namespace gallop::data {

namespace {

constexpr const char* kUnit = "words";
// For predictions: the column name of a sentence's text.
constexpr const char* kTextColumn = "text";

struct Sentence {
  std::vector<std::string> words, tags;
  int64_t line = 0;     ///< Line of the first word.
  std::string mistake;  ///< Error in one of its lines; empty if there is none.
};

struct Sentences {
  std::string file;
  std::vector<Sentence> list;
};

class TaggedTexts final : public Samples {
 public:
  /// `texts` and `tags` have the same number of tokens.
  TaggedTexts(TokenRows texts, TokenRows tags)
      : Samples({ragged_tokens("tokens", FieldRole::kInput, texts.context(), kPaddingToken),
                 ragged_tokens("labels", FieldRole::kTarget, texts.context(), kIgnoredTarget)}),
        texts_(std::move(texts)),
        tags_(std::move(tags)) {}

  int64_t size() const override { return texts_.size(); }
  std::string describe(int64_t index) const override { return texts_.describe(index); }

  bool fill(int64_t index, int64_t /*epoch*/, const SampleRow& row, Scratch&) const override {
    size_t field = 0;
    for (const TokenRows* rows : {&texts_, &tags_}) {
      const auto values = (*rows)[index];
      std::copy(values.begin(), values.end(), row.as<int64_t>(field));
      row.set_length(field++, static_cast<int64_t>(values.size()));
    }
    return true;
  }

  const TokenRows& texts() const { return texts_; }

 private:
  TokenRows texts_, tags_;
};

enum class Tags { kRequired, kIgnored };

std::string line_mistake(const std::string& word, const std::string& tag, bool has_tag) {
  if (word.empty()) return "the line has no word";
  if (!has_tag) return "the line has no tag";
  const std::string wrong = class_name_mistake(tag);
  return wrong.empty() ? "" : "the tag " + wrong;
}

/// Adds the word and the tag of a line.
void add_line(std::string_view line, const std::string& file, int64_t number, Tags tags,
              Sentence& sentence) {
  const char* const separators = line.find('\t') == std::string_view::npos ? " " : "\t";
  const size_t first_end = line.find_first_of(separators);
  const size_t last_begin = line.find_last_of(separators);
  std::string word(line.substr(0, first_end));
  std::string tag(last_begin == std::string_view::npos ? "" : line.substr(last_begin + 1));
  if (sentence.words.empty()) sentence.line = number;
  if (tags == Tags::kRequired && sentence.mistake.empty()) {
    const std::string wrong = line_mistake(word, tag, last_begin != std::string_view::npos);
    if (!wrong.empty()) sentence.mistake = fmt::format("{}:{}: {}", printable(file), number, wrong);
  }
  sentence.words.push_back(std::move(word));
  sentence.tags.push_back(std::move(tag));
}

Sentences read_sentences(const std::string& file, Tags tags, SkipPolicy& skips) {
  const std::string content = read_data_file(file);
  Sentences sentences{.file = file, .list = {}};
  Sentence sentence;
  const auto end_sentence = [&] {
    if (sentence.words.empty()) return;
    if (sentence.mistake.empty()) {
      sentences.list.push_back(std::move(sentence));
    } else {
      skips.add("invalid line of a sentence", sentence.mistake);
    }
    sentence = {};
  };
  Lines lines(content);
  while (auto line = lines.next()) {
    while (line->ends_with(' ')) line->remove_suffix(1);
    if (is_blank(*line) || line->starts_with("-DOCSTART-")) {
      end_sentence();
    } else {
      add_line(*line, file, lines.number(), tags, sentence);
    }
  }
  end_sentence();
  if (sentences.list.empty()) {
    throw DataError(
        fmt::format("{}: has no usable sentence{}", printable(file), skip_summary(skips)));
  }
  return sentences;
}

std::vector<std::string> tags_of(const Sentences& sentences) {
  std::set<std::string> tags;
  for (const Sentence& sentence : sentences.list) {
    tags.insert(sentence.tags.begin(), sentence.tags.end());
  }
  return {tags.begin(), tags.end()};
}

void add_samples(TextsModule& module, Part part, const Sentences& sentences,
                 const Tokenizer& tokenizer, SkipPolicy& skips) {
  const ClassNames tags(module.signature.classes);
  TokenRows texts({sentences.file}, module.signature.context),
      labels({sentences.file}, module.signature.context);
  std::vector<int64_t> counts(module.signature.classes.size());
  for (const Sentence& sentence : sentences.list) {
    std::vector<int32_t> row;
    for (const std::string& tag : sentence.tags) {
      const int64_t label = tags.find(tag);
      if (label < 0) {
        skips.add("unknown tag",
                  fmt::format("{}:{}: tag '{}' does not occur in the training split",
                              printable(sentences.file),
                              sentence.line + static_cast<int64_t>(row.size()), printable(tag)));
        break;
      }
      row.push_back(static_cast<int32_t>(label));
    }
    if (row.size() < sentence.tags.size()) continue;
    labels.add(row, sentence.line);
    for (const int32_t label : labels[labels.size() - 1]) ++counts[static_cast<size_t>(label)];
    row.clear();
    for (const std::string& word : sentence.words) row.push_back(tokenizer.token_of(word));
    texts.add(row, sentence.line);
  }
  require_rows(texts, skips);
  auto samples = std::make_unique<TaggedTexts>(std::move(texts), std::move(labels));
  const TokenRows& kept = samples->texts();
  module.add_part(part, std::move(samples), {&kept}, std::move(counts));
}

}  // namespace

void visit(config::Visitor& visitor, TaggedTextConfig& config) {
  visitor.field({.name = "min_count",
                 .help = "minimum number of occurrences in the training texts for a word to have "
                         "its own token; rarer words share one",
                 .min = 1},
                config.min_count);
}

std::unique_ptr<DataModule> open_tagged_text(const TaggedTextConfig& config,
                                             const DataContext& context) {
  auto module = std::make_unique<TextsModule>("token-classification", context);
  Signature& signature = module->signature;
  signature.columns = {kTextColumn};
  SkipPolicy skips(context.config.on_error == "skip");
  const auto paths =
      find_part_files("tagged-text", context.config.path, {".conll", ".txt", ".tsv"});
  std::array<std::optional<Sentences>, kParts> parts;
  for (size_t i = 0; i < kParts; ++i) {
    if (!paths[i].empty()) parts[i] = read_sentences(paths[i].string(), Tags::kRequired, skips);
  }
  const Sentences& train = *parts[0];
  const Tokenizer tokenizer = module->make_tokenizer(
      {.unit = kUnit, .min_count = config.min_count}, [&](VocabularyBuilder& builder) {
        for (const Sentence& sentence : train.list) {
          for (const std::string& word : sentence.words) builder.add(word);
        }
      });
  module->set_classes(tags_of(train));
  for (size_t i = 0; i < kParts; ++i) {
    if (parts[i]) add_samples(*module, static_cast<Part>(i), *parts[i], tokenizer, skips);
  }
  module->finish(skips);
  return module;
}

TextTable read_sentences_to_tag(const std::string& file) {
  SkipPolicy skips(/*skips=*/false);
  Sentences sentences = read_sentences(file, Tags::kIgnored, skips);
  TextTable table{.files = {file}, .rows = {}};
  for (Sentence& sentence : sentences.list) {
    table.rows.push_back({.values = std::move(sentence.words), .line = sentence.line});
  }
  return table;
}

}  // namespace gallop::data
