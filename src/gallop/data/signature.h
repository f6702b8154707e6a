#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/config/visitor.h"

namespace gallop::data {

/// What the fields of a data set hold and what its targets mean: all that a model, a loss and a
/// prediction need to know of data. A run keeps it as inputs.yaml, so that a model is used without
/// the data that it was trained on.
struct Signature {
  std::string kind = "images";          ///< Of the input: images, text or numbers.
  std::string task = "classification";  ///< By its name in train/tasks/.
  // Images.
  int64_t channels = 0;
  int64_t height = 0;
  int64_t width = 0;
  // Images, by channel, and numbers, by column: what they are normalized by.
  std::vector<double> mean;
  std::vector<double> deviation;
  // Text.
  int64_t context = 0;  ///< Tokens of one input.
  /// What a token is: characters, bytes or words; empty where it is none of these.
  std::string unit;
  /// Samples are texts of their own, not windows of running text. The first token of the vocabulary
  /// then stands for all units that the vocabulary lacks.
  bool separate_texts = false;
  /// Short texts of a batch are filled up to one length. open_data() sets it where the input field
  /// has padding (Field::padding); models take tokens below 0 for padding.
  bool padded = false;
  int64_t views = 1;  ///< Texts of a sample, each of which gets an embedding: 2 of a pair.
  std::vector<std::string> vocabulary;  ///< Bytes of each token in hexadecimal digits.
  std::string mask_token;               ///< Of a masked language model, in the same way.
  // Numbers.
  std::vector<std::string> columns;
  // Targets.
  std::vector<std::string> classes;  ///< Names of classes or labels.
  std::vector<std::string> targets;  ///< Names of numbers that are predicted.

  bool is_images() const { return kind == "images"; }
  bool is_text() const { return kind == "text"; }
  bool is_numbers() const { return kind == "numbers"; }
  /// Outputs of a model for each target: classes, labels, numbers, or tokens of the vocabulary.
  int64_t outputs() const;
};

void visit(config::Visitor& visitor, Signature& signature);

/// "0a" for a line feed, and back. Throws DataError for text that is not pairs of digits.
std::string to_hex(const std::string& bytes);
std::string from_hex(const std::string& digits);

}  // namespace gallop::data
