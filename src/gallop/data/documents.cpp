#include "gallop/data/documents.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/text.h"
#include "gallop/data/data_config.h"
#include "gallop/data/text_samples.h"
#include "gallop/data/texts_module.h"

namespace gallop::data {

namespace {

class DocumentSamples final : public Samples {
 public:
  /// `texts` contain the end token behind each document only, which is that of the vocabulary.
  DocumentSamples(TokenRows texts, int64_t context)
      : Samples({ragged_tokens("tokens", FieldRole::kInput, context, kPaddingToken),
                 ragged_tokens("labels", FieldRole::kTarget, context, kIgnoredTarget)}),
        texts_(std::move(texts)) {
    for (int64_t text = 0; text < texts_.size(); ++text) {
      const auto tokens = static_cast<int64_t>(texts_[text].size());
      for (int64_t begin = 0; begin < tokens; begin += context) {
        pieces_.push_back({text, begin, std::min(context, tokens - begin)});
      }
      split_ += tokens > context ? 1 : 0;
    }
  }

  int64_t size() const override { return static_cast<int64_t>(pieces_.size()); }
  std::string describe(int64_t index) const override {
    return texts_.describe(pieces_[static_cast<size_t>(index)].text);
  }

  bool fill(int64_t index, int64_t /*epoch*/, const SampleRow& row, Scratch&) const override {
    const auto [text, begin, length] = pieces_[static_cast<size_t>(index)];
    const auto tokens = texts_[text];
    auto* const input = row.as<int64_t>(0);
    input[0] =
        tokens[static_cast<size_t>(begin == 0 ? static_cast<int64_t>(tokens.size()) : begin) - 1];
    std::copy_n(tokens.begin() + begin, length - 1, input + 1);
    std::copy_n(tokens.begin() + begin, length, row.as<int64_t>(1));
    row.set_length(0, length);
    row.set_length(1, length);
    return true;
  }

  const TokenRows& texts() const { return texts_; }
  /// The number of documents that are several samples.
  int64_t split() const { return split_; }

 private:
  struct Piece {
    int64_t text, begin, length;  // Range of its labels.
  };

  TokenRows texts_;
  std::vector<Piece> pieces_;
  int64_t split_ = 0;
};

}  // namespace

void visit(config::Visitor& visitor, DocumentsConfig& config) {
  visitor.field({.name = "text", .help = "column of the documents"}, config.text);
  visit(visitor, config.tokenizer);
}

std::unique_ptr<DataModule> open_documents(const DocumentsConfig& config,
                                           const DataContext& context) {
  auto module = std::make_unique<TextsModule>("causal-lm", context);
  module->signature.columns = {config.text};
  module->set_end_token(kEndToken);
  SkipPolicy skips(context.config.on_error == "skip");
  const auto parts = read_usable_texts("documents", context.config.path, {config.text},
                                       /*texts=*/1, config.tokenizer.unit, skips);
  const Tokenizer tokenizer = module->make_tokenizer(config.tokenizer, *parts[0], /*texts=*/1);
  const int32_t end = tokenizer.token_of(kEndToken);
  int64_t documents = 0, split = 0;
  for (size_t i = 0; i < kParts; ++i) {
    if (!parts[i]) continue;
    TokenRows texts(parts[i]->files, std::numeric_limits<int64_t>::max());
    for (const TextRow& row : parts[i]->rows) {
      std::vector<int32_t> tokens = tokenizer.tokens_of(row.values[0]);
      tokens.push_back(end);
      texts.add(tokens, row.line, row.file);
    }
    require_rows(texts, skips);
    auto samples = std::make_unique<DocumentSamples>(std::move(texts), module->signature.context);
    documents += samples->texts().size();
    split += samples->split();
    const TokenRows& kept = samples->texts();
    module->add_part(static_cast<Part>(i), std::move(samples), {&kept}, {});
  }
  if (split > 0) {
    module->notes.push_back(fmt::format(
        "{} of {} documents have more than data.context={} tokens and are split into several "
        "samples; a sample does not attend to those before it",
        format_count(split), format_count(documents), module->signature.context));
  }
  module->finish(skips);
  return module;
}

}  // namespace gallop::data
