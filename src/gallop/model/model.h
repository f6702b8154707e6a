#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/config/component.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop::model {

/// What the data look like to a model.
struct Task {
  enum class Kind { kImages, kText };
  Kind kind = Kind::kImages;
  int64_t channels = 0;  ///< Images: channels, height and width of one input.
  int64_t height = 0;
  int64_t width = 0;
  int64_t classes = 0;  ///< Images: number of labels. Text: size of the vocabulary.
  int64_t context = 0;  ///< Text: tokens in one input.
};

/// A model to train. Its parameters require gradients; its code knows no rank, precision or loss.
class Model {
 public:
  virtual ~Model() = default;

  /// Images: input float [N, C, H, W] to logits [N, classes].
  /// Text: input int64 [N, T], T at most the context, to logits [N, T, classes].
  virtual at::Tensor forward(const at::Tensor& input) = 0;

  /// Trained tensors in a fixed order, named as in torchvision, timm or transformers.
  virtual NamedTensors parameters() const = 0;
  /// Tensors that belong to the state but are not trained, such as batch norm's statistics.
  virtual NamedTensors buffers() const = 0;

  /// Switches dropout and batch norm between training and evaluation.
  virtual void set_training(bool training) = 0;
  /// Moves to a device and, for models of images, to channels_last where asked.
  virtual void to(at::Device device, bool channels_last) = 0;
};

/// Builds models by name: `task` says what the data look like, `seed` decides the initial weights.
/// Throws UsageError where the model cannot take such data.
using ModelRegistry = config::Registry<Model, const Task&, uint64_t>;

/// The models that come with Gallop.
ModelRegistry built_in_models();

/// One line of a model's table.
struct LayerSummary {
  std::string name;    ///< "layer1.0.conv1"
  std::string type;    ///< "conv2d 3x3"
  std::vector<int64_t> output_sizes;
  int64_t parameters = 0;        ///< Numbers trained.
  int64_t flops = 0;             ///< Forward, for one input; a multiply-add counts as two.
  int64_t activation_bytes = 0;  ///< Kept for backward, for one input in fp32.
};

/// Runs one input of the task's shape through the model and lists every layer that computes.
std::vector<LayerSummary> summarize(Model& model, const Task& task);

}  // namespace gallop::model
