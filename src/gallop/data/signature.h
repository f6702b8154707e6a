#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/config/visitor.h"
#include "gallop/data/table_feature.h"

namespace gallop::data {

/// Describes the fields and targets of a data set: everything about the data that a model, a loss
/// and a prediction need. A run saves it as inputs.yaml, so that its model can be used without the
/// training data.
struct Signature {
  std::string kind = "images";          ///< Of the input: images, text or numbers.
  std::string task = "classification";  ///< Name of a task in train/tasks/.
  // Images.
  int64_t channels = 0;
  int64_t height = 0;
  int64_t width = 0;
  // Normalization of images per channel, and of tables per feature that is no category.
  std::vector<double> mean;
  std::vector<double> deviation;
  // Text.
  int64_t context = 0;  ///< Maximum tokens of one input. Sequences of numbers: their T steps.
  /// Type of tokens: characters, bytes or words; empty if it is none of these.
  std::string unit;
  /// Samples are separate texts, not windows of running text. The first token of the vocabulary
  /// then represents all units that are not in the vocabulary.
  bool separate_texts = false;
  /// Short texts in a batch are padded to one length. open_data() sets it if the input field has
  /// padding (Field::padding); models treat negative tokens as padding.
  bool padded = false;
  int64_t views = 1;  ///< Inputs per sample, each with its own embedding: 2 for pairs.
  std::vector<std::string> vocabulary;  ///< Bytes of each token as hexadecimal digits.
  std::string mask_token;  ///< The mask token of a masked language model, encoded in the same way.
  std::string end_token;   ///< The token before and after each text of a causal language model.
  // Numbers.
  std::vector<std::string> columns;    ///< Of one step, if samples are sequences [T, C].
  std::vector<TableFeature> features;  ///< Those that are no categories first.
  std::vector<std::string> missing;    ///< Further texts that stand for missing values.
  std::string header = "auto";         ///< Whether CSV has a header: auto, yes or no.
  std::string separator = "auto";      ///< data.separator.
  // Targets.
  /// Mean and standard deviation of each target; empty if targets are not standardized.
  std::vector<double> target_mean, target_deviation;
  std::vector<std::string> classes;   ///< Names of classes or labels.
  int64_t blank = 0;                  ///< A class that is no target, if these are sequences.
  std::vector<int64_t> class_counts;  ///< Training samples of each class, if the loss needs them.
  std::vector<std::string> targets;   ///< Names of predicted numbers.
  std::string label;                  ///< Name of the column of classes of a table.
  /// Names of the outputs for each predicted number, if the loss needs several
  /// (Loss::output_names).
  std::vector<std::string> target_outputs;

  bool is_images() const { return kind == "images"; }
  bool is_text() const { return kind == "text"; }
  bool is_numbers() const { return kind == "numbers"; }
  /// The outputs of a model per target: classes, labels, tokens of the vocabulary, or all outputs
  /// for the predicted numbers. 0 for embeddings, whose size the model chooses.
  int64_t outputs() const;
  /// The name of the samples of separate texts.
  const char* text_samples() const { return views > 1 ? "pairs" : "texts"; }
};

void visit(config::Visitor& visitor, Signature& signature);

/// Convert bytes to hexadecimal digits ("0a") and back. Throws DataError for invalid digits.
std::string to_hex(const std::string& bytes);
std::string from_hex(const std::string& digits);

}  // namespace gallop::data
