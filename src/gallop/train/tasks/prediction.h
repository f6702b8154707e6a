#pragma once

#include <ATen/core/Tensor.h>

namespace gallop::train {

/// How `predict` shows a model's outputs for one sample.
struct Prediction {
  enum class Form {
    kClass,            ///< The most likely classes: outputs are logits [C].
    kLabels,           ///< The likely labels: outputs are logits [C].
    kNumbers,          ///< Numbers in the units of the targets: outputs are [D].
    kClassPerElement,  ///< A mask, of logits [C, H, W]; for texts a tag per token, of [T, C].
    kNextToken,        ///< The continuation of a text: outputs are logits [T, C].
    kMaskedTokens,     ///< The masked tokens of a text: outputs are logits [T, C].
    kSequence,         ///< Classes in order, by greedy decoding of logits [T, C].
    kEmbeddings,       ///< Embeddings [views, D]; of two also their cosine similarity.
  };
  Form form = Form::kClass;
  /// Converts a model's outputs for one sample, fp32, to those that the form shows. Null: they are
  /// shown as they are.
  at::Tensor (*postprocess)(const at::Tensor& outputs) = nullptr;

  /// The outputs that the form shows.
  at::Tensor shown(const at::Tensor& outputs) const;
  /// Whether tokens of a text are predicted.
  bool is_text() const { return form == Form::kNextToken || form == Form::kMaskedTokens; }
};

}  // namespace gallop::train
