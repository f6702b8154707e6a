#pragma once

#include <memory>
#include <string>

#include "gallop/data/data_module.h"
#include "gallop/data/tokenizer.h"

namespace gallop::data {

/// The token before and behind each document, as in GPT-2.
inline constexpr const char* kEndToken = "<|endoftext|>";

/// Separate texts for a causal language model: a table, or a folder with train, val and test.
struct DocumentsConfig {
  std::string text = "text";  ///< Column name.
  TokenizerConfig tokenizer;
};

void visit(config::Visitor& visitor, DocumentsConfig& config);

/// Fields "tokens" and "labels", int64 [context], ragged: a document between two tokens kEndToken,
/// and the same shifted by one token. A document of more than `data.context` tokens is split into
/// several consecutive samples. Throws DataError with file and line for an empty text;
/// `data.on_error: skip` leaves such rows out and counts them.
std::unique_ptr<DataModule> open_documents(const DocumentsConfig& config,
                                           const DataContext& context);

}  // namespace gallop::data
