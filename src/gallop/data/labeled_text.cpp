#include "gallop/data/labeled_text.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/data_config.h"
#include "gallop/data/data_file.h"
#include "gallop/data/texts_module.h"

namespace gallop::data {

namespace {

class LabeledTexts final : public Samples {
 public:
  /// `labels` has one label per text.
  LabeledTexts(TokenRows texts, std::vector<int64_t> labels)
      : Samples({ragged_tokens("tokens", FieldRole::kInput, texts.context(), kPaddingToken),
                 {.name = "label", .shape = {.sizes = {}, .dtype = c10::ScalarType::Long}}}),
        texts_(std::move(texts)),
        labels_(std::move(labels)) {}

  int64_t size() const override { return texts_.size(); }
  bool every_target_counts() const override { return true; }
  std::string describe(int64_t index) const override { return texts_.describe(index); }

  bool fill(int64_t index, int64_t /*epoch*/, const SampleRow& row, Scratch&) const override {
    const auto tokens = texts_[index];
    std::copy(tokens.begin(), tokens.end(), row.as<int64_t>(0));
    row.set_length(0, static_cast<int64_t>(tokens.size()));
    *row.as<int64_t>(1) = labels_[static_cast<size_t>(index)];
    return true;
  }

  const TokenRows& texts() const { return texts_; }

 private:
  TokenRows texts_;
  std::vector<int64_t> labels_;
};

void drop_unusable_labels(TextTable& table, SkipPolicy& skips) {
  std::erase_if(table.rows, [&](const TextRow& row) {
    const std::string wrong = class_name_mistake(row.values[1]);
    if (wrong.empty()) return false;
    skips.add("invalid label", fmt::format("{}: the label {}", printable(table.place(row)), wrong));
    return true;
  });
}

std::vector<std::string> classes_of(const TextTable& table) {
  std::set<std::string> classes;
  for (const TextRow& row : table.rows) classes.insert(row.values[1]);
  return {classes.begin(), classes.end()};
}

void add_samples(TextsModule& module, Part part, const TextTable& table, const Tokenizer& tokenizer,
                 SkipPolicy& skips) {
  const ClassNames classes(module.signature.classes);
  TokenRows texts(table.files, module.signature.context);
  std::vector<int64_t> labels, counts(module.signature.classes.size());
  for (const TextRow& row : table.rows) {
    const int64_t label = classes.find(row.values[1]);
    if (label < 0) {
      skips.add("unknown class",
                fmt::format("{}: class '{}' does not occur in the training split",
                            printable(table.place(row)), shown_value(row.values[1])));
      continue;
    }
    texts.add(tokenizer.tokens_of(row.values[0]), row.line, row.file);
    labels.push_back(label);
    ++counts[static_cast<size_t>(label)];
  }
  require_rows(texts, skips);
  auto samples = std::make_unique<LabeledTexts>(std::move(texts), std::move(labels));
  const TokenRows& kept = samples->texts();
  module.add_part(part, std::move(samples), {&kept}, std::move(counts));
}

}  // namespace

void visit(config::Visitor& visitor, LabeledTextConfig& config) {
  visitor.field({.name = "text", .help = "column of the texts"}, config.text);
  visitor.field({.name = "label", .help = "column of the classes"}, config.label);
  visit(visitor, config.tokenizer);
}

std::unique_ptr<DataModule> open_labeled_text(const LabeledTextConfig& config,
                                              const DataContext& context) {
  auto module = std::make_unique<TextsModule>("text-classification", context);
  Signature& signature = module->signature;
  signature.columns = {config.text};
  SkipPolicy skips(context.config.on_error == "skip");
  auto parts = read_usable_texts("labeled-text", context.config.path, {config.text, config.label},
                                 /*texts=*/1, config.tokenizer.unit, skips);
  for (auto& part : parts) {
    if (part) drop_unusable_labels(*part, skips);
  }
  const TextTable& train = *parts[0];
  const Tokenizer tokenizer = module->make_tokenizer(config.tokenizer, train, /*texts=*/1);
  module->set_classes(classes_of(train));
  for (size_t i = 0; i < kParts; ++i) {
    if (parts[i]) add_samples(*module, static_cast<Part>(i), *parts[i], tokenizer, skips);
  }
  module->finish(skips);
  return module;
}

}  // namespace gallop::data
