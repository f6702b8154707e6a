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
#include "gallop/data/skips.h"
#include "gallop/data/text_columns.h"
#include "gallop/data/token_rows.h"
#include "gallop/data/tokenizer.h"

namespace gallop::data {

/// Separate texts of any length: what the data modules of labeled texts, of tagged texts and of
/// pairs have in common.
class TextsModule final : public DataModule {
 public:
  /// Throws UsageError where the section has options for other data, or another task.
  TextsModule(const std::string& task, const DataContext& context);

  /// Samples and tokens of each split, the vocabulary, and how often each class occurs.
  DataReport inspect(int threads) const override;

  /// Sets the signature's unit and vocabulary: that of a trained model (OpenOptions::trained), else
  /// of the units that `count` adds.
  Tokenizer make_tokenizer(const TokenizerConfig& config,
                           const std::function<void(VocabularyBuilder&)>& count);
  /// The same of the first `texts` values of the rows.
  Tokenizer make_tokenizer(const TokenizerConfig& config, const TextTable& train, size_t texts);
  /// Sets the signature's classes in the same way.
  void set_classes(std::vector<std::string> classes);
  /// Takes the samples of a part, which read all of `texts`, as many of each. `counts`: how many
  /// targets each class has; may be empty.
  void add_part(Part part, std::unique_ptr<Samples> samples,
                std::initializer_list<const TokenRows*> texts, std::vector<int64_t> counts);
  /// Notes of what `data.context` has cut, of what another vocabulary lacks and of what was
  /// skipped.
  void finish(const SkipPolicy& skips);

 private:
  struct Split {
    std::string name;
    int64_t samples = 0, tokens = 0, unknown = 0;
    std::vector<int64_t> class_counts;
  };

  // Null where these texts are not for a model that was trained on such ones.
  const Signature* trained_ = nullptr;
  bool has_other_vocabulary_ = false;
  std::vector<Split> splits_;
  int64_t texts_ = 0, cut_ = 0;
};

/// The tables of all parts, whose first `texts` columns are texts. Leaves out the rows of which one
/// has no token or cannot be split, as `skips` says. Throws as read_text_parts().
std::array<std::optional<TextTable>, kParts> read_usable_texts(
    const std::string& reader, const std::string& path, const std::vector<std::string>& columns,
    size_t texts, const std::string& unit, SkipPolicy& skips);

/// Throws DataError: nothing of a file is left.
void require_rows(const TokenRows& rows);

/// Names of classes and the other way round.
class ClassNames {
 public:
  explicit ClassNames(const std::vector<std::string>& names);
  /// -1 where there is none of the name.
  int64_t find(const std::string& name) const;

 private:
  std::map<std::string, int64_t> labels_;
};

/// What is wrong with the name of a class; empty for nothing.
std::string class_name_mistake(const std::string& name);

}  // namespace gallop::data
