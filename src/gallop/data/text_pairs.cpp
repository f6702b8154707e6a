#include "gallop/data/text_pairs.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/data_config.h"
#include "gallop/data/texts_module.h"

namespace gallop::data {

namespace {

constexpr const char* kReader = "text-pairs";
constexpr size_t kTexts = 2;
// Common column names of such data sets.
constexpr const char* kUsualColumns[][kTexts] = {{"sentence1", "sentence2"},
                                                 {"text_a", "text_b"},
                                                 {"query", "positive"},
                                                 {"anchor", "positive"},
                                                 {"question", "answer"}};

class TextPairs final : public Samples {
 public:
  /// Both must have the same number of texts.
  explicit TextPairs(std::array<TokenRows, kTexts> texts)
      : Samples({tokens_field(texts[0].context()),
                 {.name = "match", .shape = {.sizes = {}, .dtype = c10::ScalarType::Float}}}),
        texts_(std::move(texts)) {}

  int64_t size() const override { return texts_[0].size(); }
  std::string describe(int64_t index) const override { return texts_[0].describe(index); }

  bool fill(int64_t index, int64_t /*epoch*/, const SampleRow& row, Scratch&) const override {
    auto* const tokens = row.as<int64_t>(0);
    const size_t length = std::max(texts_[0][index].size(), texts_[1][index].size());
    std::fill_n(tokens, kTexts * length, kPaddingToken);
    for (size_t text = 0; text < kTexts; ++text) {
      size_t at = text;
      for (const int32_t token : texts_[text][index]) {
        tokens[at] = token;
        at += kTexts;
      }
    }
    row.set_length(0, static_cast<int64_t>(length));
    *row.as<float>(1) = 1;
    return true;
  }

  const std::array<TokenRows, kTexts>& texts() const { return texts_; }

 private:
  // Ragged along its first dimension, so that the tokens of both texts are interleaved.
  static Field tokens_field(int64_t context) {
    Field field = ragged_tokens("tokens", FieldRole::kInput, context, kPaddingToken);
    field.shape.sizes.push_back(kTexts);
    return field;
  }

  std::array<TokenRows, kTexts> texts_;
};

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<std::string> choose_columns(const TextPairsConfig& config, const std::string& path) {
  if (!config.texts.empty()) {
    if (config.texts.size() == kTexts && config.texts[0] != config.texts[1]) return config.texts;
    throw UsageError(fmt::format("data.texts is [{}], and must name two columns of texts",
                                 printable(fmt::format("{}", fmt::join(config.texts, ", ")))));
  }
  const TextColumns found = read_columns(kReader, path);
  for (const auto& [first, second] : kUsualColumns) {
    if (has(found.names, first) && has(found.names, second)) return {first, second};
  }
  if (found.names.size() == kTexts) return found.names;
  throw DataError(
      fmt::format("{}: which two columns are the texts of a pair? It has {}; name two, such as "
                  "data.texts=[question, answer]",
                  printable(found.file), printable(join_names(found.names, "and"))));
}

void add_samples(TextsModule& module, Part part, const TextTable& table, const Tokenizer& tokenizer,
                 const SkipPolicy& skips) {
  const TokenRows none(table.files, module.signature.context);
  std::array<TokenRows, kTexts> texts = {none, none};
  for (const TextRow& row : table.rows) {
    for (size_t i = 0; i < kTexts; ++i)
      texts[i].add(tokenizer.tokens_of(row.values[i]), row.line, row.file);
  }
  require_rows(texts[0], skips);
  auto samples = std::make_unique<TextPairs>(std::move(texts));
  const auto& kept = samples->texts();
  module.add_part(part, std::move(samples), {&kept[0], &kept[1]}, /*counts=*/{});
}

}  // namespace

void visit(config::Visitor& visitor, TextPairsConfig& config) {
  visitor.field({.name = "texts",
                 .help = "the two columns of texts; by default those with usual names, such as "
                         "question and answer, or the only two"},
                config.texts);
  visit(visitor, config.tokenizer);
}

std::unique_ptr<DataModule> open_text_pairs(const TextPairsConfig& config,
                                            const DataContext& context) {
  auto module = std::make_unique<TextsModule>("pair-embedding", context);
  Signature& signature = module->signature;
  signature.views = kTexts;
  signature.columns = choose_columns(config, context.config.path);
  SkipPolicy skips(context.config.on_error == "skip");
  const auto parts = read_usable_texts(kReader, context.config.path, signature.columns, kTexts,
                                       config.tokenizer.unit, skips);
  const Tokenizer tokenizer = module->make_tokenizer(config.tokenizer, *parts[0], kTexts);
  for (size_t i = 0; i < kParts; ++i) {
    if (parts[i]) add_samples(*module, static_cast<Part>(i), *parts[i], tokenizer, skips);
  }
  module->finish(skips);
  return module;
}

}  // namespace gallop::data
