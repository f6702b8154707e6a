#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/config/component.h"
#include "gallop/model/output.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop {
class BlockHooks;
class TensorGroup;
enum class ContextMethod : uint8_t;
struct ParallelizedModel;
}  // namespace gallop

namespace gallop::model {

/// The shapes of inputs and targets.
struct Task {
  enum class Kind { kImages, kText, kNumbers };
  Kind kind = Kind::kImages;
  int64_t channels = 0;  ///< Images: channels, height and width of one input.
  int64_t height = 0;
  int64_t width = 0;
  /// Outputs per target: classes, labels, numbers, or tokens. 0: the model chooses, for example the
  /// size of embeddings.
  int64_t classes = 0;
  int64_t context = 0;     ///< Text: maximum tokens in one input. Numbers: T of [T, C], or 0.
  int64_t vocabulary = 0;  ///< Text: number of different tokens; 0: as `classes`.
  int64_t features = 0;    ///< Numbers: count in one input, or in a step of a sequence.
  /// Tables: boundaries of bins of each of these features, for piecewise-linear encodings.
  std::vector<std::vector<double>> bins{};
  /// Tables: the number of indices of each category in the field "categories".
  std::vector<int64_t> categories{};
  /// What the mean over several predictions of one sample is taken of.
  enum class Outputs { kClasses, kLabels, kNumbers };
  Outputs outputs = Outputs::kClasses;
  /// Whether there is an output per token or pixel. Default: true for text, otherwise false.
  std::optional<bool> per_element{};
  /// Whether outputs are sequences [T, classes] of any length T.
  bool sequences = false;
  bool bidirectional = false;  ///< Text: an output may depend on later tokens.
  bool padded = false;         ///< Text: short inputs are padded with negative tokens.
  int64_t views = 1;           ///< Texts, images or rows per sample, each with an embedding.

  bool is_per_element() const { return per_element.value_or(kind == Kind::kText); }
  int64_t tokens() const { return vocabulary > 0 ? vocabulary : classes; }
};

/// The blocks of layers at whose borders the forward pass can be cut, for pipelines.
struct BlockSequence {
  /// The names of the parameters and buffers that each block has. What the model reads before its
  /// first block and after its last one counts as part of these. Empty: the model cannot be cut.
  std::vector<std::vector<std::string>> tensors{};
  /// Parameters of the first block that the last one reads as well.
  std::vector<std::string> tied{};
};

/// The field of packed rows; see Model::takes_packed_rows().
inline constexpr const char* kPositionIds = "position_ids";

/// A model to train. Parameters require gradients; rank, precision and loss are external to it.
class Model {
 public:
  virtual ~Model() = default;

  /// Images: input float [N, C, H, W]. Text: input int64 [N, T], where T is at most the context.
  /// Numbers: input float [N, features] or [N, T, features], and in batches "categories" int64
  /// [N, C]. Output [N, classes], or per element [N, classes, H, W] and [N, T, classes]. With
  /// several views per sample: text [N, T, views] or others [N, views, ...], where views may be
  /// fewer in predictions, and output embeddings [N, views, D]. With sequences, output
  /// [N, any T, classes].
  virtual at::Tensor forward(const at::Tensor& input) = 0;
  /// Like forward(), but leaves the last GEMM to the loss in models with large vocabularies.
  virtual Output forward_to_head(const at::Tensor& input) { return {forward(input)}; }

  /// Like the above, on a batch: "input", "target", then further fields by name, for models with
  /// several inputs. The default uses only "input".
  virtual at::Tensor forward(const NamedTensors& batch) { return forward(batch.front().tensor); }
  virtual Output forward_to_head(const NamedTensors& batch) {
    return forward_to_head(batch.front().tensor);
  }

  /// Whether rows may be packed, that is, contain several texts. Batches then have the field
  /// kPositionIds, int64 [N, T], which is 0 where a text begins and counts up from there, and an
  /// output depends on the tokens of its text only.
  virtual bool takes_packed_rows() const { return false; }

  /// Whether images may have another size than that of the task.
  virtual bool takes_any_size() const { return false; }

  /// The number of images that a new model needs before training to initialize some of its weights;
  /// 0 for most models. If the data has fewer, all of them are used.
  virtual int64_t images_to_initialize() const { return 0; }
  /// Initializes these weights from images in the format of forward().
  virtual void initialize_from(const at::Tensor& /*images*/) {}

  /// Trainable tensors in a fixed order, named as in torchvision, timm or nanoGPT. A tensor shared
  /// by several layers is listed once, under its first name.
  virtual NamedTensors parameters() const = 0;
  /// Tensors that are part of the state but not trained, such as batch norm's statistics.
  virtual NamedTensors buffers() const = 0;
  /// Those buffers that training steps write, which processes must keep equal.
  virtual NamedTensors statistics() const { return buffers(); }

  /// Whether Output::auxiliary_loss is defined in training.
  virtual bool has_auxiliary_loss() const { return false; }
  /// The number of elements of Output::step_statistics, fp64, which a step adds up over its whole
  /// batch for update_statistics(); 0 if the model counts nothing.
  virtual int64_t statistics_size() const { return 0; }
  /// Changes buffers at the end of a step, by what all processes have counted.
  virtual void update_statistics(const at::Tensor& /*statistics*/) {}
  /// What these buffers say about the steps since the last call, in one line; empty for nothing.
  virtual std::string statistics_report() { return {}; }

  /// The number of blocks of layers that support activation checkpointing; 0 if there are none or
  /// if it would save no memory.
  virtual int64_t blocks() const { return 0; }
  /// Enables activation checkpointing, one flag per block. Default: none. Gradients do not change.
  virtual void recompute(const std::vector<bool>& /*blocks*/) {}

  /// The names of the parameters that each block of layers reads and nothing else does; empty if
  /// the model has no blocks. There may be blocks that support no activation checkpointing.
  virtual std::vector<std::vector<std::string>> block_parameters() const { return {}; }
  /// Sets what is called around the passes of these blocks, each of which runs once in a forward
  /// pass; null, as initially, for nothing. It must outlive the model, or be replaced.
  virtual void set_block_hooks(BlockHooks* /*hooks*/) {}
  /// Divides the layers among the processes of a group, which must outlive the model. From then on
  /// parameters() are this process's parts, and the processes call forward() together, with the
  /// same inputs. Throws UsageError if they cannot divide this model.
  virtual ParallelizedModel parallelize(const TensorGroup& group);
  /// Divides the tokens of each text among the processes of a group, which must outlive the model.
  /// From then on the processes call forward() together, with the same inputs, and each computes
  /// the gradients of its tokens. Throws UsageError if the model does not support it.
  virtual void divide_tokens(const TensorGroup& group, ContextMethod method);
  /// Leaves each process of a group, which must outlive the model, an equal part of the experts.
  /// From then on parameters() are this process's, and the processes call forward() together, each
  /// with its own samples, also if there are none. Throws UsageError if the model has no experts or
  /// the processes do not divide their number.
  virtual ParallelizedModel divide_experts(const TensorGroup& group);
  /// Where a pipeline can cut the model.
  virtual BlockSequence block_sequence() const { return {}; }
  /// The part of forward_to_head(batch) from block `begin` to before block `end` of
  /// block_sequence(). `passed` is what the block before passes on, none for the first block.
  /// Without the last block, only Output::passed_on is defined: what the next block needs, which
  /// may include elements of `passed`.
  virtual Output forward_blocks(const NamedTensors& batch, const std::vector<at::Tensor>& passed,
                                int64_t begin, int64_t end);

  /// The number of linear layers whose GEMMs run in fp8 in fp8 steps: those with sizes that are
  /// multiples of 16, except the last layer.
  virtual int64_t fp8_layers() const { return 0; }

  /// Switches dropout and batch norm between training (initially) and evaluation mode.
  virtual void set_training(bool training) = 0;
  virtual bool training() const = 0;
  /// Moves the model to a device and, for image models, optionally to channels_last. Must be called
  /// before the first backward; parameters remain the same tensor objects.
  virtual void to(at::Device device, bool channels_last) = 0;

  /// The only number of samples that training steps may have; 0: any. Other steps than those of
  /// training may have any number.
  virtual int64_t fixed_batch() const { return 0; }

  /// What draws from LibTorch's generator in training, whose numbers depend on how a batch is
  /// divided; empty if nothing does.
  virtual std::string draws_from_generator() const { return {}; }

  /// The files that the model was built from. Their content is part of a run's identity.
  virtual std::vector<std::string> files() const { return {}; }
  /// Saves what else than recipe and weights is needed to build the model again, into a run's
  /// folder; see InitialWeights::run.
  virtual void save_definition(const std::string& /*run*/) const {}
  /// Warnings for the user, one line each.
  virtual std::vector<std::string> notes() const { return {}; }
};

/// The initialization of a new model's weights. An integer converts to its seed.
struct InitialWeights {
  // NOLINTNEXTLINE(google-explicit-constructor): meant to be written as a number
  InitialWeights(uint64_t number = 0) : seed(number) {}
  uint64_t seed;
  /// Creates parameters on the meta device, without memory or values, to plan models of any size.
  bool sizes_only = false;
  /// The folder of a run whose model is built again, from its save_definition() and with any
  /// weights, which are loaded afterwards. Empty: a new model. Only read by the factory.
  std::string_view run{};
};

class Layer;
struct LayerContext;
/// Builds layers by name; see model/layer/layer.h.
using LayerRegistry = config::Registry<Layer, LayerContext&>;

/// Builds models by name; `task` describes the data. Throws UsageError if the model does not
/// support such data.
struct ModelRegistry final : config::Registry<Model, const Task&, InitialWeights> {
  ModelRegistry() : Registry("model") {}
  LayerRegistry layers{"layer"};  ///< For the model "layers".
};

/// Whether a built-in model reads the categories of tables as indices, which it embeds.
bool embeds_categories(const std::string& model);

/// The built-in models.
ModelRegistry built_in_models();

}  // namespace gallop::model
