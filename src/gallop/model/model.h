#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/config/component.h"
#include "gallop/model/output.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop::model {

/// What the data look like to a model.
struct Task {
  enum class Kind { kImages, kText, kNumbers };
  Kind kind = Kind::kImages;
  int64_t channels = 0;  ///< Images: channels, height and width of one input.
  int64_t height = 0;
  int64_t width = 0;
  /// Outputs for each target: classes, labels, numbers, or tokens; 0: the model chooses, as of
  /// embeddings.
  int64_t classes = 0;
  int64_t context = 0;     ///< Text: tokens in one input.
  int64_t vocabulary = 0;  ///< Text: how many different tokens; 0: as `classes`.
  int64_t features = 0;    ///< Numbers in one input.
  /// An output for each token or pixel; by default of text, and not of images or numbers.
  std::optional<bool> per_element{};
  bool bidirectional = false;  ///< Text: an output may depend on later tokens.
  bool padded = false;         ///< Text: tokens below 0 fill short ones up to one length.
  int64_t views = 1;           ///< Text: how many a sample has, each with an embedding.

  bool is_per_element() const { return per_element.value_or(kind == Kind::kText); }
  int64_t tokens() const { return vocabulary > 0 ? vocabulary : classes; }
};

/// A model to train. Its parameters require gradients; its code knows no rank, precision or loss.
class Model {
 public:
  virtual ~Model() = default;

  /// Images: input float [N, C, H, W]. Text: input int64 [N, T], T at most the context. Numbers:
  /// input float [N, features]. To outputs [N, classes], or where the task has one for each element
  /// [N, classes, H, W] and [N, T, classes]. Several texts a sample: input [N, T, views], of which
  /// predictions may have fewer, to embeddings [N, views, D].
  virtual at::Tensor forward(const at::Tensor& input) = 0;
  /// The same with the last product left to the loss, for models of large vocabularies.
  virtual Output forward_to_head(const at::Tensor& input) { return {forward(input)}; }

  /// The same of a batch: "input", "target", then further fields by their names, which a model with
  /// several inputs reads here. By default of "input" alone.
  virtual at::Tensor forward(const NamedTensors& batch) { return forward(batch.front().tensor); }
  virtual Output forward_to_head(const NamedTensors& batch) {
    return forward_to_head(batch.front().tensor);
  }

  /// How many images a new model wants to see before it is trained, which decide some of its
  /// weights; 0 for most models. Where the data have fewer, those.
  virtual int64_t images_to_initialize() const { return 0; }
  /// Shows them, as forward() takes them.
  virtual void initialize_from(const at::Tensor& /*images*/) {}

  /// Trained tensors in a fixed order, named as in torchvision, timm or nanoGPT. A tensor that two
  /// layers share stands once, under its first name.
  virtual NamedTensors parameters() const = 0;
  /// Tensors that belong to the state but are not trained, such as batch norm's statistics.
  virtual NamedTensors buffers() const = 0;

  /// Blocks of layers, in their order, whose activations may be computed again in the backward pass
  /// rather than kept; 0 where there are none, or where that would spare nothing.
  virtual int64_t blocks() const { return 0; }
  /// Which of them are, one flag a block; none at first. No gradient changes.
  virtual void recompute(const std::vector<bool>& /*blocks*/) {}

  /// How many linear layers have their products in fp8 where a step is: those of sizes that are
  /// multiples of 16, but the last.
  virtual int64_t fp8_layers() const { return 0; }

  /// Switches dropout and batch norm between training and evaluation. A new model is in training.
  virtual void set_training(bool training) = 0;
  virtual bool training() const = 0;
  /// Moves to a device and, for models of images, to channels_last where asked. Before the first
  /// backward; parameters stay the same tensors.
  virtual void to(at::Device device, bool channels_last) = 0;
};

/// What a new model's weights hold. A number stands for its seed.
struct InitialWeights {
  // NOLINTNEXTLINE(google-explicit-constructor): meant to be written as a number
  InitialWeights(uint64_t number = 0) : seed(number) {}
  uint64_t seed;
  /// Parameters on the meta device: sizes without memory or values, to plan models of any size.
  bool sizes_only = false;
};

class Layer;
struct LayerContext;
/// Builds layers by name; see model/layer/layer.h.
using LayerRegistry = config::Registry<Layer, LayerContext&>;

/// Builds models by name: `task` says what the data look like.
/// Throws UsageError where the model cannot take such data.
struct ModelRegistry final : config::Registry<Model, const Task&, InitialWeights> {
  ModelRegistry() : Registry("model") {}
  LayerRegistry layers{"layer"};  ///< Of which the model "layers" is made.
};

/// The models that come with Gallop.
ModelRegistry built_in_models();

}  // namespace gallop::model
