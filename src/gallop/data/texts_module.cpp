#include "gallop/data/texts_module.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/data_config.h"
#include "gallop/data/report.h"
#include "gallop/data/skip_summary.h"
#include "gallop/data/text.h"

namespace gallop::data {

TextsModule::TextsModule(const std::string& task, const DataContext& context)
    : order_(batch_order(context.config, context.options.seed)) {
  if (!context.config.augment.items.empty()) {
    throw UsageError("data.augment is for images, and these data are texts");
  }
  if (context.config.eval_stride != 0) {
    throw UsageError(
        "data.eval_stride is for running text, but these data are separate texts; omit it");
  }
  signature.kind = "text";
  signature.separate_texts = true;
  signature.task = choose_task(context.config, {task});
  signature.context = context.config.context;
  const Signature* const trained = context.options.trained;
  if (trained != nullptr && trained->separate_texts && trained->task == signature.task) {
    trained_ = trained;
  }
}

DataReport TextsModule::inspect(int threads) const {
  DataReport report = DataModule::inspect(threads);
  report.vocabulary = vocabulary_of(signature);
  report.unit = signature.unit;
  report.text_samples = signature.text_samples();
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
  if (const auto padding = padding_share(*this, order_)) {
    constexpr double kVisible = 0.001;
    std::string text = fmt::format(
        "training batches of {}: {:.1f} % of the tokens are padding",
        order_.max_tokens > 0 ? fmt::format("up to {} tokens", format_count(order_.max_tokens))
                              : std::to_string(order_.batch),
        100 * padding->share);
    if (padding->grouped < padding->share - kVisible) {
      text += fmt::format(", with data.group_by_length {:.1f} %", 100 * padding->grouped);
    }
    if (padding->packed.value_or(1) < padding->share - kVisible) {
      text += fmt::format(", with data.packing {:.1f} %", 100 * *padding->packed);
    }
    report.notes.push_back(text);
  }
  return report;
}

Tokenizer TextsModule::make_tokenizer(const TokenizerConfig& config,
                                      const std::function<void(VocabularyBuilder&)>& count) {
  signature.unit = config.unit;
  VocabularyBuilder builder(config);
  count(builder);
  for (const std::string& token : builder.vocabulary()) {
    signature.vocabulary.push_back(to_hex(token));
  }
  const std::string& end = signature.end_token;
  if (!end.empty() && std::find(signature.vocabulary.begin(), signature.vocabulary.end(), end) ==
                          signature.vocabulary.end()) {
    signature.vocabulary.push_back(end);
  }
  if (trained_ != nullptr && trained_->unit == config.unit) {
    has_other_vocabulary_ = signature.vocabulary != trained_->vocabulary;
    signature.vocabulary = trained_->vocabulary;
  }
  return Tokenizer(signature);
}

void TextsModule::set_end_token(const std::string& token) { signature.end_token = to_hex(token); }

void TextsModule::set_classes(const std::vector<std::string>& classes) {
  signature.classes = trained_ == nullptr ? classes : trained_->classes;
}

Tokenizer TextsModule::make_tokenizer(const TokenizerConfig& config, const TextTable& table,
                                      size_t texts) {
  return make_tokenizer(config, [&](VocabularyBuilder& builder) {
    for (const TextRow& row : table.rows) {
      for (size_t i = 0; i < texts; ++i) {
        for (const auto unit : split_units(config.unit, row.values[i])) builder.add(unit);
      }
    }
  });
}

void TextsModule::add_part(Part part, std::unique_ptr<Samples> samples,
                           std::initializer_list<const TokenRows*> texts,
                           std::vector<int64_t> counts) {
  Split split{.name = kPartNames[static_cast<size_t>(part)],
              .samples = samples->size(),
              .class_counts = std::move(counts)};
  for (const TokenRows* const rows : texts) {
    split.tokens += rows->tokens();
    split.unknown += rows->count(kUnknownToken);
    texts_ += rows->size();
    cut_ += rows->cut();
  }
  splits_.push_back(std::move(split));
  files.push_back((*texts.begin())->file());
  (part == Part::kTrain        ? train
   : part == Part::kValidation ? validation
                               : test) = std::move(samples);
}

void TextsModule::finish(const SkipPolicy& skips) {
  if (cut_ > 0) {
    notes.push_back(
        fmt::format("{} of {} texts have more than data.context={} tokens and are truncated",
                    format_count(cut_), format_count(texts_), signature.context));
  }
  for (const Split& split : splits_) {
    if (!has_other_vocabulary_ || split.unknown == 0) continue;
    notes.push_back(fmt::format(
        "{}: {} of {} {} ({:.1f} %) are not in the vocabulary that the model was trained with, and "
        "are its unknown token",
        split.name, format_count(split.unknown), format_count(split.tokens), signature.unit,
        100 * static_cast<double>(split.unknown) / static_cast<double>(split.tokens)));
  }
  for (const SkipCount& skipped : skips.counts()) notes.push_back(describe(skipped));
}

namespace {

std::string text_mistake(const std::string& unit, const std::string& text) {
  try {
    return split_units(unit, text).empty() ? "the text is empty" : "";
  } catch (const DataError& error) {
    return std::string(error.what()) + ", or use bytes with data.unit=bytes";
  }
}

}  // namespace

std::array<std::optional<TextTable>, kParts> read_usable_texts(
    const std::string& reader, const std::string& path, const std::vector<std::string>& columns,
    size_t texts, const std::string& unit, SkipPolicy& skips) {
  auto parts = read_text_parts(reader, path, columns, skips);
  for (auto& part : parts) {
    if (!part) continue;
    std::erase_if(part->rows, [&](const TextRow& row) {
      std::string wrong;
      for (size_t i = 0; i < texts && wrong.empty(); ++i) {
        wrong = text_mistake(unit, row.values[i]);
        if (!wrong.empty() && texts > 1) {
          wrong = fmt::format("column '{}': {}", printable(columns[i]), wrong);
        }
      }
      if (wrong.empty()) return false;
      skips.add("unusable text", fmt::format("{}: {}", printable(part->place(row)), wrong));
      return true;
    });
  }
  return parts;
}

void require_rows(const TokenRows& rows, const SkipPolicy& skips) {
  if (rows.size() > 0) return;
  throw DataError(
      fmt::format("{}: has no usable text{}", printable(rows.file()), skip_summary(skips)));
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
