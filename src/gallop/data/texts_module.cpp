#include "gallop/data/texts_module.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/data_config.h"
#include "gallop/data/text.h"

namespace gallop::data {

TextsModule::TextsModule(const std::string& task, const DataContext& context) {
  if (!context.config.augment.items.empty()) {
    throw UsageError("data.augment is for images, and these data are texts");
  }
  if (context.config.eval_stride != 0) {
    throw UsageError(
        "data.eval_stride is for running text, and these data are texts of their own; leave it "
        "out");
  }
  signature.kind = "text";
  signature.separate_texts = true;
  signature.task = choose_task(context.config, {task});
  signature.context = context.config.context;
}

DataReport TextsModule::inspect(int threads) const {
  DataReport report = DataModule::inspect(threads);
  report.vocabulary = vocabulary_of(signature);
  report.unit = signature.unit;
  report.text_samples = "texts";
  for (const Split& split : splits_) {
    report.texts.push_back({.name = split.name, .tokens = split.tokens});
    std::vector<std::string> counts;
    for (size_t i = 0; i < split.class_counts.size(); ++i) {
      counts.push_back(fmt::format("{} {}", format_count(split.class_counts[i]),
                                   printable(signature.classes[i])));
    }
    if (counts.empty()) continue;
    report.notes.push_back(fmt::format("{}: {}", split.name, join_names(counts, "and")));
  }
  return report;
}

Tokenizer TextsModule::make_tokenizer(const TokenizerConfig& config,
                                      const std::function<void(VocabularyBuilder&)>& count) {
  signature.unit = config.unit;
  VocabularyBuilder builder(config);
  count(builder);
  const std::vector<std::string> vocabulary = builder.vocabulary();
  for (const std::string& token : vocabulary) signature.vocabulary.push_back(to_hex(token));
  return {config.unit, vocabulary};
}

void TextsModule::add_part(Part part, std::unique_ptr<Samples> samples, const TokenRows& rows,
                           std::vector<int64_t> counts) {
  splits_.push_back({.name = kPartNames[static_cast<size_t>(part)],
                     .samples = samples->size(),
                     .tokens = rows.tokens(),
                     .class_counts = std::move(counts)});
  files.push_back(rows.file());
  texts_ += rows.size();
  cut_ += rows.cut();
  (part == Part::kTrain        ? train
   : part == Part::kValidation ? validation
                               : test) = std::move(samples);
}

void TextsModule::finish(const SkipPolicy& skips) {
  if (cut_ > 0) {
    notes.push_back(
        fmt::format("{} of {} texts have more than data.context, {}, tokens, and are cut there",
                    format_count(cut_), format_count(texts_), format_count(signature.context)));
  }
  for (const SkipCount& skipped : skips.counts()) notes.push_back(describe(skipped));
}

void drop_unusable_texts(TextTable& table, const std::string& unit, SkipPolicy& skips) {
  const auto mistake = [&](const std::string& text) -> std::string {
    try {
      return split_units(unit, text).empty() ? "the text is empty" : "";
    } catch (const DataError& error) {
      return std::string(error.what()) + ", or take bytes with data.unit=bytes";
    }
  };
  std::erase_if(table.rows, [&](const TextRow& row) {
    const std::string wrong = mistake(row.values.front());
    if (wrong.empty()) return false;
    skips.add("unusable text", fmt::format("{}:{}: {}", printable(table.file), row.line, wrong));
    return true;
  });
}

void require_rows(const TokenRows& rows) {
  if (rows.size() == 0) throw DataError(printable(rows.file()) + ": has no usable text");
}

ClassNames::ClassNames(const std::vector<std::string>& names) {
  for (size_t i = 0; i < names.size(); ++i) labels_[names[i]] = static_cast<int64_t>(i);
}

int64_t ClassNames::find(const std::string& name) const {
  const auto found = labels_.find(name);
  return found == labels_.end() ? -1 : found->second;
}

std::string class_name_mistake(const std::string& name) {
  if (name.empty()) return "is empty";
  for (size_t at = 0; at < name.size();) {
    const size_t length = character_length(name, at);
    if (length == 0) return "is not UTF-8";
    at += length;
  }
  return {};
}

}  // namespace gallop::data
