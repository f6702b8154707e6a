#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/nn/module.h>

#include "gallop/config/component.h"
#include "gallop/kernel/activation_kind.h"
#include "gallop/model/initializer.h"
#include "gallop/model/model.h"

// Layers for models defined in a recipe: `model: {name: layers, layers: [...]}`.
namespace gallop::model {

/// The shape of one sample between two layers, without the batch dimension.
struct Shape {
  enum class Kind {
    kImage,     ///< [C, H, W]
    kSequence,  ///< [T, C]
    kVector,    ///< [C]
    kTokens,    ///< Indices [T].
  };
  Kind kind = Kind::kVector;
  std::vector<int64_t> sizes;

  /// C; 0 for tokens.
  int64_t channels() const;
  /// Returns the same shape with other channels.
  Shape with_channels(int64_t channels) const;
  /// The sizes of the dimensions along which the kernel of an image or a sequence moves.
  std::vector<int64_t*> lengths();
  /// Formats as "an image [3, 32, 32]".
  std::string describe() const;
  bool operator==(const Shape&) const = default;
};

/// What the positions of a batch of sequences hold. The model sets it before it runs its layers,
/// which share it.
struct SequenceMask {
  at::Tensor is_token_NT;  ///< bool: a token, not padding.
  at::Tensor
      position_ids_NT;  ///< Of packed rows (Model::takes_packed_rows()), otherwise undefined.
};

/// A layer with one input and one output, whose first dimension is the batch.
class Layer {
 public:
  virtual ~Layer() = default;
  virtual at::Tensor forward(const at::Tensor& x) = 0;
  /// The module with its parameters; null if it has neither parameters nor a training mode.
  virtual std::shared_ptr<torch::nn::Module> module() const { return nullptr; }

  /// The activation that this layer computes, if it is one that kernels support.
  virtual std::optional<kernel::Activation> activation() const { return {}; }
  /// Whether forward_activated() computes this activation in the layer's own pass.
  virtual bool fuses(kernel::Activation /*kind*/) const { return false; }
  /// Returns act(forward(x)). Requires fuses().
  virtual at::Tensor forward_activated(const at::Tensor& x, kernel::Activation kind);

  /// Whether it keeps the texts of packed rows apart, by SequenceMask::position_ids_NT or because
  /// it processes each token alone.
  virtual bool takes_packed_rows() const { return false; }

  /// The weight [C, K] of a final GEMM without bias, for a loss to compute in parts; or undefined.
  virtual at::Tensor head_weight() const { return {}; }
};

/// The inputs for building a layer. `shape` is the shape of its input; the builder replaces it with
/// the shape of its output.
struct LayerContext {
  Initializer& initializer;
  Shape shape;
  std::string path;      ///< Of the layer in the recipe, "model.layers.3.conv".
  int64_t classes = 0;   ///< Outputs that the data needs per target; 0: any number.
  int64_t tokens = 0;    ///< Vocabulary size of text.
  bool causal = false;   ///< Outputs at a position may depend only on earlier positions.
  bool is_head = false;  ///< Whether it is the last layer of the model.
  /// Set if sequences are padded. Outputs of a layer at token positions must then depend only on
  /// tokens; outputs at padded positions are arbitrary.
  std::shared_ptr<const SequenceMask> mask{};
  InitScheme conv_init{};
  InitScheme linear_init{};

  /// Throws config::OptionError for this layer.
  [[noreturn]] void fail(const std::string& message) const;
  void require(bool condition, const std::string& message) const;
  /// Fails unless the input has this kind; `hint` says what to insert before the layer.
  void require_kind(Shape::Kind kind, const std::string& hint = {}) const;
  /// Fails unless the input is a sequence, with what makes one of it.
  void require_sequence() const;
  void require_image_or_sequence() const;
  /// Fails if the input is a padded sequence, because this layer does not support the padding mask.
  void require_unpadded(const std::string& hint) const;
};

/// The built-in layers.
LayerRegistry built_in_layers();

}  // namespace gallop::model
