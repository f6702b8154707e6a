#include "gallop/train/step/pipeline.h"

#include <algorithm>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "gallop/base/error.h"
#include "gallop/base/trace.h"
#include "gallop/parallel/packed.h"
#include "gallop/parallel/sums.h"
#include "gallop/tensor/recording.h"

namespace gallop::train {

namespace {

using parallel::PipelineInstruction;
using parallel::PipelinePass;

// Messages to one rank that are under way at most, so that they do not stay in memory for long.
constexpr size_t kMostSends = 2;

// Only dense tensors are sent.
std::vector<at::Tensor> dense(std::vector<at::Tensor> tensors) {
  for (at::Tensor& tensor : tensors) {
    if (!tensor.is_non_overlapping_and_dense()) tensor = tensor.contiguous();
  }
  return tensors;
}

// The inputs of the next stage in the same process.
std::vector<at::Tensor> detached(const std::vector<at::Tensor>& outputs) {
  std::vector<at::Tensor> inputs;
  for (const at::Tensor& output : outputs) {
    inputs.push_back(output.detach().set_requires_grad(output.requires_grad()));
  }
  return inputs;
}

// On which the layouts of all other tensors depend.
std::vector<int64_t> sizes_of(const NamedTensors& batch) {
  std::vector<int64_t> sizes;
  for (const auto& [name, tensor] : batch) {
    sizes.insert(sizes.end(), tensor.sizes().begin(), tensor.sizes().end());
  }
  return sizes;
}

}  // namespace

PipelineStep::PipelineStep(model::Model& model, const parallel::Pipeline& pipeline)
    : model_(model), pipeline_(pipeline) {
  const NamedTensors& parameters = pipeline.parameters().parameters();
  for (const std::string& name : pipeline.tied()) tied_.push_back(*find_tensor(parameters, name));
}

void PipelineStep::plan(int64_t micro_batches) {
  if (schedule_.micro_batches == micro_batches && !program_.empty()) return;
  schedule_ = pipeline_.schedule(micro_batches);
  program_ = pipeline_program(schedule_, !tied_.empty())[static_cast<size_t>(pipeline_.rank())];
}

bool PipelineStep::plan_stages(const std::vector<NamedTensors>& batches,
                               const InFormat& in_format) {
  bool is_new = false;
  for (const NamedTensors& batch : batches) {
    std::vector<int64_t> sizes = sizes_of(batch);
    if (plans_.contains(sizes)) continue;
    plans_.emplace(std::move(sizes), plan_size(batch, in_format));
    is_new = true;
  }
  return is_new;
}

PipelineStep::Plan PipelineStep::plan_size(const NamedTensors& batch, const InFormat& in_format) {
  const model::functional::DropoutScope scope(at::zeros({2}, at::kLong));
  Plan plan{.draws = {0}, .layouts = {}};
  std::vector<at::Tensor> passed;
  for (const parallel::StageBlocks& blocks : pipeline_.stages()) {
    for (int64_t block = blocks.begin; block < blocks.end; ++block) {
      std::vector<at::Tensor> outputs;  // What autograd saves of a block ends with them.
      in_format([&] {
        outputs = dense(model_.forward_blocks(batch, passed, block, block + 1).passed_on);
      });
      passed = detached(outputs);
    }
    plan.draws.push_back(model::functional::DropoutScope::place().calls);
    plan.layouts.push_back(layouts_of(passed));
  }
  plan.layouts.pop_back();
  return plan;
}

PipelineStep::Layout PipelineStep::layout_of(const at::Tensor& tensor) {
  return {.type = tensor.scalar_type(),
          .requires_grad = tensor.requires_grad(),
          .sizes = tensor.sizes().vec(),
          .strides = tensor.strides().vec()};
}

std::vector<PipelineStep::Layout> PipelineStep::layouts_of(const std::vector<at::Tensor>& tensors) {
  std::vector<Layout> layouts;
  for (const at::Tensor& tensor : tensors) layouts.push_back(layout_of(tensor));
  return layouts;
}

void PipelineStep::run(const std::vector<NamedTensors>& batches, int64_t micro_batches,
                       const Functions& functions) {
  plan(micro_batches);
  run_ = Run();
  run_.batches = &batches;
  run_.functions = &functions;
  int64_t draws = 0;
  for (const NamedTensors& batch : batches) {
    const auto found = plans_.find(sizes_of(batch));
    if (found == plans_.end()) throw InternalError("pipeline: a micro-batch is not planned");
    run_.plans.push_back(&found->second);
    run_.first_draws.push_back(draws);
    draws += found->second.draws.back();
  }
  for (const PipelineInstruction& instruction : program_) {
    // A smaller batch leaves some out.
    if (static_cast<size_t>(instruction.action.micro_batch) >= batches.size()) continue;
    switch (instruction.kind) {
      case PipelineInstruction::Kind::kCompute: compute(instruction.action); break;
      case PipelineInstruction::Kind::kSend: send(instruction); break;
      case PipelineInstruction::Kind::kReceive: receive(instruction); break;
    }
  }
  add_tied_gradients();
  for (const auto& [to, tensors] : run_.sends) finish_sends(to, 0);
  run_ = Run();
}

void PipelineStep::compute(const parallel::PipelineAction& action) {
  const Place place(action.stage, static_cast<size_t>(action.micro_batch));
  if (action.pass == PipelinePass::kForward) {
    forward(place);
  } else {
    backward(place, action.pass);
  }
}

void PipelineStep::forward(const Place& place) {
  const TraceSpan span(SpanKind::kPhase, "forward");
  const auto [stage, micro_batch] = place;
  const parallel::StageBlocks blocks = pipeline_.stages()[static_cast<size_t>(stage)];
  Live live;
  const NamedTensors& batch = (*run_.batches)[micro_batch];
  if (stage > 0) live.inputs = taken(run_.activations.extract(place).mapped());
  model::functional::DropoutPlace draws = run_.functions->draws;
  draws.calls +=
      run_.first_draws[micro_batch] + run_.plans[micro_batch]->draws[static_cast<size_t>(stage)];
  const model::functional::DropoutScope scope(draws);
  run_.functions->in_format([&] {
    model::Output output = model_.forward_blocks(batch, live.inputs, blocks.begin, blocks.end);
    live.outputs = is_last(stage)
                       ? std::vector<at::Tensor>{run_.functions->loss_of(output, micro_batch)}
                       : dense(std::move(output.passed_on));
  });
  if (!is_last(stage) && is_here(stage + 1)) {
    Message& message = run_.activations[{stage + 1, micro_batch}];
    for (const at::Tensor& input : detached(live.outputs)) message.push_back({input, {}});
  }
  run_.live.emplace(place, std::move(live));
}

void PipelineStep::backward(const Place& place, PipelinePass pass) {
  const TraceSpan span(SpanKind::kPhase, "backward");
  Live& live = run_.live.at(place);
  const int stage = place.first;
  std::vector<at::Tensor> gradients;  // One per output, including those that need none.
  if (pass != PipelinePass::kWeightGradient) {
    gradients = is_last(stage) ? std::vector<at::Tensor>{run_.functions->loss_gradient}
                               : taken(run_.gradients.extract(place).mapped());
  }
  std::vector<at::Tensor> outputs, of_outputs;  // Those that are trained.
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!live.outputs[i].requires_grad()) continue;
    outputs.push_back(live.outputs[i]);
    of_outputs.push_back(gradients[i]);
  }
  if (pass == PipelinePass::kInputGradient) {
    if (!outputs.empty()) live.backward.emplace(outputs, of_outputs, live.inputs);
  } else if (live.backward || !outputs.empty()) {  // Otherwise frozen, as all stages before it.
    compute_weight_gradients(place, [&] {
      if (live.backward) {
        live.backward->compute_weight_gradients();
      } else {
        parallel::compute_gradients(outputs, of_outputs);
      }
    });
  }
  if (stage > 0 && pass != PipelinePass::kWeightGradient) hand_on(place, live.inputs);
  if (pass != PipelinePass::kInputGradient) run_.live.erase(place);
}

// Gives the gradients of a stage's inputs to the stage before it.
void PipelineStep::hand_on(const Place& place, const std::vector<at::Tensor>& inputs) {
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& input : inputs) {
    at::Tensor& gradient = gradients.emplace_back(input.grad());
    // That of an input that no output depends on is undefined.
    if (input.requires_grad() && !gradient.defined()) gradient = at::zeros_like(input.detach());
  }
  const auto [stage, micro_batch] = place;
  if (is_here(stage - 1)) {
    Message& message = run_.gradients[{stage - 1, micro_batch}];
    for (at::Tensor& gradient : gradients) message.push_back({std::move(gradient), {}});
  } else {
    run_.input_gradients[place] = std::move(gradients);
  }
}

// Gradients of tied weights are kept apart until those of both stages are there: in one process,
// they are added before those of other micro-batches.
void PipelineStep::compute_weight_gradients(const Place& place,
                                            const std::function<void()>& compute) {
  const auto [stage, micro_batch] = place;
  if (tied_.empty() || (stage != 0 && !is_last(stage))) {
    compute();
    return;
  }
  const std::vector<at::Tensor> sums = take_tied_gradients();
  compute();
  auto& of_stage = (stage == 0 ? run_.of_first : run_.of_last)[micro_batch];
  for (const at::Tensor& gradient : take_tied_gradients()) {
    of_stage.push_back({.tensor = gradient, .flat = {}});
  }
  for (size_t i = 0; i < tied_.size(); ++i) tied_[i].mutable_grad() = sums[i];
  add_tied_gradients();
}

// Undefined ones are 0.
std::vector<at::Tensor> PipelineStep::take_tied_gradients() const {
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& weight : tied_) {
    gradients.push_back(weight.grad());
    weight.mutable_grad().reset();
  }
  return gradients;
}

// In the order of micro-batches, as far as both stages have computed them.
void PipelineStep::add_tied_gradients() {
  const at::NoGradGuard no_grad;
  if (tied_.empty() || !is_here(0)) return;
  for (;; ++run_.added) {
    const auto first = run_.of_first.find(run_.added), last = run_.of_last.find(run_.added);
    if (first == run_.of_first.end() || last == run_.of_last.end()) return;
    for (size_t i = 0; i < tied_.size(); ++i) {
      at::Tensor sum = taken(last->second[i]);
      const at::Tensor& other = first->second[i].tensor;
      if (other.defined()) sum = sum.defined() ? sum.add_(other) : other;
      at::Tensor& all = tied_[i].mutable_grad();
      if (sum.defined()) all = all.defined() ? all.add_(sum) : sum;
    }
    run_.of_first.erase(first);
    run_.of_last.erase(last);
  }
}

void PipelineStep::send(const PipelineInstruction& instruction) {
  const Place place(instruction.action.stage, static_cast<size_t>(instruction.action.micro_batch));
  const int to = instruction.peer;
  switch (instruction.action.pass) {
    case PipelinePass::kForward: {
      const std::vector<at::Tensor>& outputs = run_.live.at(place).outputs;
      if (layouts_of(outputs) != layouts_of(place)) {
        throw InternalError("pipeline: an output of a stage has another layout than planned");
      }
      return send_tensors(outputs, to);
    }
    case PipelinePass::kBackward:
    case PipelinePass::kInputGradient:
      return send_tensors(run_.input_gradients.extract(place).mapped(), to);
    case PipelinePass::kWeightGradient: {
      std::vector<at::Tensor> gradients = taken(run_.of_last.extract(place.second).mapped());
      for (size_t i = 0; i < tied_.size(); ++i) {
        if (!gradients[i].defined()) gradients[i] = at::zeros_like(tied_[i].detach());
      }
      return send_tensors(gradients, to);
    }
  }
}

void PipelineStep::receive(const PipelineInstruction& instruction) {
  const Place place(instruction.action.stage, static_cast<size_t>(instruction.action.micro_batch));
  const int from = instruction.peer;
  switch (instruction.action.pass) {
    case PipelinePass::kForward: {
      Message& message = run_.activations[{place.first + 1, place.second}];
      for (const Layout& layout : layouts_of(place)) {
        message.push_back(start_to_receive(layout, from));
      }
      return;
    }
    case PipelinePass::kBackward:
    case PipelinePass::kInputGradient: {
      const Place here(place.first - 1, place.second);
      Message& message = run_.gradients[here];
      for (Layout layout : layouts_of(here)) {
        const bool has_gradient = std::exchange(layout.requires_grad, false);
        message.push_back(has_gradient ? start_to_receive(layout, from) : Received());
      }
      return;
    }
    case PipelinePass::kWeightGradient:
      for (const at::Tensor& weight : tied_) {
        run_.of_last[place.second].push_back(start_to_receive({.type = weight.scalar_type(),
                                                               .sizes = weight.sizes().vec(),
                                                               .strides = weight.strides().vec()},
                                                              from));
      }
      return;
  }
}

at::Tensor PipelineStep::taken(const Received& received) {
  if (received.flat.defined()) parallel::wait_tensor(received.flat);
  return received.tensor;
}

std::vector<at::Tensor> PipelineStep::taken(const Message& message) {
  std::vector<at::Tensor> tensors;
  for (const Received& received : message) tensors.push_back(taken(received));
  return tensors;
}

PipelineStep::Received PipelineStep::start_to_receive(const Layout& layout, int from) const {
  const at::Tensor flat =
      at::empty({c10::multiply_integers(layout.sizes)},
                run_.batches->front().front().tensor.options().dtype(layout.type));
  if (flat.numel() > 0) {
    if (is_recording()) {  // A dry run receives nothing, and uninitialized memory may be NaN.
      const Unrecorded unrecorded;
      flat.zero_();
    }
    const parallel::SubgroupScope group(collectives());
    parallel::recv_async(flat, from);
  }
  at::Tensor tensor = flat.as_strided(layout.sizes, layout.strides);
  tensor.set_requires_grad(layout.requires_grad);
  return {.tensor = tensor, .flat = flat.numel() > 0 ? flat : at::Tensor()};
}

// Undefined and empty ones are not sent.
void PipelineStep::send_tensors(const std::vector<at::Tensor>& tensors, int to) {
  finish_sends(to, kMostSends - 1);
  std::vector<at::Tensor>& sent = run_.sends[to].emplace_back();
  const parallel::SubgroupScope group(collectives());
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.defined() || tensor.numel() == 0) continue;
    sent.push_back(parallel::in_memory_order(tensor));
    parallel::send_async(sent.back(), to);
  }
}

void PipelineStep::finish_sends(int to, size_t most) {
  auto& sends = run_.sends[to];
  for (; sends.size() > most; sends.pop_front()) {
    for (const at::Tensor& tensor : sends.front()) parallel::wait_tensor(tensor);
  }
}

}  // namespace gallop::train
