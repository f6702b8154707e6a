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

// Layers that a recipe puts together: `model: {name: layers, layers: [...]}`.
namespace gallop::model {

/// What one sample is between two layers, without the batch dimension.
struct Shape {
  enum class Kind {
    kImage,     ///< [C, H, W]
    kSequence,  ///< [T, C]
    kVector,    ///< [C]
    kTokens,    ///< Indices [T].
  };
  Kind kind = Kind::kVector;
  std::vector<int64_t> sizes;

  /// C; for tokens, 0.
  int64_t channels() const;
  /// The same shape with other channels.
  Shape with_channels(int64_t channels) const;
  /// "an image [3, 32, 32]"
  std::string describe() const;
  bool operator==(const Shape&) const = default;
};

/// Which positions of a batch of sequences hold tokens, where others only fill short ones up. The
/// model sets it before its layers run, which share it.
struct SequenceMask {
  at::Tensor is_token_NT;  ///< bool
};

/// A layer with one input and one output, whose first dimension is the batch.
class Layer {
 public:
  virtual ~Layer() = default;
  virtual at::Tensor forward(const at::Tensor& x) = 0;
  /// What holds its parameters; null where it has neither parameters nor a training mode.
  virtual std::shared_ptr<torch::nn::Module> module() const { return nullptr; }

  /// The kernel's activation that this layer is, if it is one.
  virtual std::optional<kernel::Activation> activation() const { return {}; }
  /// Whether forward_activated() computes that activation in its own pass.
  virtual bool fuses(kernel::Activation /*kind*/) const { return false; }
  /// act(forward(x)); only where fuses().
  virtual at::Tensor forward_activated(const at::Tensor& x, kernel::Activation kind);

  /// The weight [C, K] of a last product without bias that a loss may take in parts, or undefined.
  virtual at::Tensor head_weight() const { return {}; }
};

/// What a layer is built from. `shape` is that of its input, which the builder replaces by that of
/// its output.
struct LayerContext {
  Initializer& initializer;
  Shape shape;
  std::string path;      ///< Of the layer in the recipe, "model.layers.3.conv".
  int64_t classes = 0;   ///< Outputs that the data need for each target; 0: any number.
  int64_t tokens = 0;    ///< Of text: different tokens.
  bool causal = false;   ///< Outputs at a position may depend on earlier positions alone.
  bool is_head = false;  ///< Of the last layer of the model.
  /// Set where sequences are padded. Outputs of a layer then depend on tokens alone, but for those
  /// at padded positions.
  std::shared_ptr<const SequenceMask> mask{};
  InitScheme conv_init{};
  InitScheme linear_init{};

  /// Throws config::OptionError about this layer.
  [[noreturn]] void fail(const std::string& message) const;
  void require(bool condition, const std::string& message) const;
  /// Fails unless the input has this kind; `hint` says what to put before the layer.
  void require_kind(Shape::Kind kind, const std::string& hint = {}) const;
  /// Fails where the input is a padded sequence, whose padding this layer cannot tell from tokens.
  void require_unpadded(const std::string& hint) const;
};

/// The layers that come with Gallop.
LayerRegistry built_in_layers();

}  // namespace gallop::model
