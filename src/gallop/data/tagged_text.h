#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gallop/data/data_module.h"
#include "gallop/data/text_columns.h"

namespace gallop::data {

/// Sentences with a tag for each word in the format of CoNLL-2003 (Tjong Kim Sang and De Meulder,
/// 2003): a word and its tag on each line, and an empty line between sentences. One file, or a
/// folder with train, val and test, .conll or .txt.
struct TaggedTextConfig {
  int64_t min_count = 2;
};

void visit(config::Visitor& visitor, TaggedTextConfig& config);

/// Fields "tokens" and "labels", int64 [context], both ragged. Labels are indices into the sorted
/// tags, padded with kIgnoredTarget. Columns are separated by tabs if a line has any, otherwise by
/// blanks; the first is the word and the last the tag. Lines that begin with -DOCSTART- end a
/// sentence. Throws DataError with file and line for a missing tag or one not in the training
/// split; `data.on_error: skip` leaves such sentences out and counts them.
std::unique_ptr<DataModule> open_tagged_text(const TaggedTextConfig& config,
                                             const DataContext& context);

/// Reads the sentences of a .conll or .tsv file to predict, one row per sentence with its words as
/// values. Tags are ignored and may be missing. Throws DataError if there is no sentence.
TextTable read_sentences_to_tag(const std::string& file);

}  // namespace gallop::data
