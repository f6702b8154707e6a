#pragma once

#include <string>
#include <vector>

#include <torch/nn/module.h>

#include "gallop/config/visitor.h"
#include "gallop/model/initializer.h"

namespace gallop::model {

/// How models for tables turn numbers and categories into a vector.
struct TabularInputConfig {
  /// Embedding of numbers: piecewise-linear (Gorishniy et al., "On embeddings for numerical
  /// features in tabular deep learning", 2022), periodic (the same paper) or none.
  std::string number_embedding = "piecewise-linear";
  int64_t embedding_width = 8;    ///< Of each number.
  int64_t frequencies = 48;       ///< Of each number, if periodic.
  double frequency_scale = 0.01;  ///< Standard deviation of their initial values.
};

void visit(config::Visitor& visitor, TabularInputConfig& config);

/// Embeds the numbers [N, F] and categories [N, C] of a table into a vector [N, width()].
///
/// Piecewise-linear: number x has an encoding e with an element for each of its T bins, how far x
/// is into the bin from 0 to 1, of which the first is not limited below and the last not above.
/// The embedding is x w + b + e V: version B of rtdl_num_embeddings.PiecewiseLinearEmbeddings,
/// without activation. Categories have embeddings of fastai's size, min(600, 1.6 n^0.56).
class TabularInput : public torch::nn::Module {
 public:
  TabularInput(Initializer& initializer, const TabularInputConfig& config, const Task& task);

  /// Without `categories`, those of index 0 are taken.
  at::Tensor forward(const at::Tensor& numbers, const at::Tensor& categories) const;
  int64_t width() const;
  /// The elements of the vector that come from each number and each category.
  const std::vector<int64_t>& chunks() const { return chunks_; }

 private:
  void add_bins(Initializer& initializer, const Task& task);
  at::Tensor embed_numbers(const at::Tensor& numbers) const;
  at::Tensor encode(const at::Tensor& numbers) const;

  TabularInputConfig config_;
  std::vector<int64_t> chunks_;
  at::Tensor scale_, shift_, low_, high_;      // [F, T]; of the encoding.
  at::Tensor weight_, bias_, values_, waves_;  // [F, d], [F, d], [F, T, d], [F, frequencies].
  std::vector<at::Tensor> categories_;         // [n, d]
};

/// The fields of a batch that are inputs, without the target; "categories" may be missing.
struct TabularBatch {
  at::Tensor numbers, categories{};
};
TabularBatch tabular_batch(const NamedTensors& batch);

/// Throws UsageError if the data are not a table; `model` is named in the message.
void require_table(const Task& task, const std::string& model);

}  // namespace gallop::model
