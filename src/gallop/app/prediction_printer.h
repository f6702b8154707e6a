#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <nlohmann/json_fwd.hpp>

#include "gallop/app/predict.h"
#include "gallop/base/file.h"
#include "gallop/data/signature.h"
#include "gallop/train/tasks/task.h"

namespace gallop::app {

/// The predicted numbers in the units of the targets, of a model's outputs for one or more samples.
std::vector<double> numbers_of(const data::Signature& inputs, const at::Tensor& outputs);

/// The file in a folder for the predicted mask of an image.
fs::path mask_file(const std::string& folder, const std::string& image);

/// Prints the prediction for one sample after the other.
class PredictionPrinter {
 public:
  /// All must outlive it.
  PredictionPrinter(const data::Signature& inputs, const train::Task& task,
                    const PredictRequest& request);

  /// `outputs`: the model's for this sample, fp32. The prediction must not be one of tokens.
  void print(const std::string& name, const at::Tensor& outputs) const;
  /// The same for a text, whose `tokens` may get a class each.
  void print_text(const std::string& name, const std::vector<std::string>& tokens,
                  const at::Tensor& outputs) const;
  void print_broken(const std::string& name, const char* reason) const;

 private:
  void print_classes(const std::string& name, const at::Tensor& probabilities) const;
  void print_labels(const std::string& name, const at::Tensor& probabilities) const;
  void print_fraction(const std::string& name, const char* key, double fraction,
                      nlohmann::ordered_json& list) const;
  void print_numbers(const std::string& name, const at::Tensor& outputs) const;
  // `logits` [T, C], a row for each of the tokens.
  void print_tags(const std::string& name, const std::vector<std::string>& tokens,
                  const at::Tensor& logits) const;
  // `logits` [T, C].
  void print_sequence(const std::string& name, const at::Tensor& logits) const;
  // `embeddings` [views, D].
  void print_embeddings(const std::string& name, const at::Tensor& embeddings) const;
  void print_mask(const std::string& name, const at::Tensor& classes) const;
  std::string write_mask(const std::string& name, const at::Tensor& classes) const;

  const data::Signature& inputs_;
  const train::Task& task_;
  const PredictRequest& request_;
};

}  // namespace gallop::app
