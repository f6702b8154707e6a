#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/model/functional/dropout.h"
#include "gallop/model/model.h"
#include "gallop/parallel/pipeline.h"
#include "gallop/parallel/stage_backward.h"

namespace gallop::train {

/// The forward and backward passes of a step in a pipeline, for the stages of this process.
class PipelineStep {
 public:
  /// Both must outlive it.
  PipelineStep(model::Model& model, const parallel::Pipeline& pipeline);

  /// Runs a forward pass in the step's number format.
  using InFormat = std::function<void(const std::function<void()>& pass)>;
  /// What a step does in the passes.
  struct Functions {
    InFormat in_format;
    /// The sum of losses of a micro-batch, from the output of the last stage.
    std::function<at::Tensor(const model::Output& output, size_t micro_batch)> loss_of;
    at::Tensor loss_gradient;                 ///< By which a backward pass begins.
    model::functional::DropoutPlace draws{};  ///< Of the first micro-batch.
  };

  /// Computes the gradients of the parameters of this process's stages: the sums over micro-batches
  /// in their order. `batches` are all micro-batches, with the input first; a step may have fewer
  /// than those for which the schedule is made, `micro_batches`. All processes pass the same.
  void run(const std::vector<NamedTensors>& batches, int64_t micro_batches,
           const Functions& functions);

  /// Runs the whole model forward, block by block, on the first micro-batch of each size, which
  /// determines the layouts of the tensors between stages, and how many dropouts each stage has, so
  /// that it draws the numbers that one process would. Must precede run(). Returns false, and does
  /// nothing, for known sizes. Otherwise buffers change, and LibTorch's generator may be used.
  bool plan_stages(const std::vector<NamedTensors>& batches, const InFormat& in_format);

 private:
  using Place = std::pair<int, size_t>;  // A stage and a micro-batch.
  struct Live {
    std::vector<at::Tensor> inputs, outputs;            // The first stage has no inputs.
    std::optional<parallel::StageBackward> backward{};  // Between its two parts.
  };
  struct Received {
    at::Tensor tensor, flat;  // The same memory; `flat` is defined while it is under way.
  };
  using Message = std::vector<Received>;  // What one stage passes on to the next.
  // A tensor between stages.
  struct Layout {
    at::ScalarType type = at::kFloat;
    bool requires_grad = false;
    std::vector<int64_t> sizes, strides;
    bool operator==(const Layout&) const = default;
  };
  // For micro-batches of one size.
  struct Plan {
    std::vector<int64_t> draws;  // Dropouts before each stage and, behind them, of all.
    std::vector<std::vector<Layout>> layouts;  // Outputs of each stage but the last.
  };
  struct Run {
    const std::vector<NamedTensors>* batches = nullptr;
    const Functions* functions = nullptr;
    std::vector<const Plan*> plans;    // One per micro-batch.
    std::vector<int64_t> first_draws;  // Dropouts before each micro-batch.
    std::map<Place, Live> live;
    // By the stage that needs them. Those of tensors that require no gradient are undefined.
    std::map<Place, Message> activations, gradients;
    std::map<Place, std::vector<at::Tensor>> input_gradients;  // To be sent.
    std::map<int, std::deque<std::vector<at::Tensor>>> sends;  // Under way, by rank.
    // Gradients of tied weights from the first and from the last stage, by micro-batch.
    std::map<size_t, Message> of_first, of_last;
    size_t added = 0;  // Micro-batches whose gradients of tied weights have been added up.
  };

  bool is_last(int stage) const { return stage + 1 == schedule_.stages(); }
  bool is_here(int stage) const { return schedule_.rank_of(stage) == pipeline_.rank(); }
  parallel::Collectives& collectives() const { return pipeline_.parameters().collectives(); }
  void plan(int64_t micro_batches);
  Plan plan_size(const NamedTensors& batch, const InFormat& in_format);
  void compute(const parallel::PipelineAction& action);
  void forward(const Place& place);
  void backward(const Place& place, parallel::PipelinePass pass);
  void hand_on(const Place& place, const std::vector<at::Tensor>& inputs);
  void compute_weight_gradients(const Place& place, const std::function<void()>& compute);
  void add_tied_gradients();
  std::vector<at::Tensor> take_tied_gradients() const;
  void send(const parallel::PipelineInstruction& instruction);
  void receive(const parallel::PipelineInstruction& instruction);
  static Layout layout_of(const at::Tensor& tensor);
  static std::vector<Layout> layouts_of(const std::vector<at::Tensor>& tensors);
  const std::vector<Layout>& layouts_of(const Place& outputs) const {
    return run_.plans[outputs.second]->layouts[static_cast<size_t>(outputs.first)];
  }
  static at::Tensor taken(const Received& received);
  static std::vector<at::Tensor> taken(const Message& message);
  Received start_to_receive(const Layout& layout, int from) const;
  void send_tensors(const std::vector<at::Tensor>& tensors, int to);
  void finish_sends(int to, size_t most);

  model::Model& model_;
  const parallel::Pipeline& pipeline_;
  parallel::PipelineSchedule schedule_;
  std::vector<parallel::PipelineInstruction> program_;  // That of this rank.
  std::map<std::vector<int64_t>, Plan> plans_;          // By the sizes of a micro-batch.
  std::vector<at::Tensor> tied_;  // Weights that the first and the last stage read.
  Run run_;
};

}  // namespace gallop::train
