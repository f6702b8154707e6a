#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gallop/data/data_module.h"
#include "gallop/data/length_order.h"
#include "gallop/data/skips.h"
#include "gallop/data/text_columns.h"
#include "gallop/data/token_rows.h"
#include "gallop/data/tokenizer.h"

namespace gallop::data {

/// Separate texts of any length: the common part of the data modules for labeled texts, tagged
/// texts and text pairs.
class TextsModule final : public DataModule {
 public:
  /// Throws UsageError if the section has options for other data or another task.
  TextsModule(const std::string& task, const DataContext& context);

  /// Reports samples and tokens of each split, the vocabulary, and the frequency of each class.
  DataReport inspect(int threads) const override;

  /// Adds a token to the vocabularies of later tokenizers, unless the texts contain it as a unit.
  void set_end_token(const std::string& token);
  /// Creates the tokenizer and sets the signature's unit and vocabulary: those of a trained model
  /// (OpenOptions::trained) if given, otherwise built from the units that `count` adds.
  Tokenizer make_tokenizer(const TokenizerConfig& config,
                           const std::function<void(VocabularyBuilder&)>& count);
  /// Like the above, counting the units of the first `texts` values of each row.
  Tokenizer make_tokenizer(const TokenizerConfig& config, const TextTable& table, size_t texts);
  /// Sets the signature's classes: those of a trained model if given, otherwise `classes`.
  void set_classes(const std::vector<std::string>& classes);
  /// Adds the samples of a split, which read all of `texts`, equally many rows of each. `counts`
  /// has the number of targets of each class and may be empty.
  void add_part(Part part, std::unique_ptr<Samples> samples,
                std::initializer_list<const TokenRows*> texts, std::vector<int64_t> counts);
  /// Adds notes about texts truncated to `data.context`, units missing from another vocabulary, and
  /// skipped rows.
  void finish(const SkipPolicy& skips);

 private:
  struct Split {
    std::string name;
    int64_t samples = 0, tokens = 0, unknown = 0;
    std::vector<int64_t> class_counts;
  };

  // Null unless these texts are for a model that was trained on such texts.
  const Signature* trained_ = nullptr;
  bool has_other_vocabulary_ = false;
  BatchOrder order_;
  std::vector<Split> splits_;
  int64_t texts_ = 0, cut_ = 0;
};

/// Reads the tables of all splits, whose first `texts` columns are texts. Rows with a text that has
/// no token or is invalid are reported to `skips`. Throws like read_text_parts().
std::array<std::optional<TextTable>, kParts> read_usable_texts(
    const std::string& reader, const std::string& path, const std::vector<std::string>& columns,
    size_t texts, const std::string& unit, SkipPolicy& skips);

/// Throws DataError if no row of a file is left.
void require_rows(const TokenRows& rows, const SkipPolicy& skips);

/// Maps class names to labels.
class ClassNames {
 public:
  explicit ClassNames(const std::vector<std::string>& names);
  /// Returns the label of a class; -1 if there is none of this name.
  int64_t find(const std::string& name) const;

 private:
  std::map<std::string, int64_t> labels_;
};

/// Returns what is wrong with a class name; empty if it is valid.
std::string class_name_mistake(const std::string& name);

}  // namespace gallop::data
