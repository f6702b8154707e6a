#include "gallop/compile/replayer.h"

#include <utility>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/empty_strided.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/compile/tensor_in.h"

namespace gallop::compile {

namespace {

// The state of the random generator among an attention's results is on the host, except in a
// capture, where it is on the device.
bool keeps_generator_state(const Node& node) {
  return node.op.schema().name().starts_with("aten::_scaled_dot_product_efficient_attention");
}

// The device of all nodes, and the reason why its graphs cannot capture them, if any.
struct Suitability {
  c10::Device device = c10::kCPU;
  std::string against;
};

Suitability look_at(const Graph& graph) {
  Suitability result;
  for (const Buffer& buffer : graph.buffers) {
    if (!buffer.device.is_cpu()) result.device = buffer.device;
  }
  for (const Node& node : graph.nodes) {
    for (const Access& access : accesses_of(node)) {
      const Buffer& buffer = graph.buffer_of(access.view);
      if (access.writes && buffer.kind == Buffer::Kind::kInput) {
        result.against = name_of(node.op) + " changes an argument";
        return result;
      }
      if (buffer.device == result.device || keeps_generator_state(node)) continue;
      // Host memory would be read during the capture, not at each replay.
      if (buffer.is_constant) continue;
      result.against = fmt::format("{} works on memory of {} besides that of {}", name_of(node.op),
                                   buffer.device.str(), result.device.str());
      return result;
    }
  }
  return result;
}

}  // namespace

Replayer::Replayer(std::unique_ptr<Executor> executor, MakeDeviceGraph make)
    : executor_(std::move(executor)), make_(std::move(make)) {}

std::vector<at::Tensor> Replayer::run(const std::vector<at::Tensor>& inputs) {
  if (captured_) return replay(inputs);
  // The first run is not captured, as libraries allocate permanent resources when first called.
  if (!is_warm_ || !make_) {
    is_warm_ = true;
    return executor_->run(inputs);
  }
  capture(inputs);
  return captured_ ? replay(inputs) : executor_->run(inputs);
}

void Replayer::capture(const std::vector<at::Tensor>& inputs) {
  const auto make = std::exchange(make_, nullptr);
  const Suitability suits = look_at(executor_->graph());
  std::unique_ptr<DeviceGraph> graph = make(suits.device, fallback_reason_);
  if (!graph) return;
  fallback_reason_ = suits.against;
  for (const at::Tensor& input : inputs) {
    if (input.defined() && !input.is_non_overlapping_and_dense()) {
      fallback_reason_ = "an argument has several elements at one place, or gaps between them";
    }
  }
  const at::NoGradGuard no_grad;
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  if (fallback_reason_.empty()) {
    for (const at::Tensor& input : inputs) {
      inputs_.push_back(input.defined()
                            ? at::empty_strided(input.sizes(), input.strides(), input.options())
                            : input);
    }
    try {
      graph->capture([&] { outputs_ = executor_->run(inputs_); });
      captured_ = std::move(graph);
      return;
    } catch (const c10::Error& error) {
      fallback_reason_ = printable(error.what_without_backtrace());
    } catch (const DeviceError& error) {
      fallback_reason_ = error.what();
    }
  }
  fallback_reason_ = "the step cannot be captured as a device graph: " + fallback_reason_;
  inputs_.clear();
  outputs_.clear();
}

std::vector<at::Tensor> Replayer::replay(const std::vector<at::Tensor>& inputs) {
  const at::NoGradGuard no_grad;
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs_[i].defined()) inputs_[i].copy_(inputs[i], /*non_blocking=*/true);
  }
  captured_->replay();
  std::vector<at::Tensor> results;
  results.reserve(outputs_.size());
  const Graph& graph = executor_->graph();
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const at::Tensor& output = outputs_[i];
    if (!output.defined()) {
      results.emplace_back();
    } else if (graph.buffer_of(graph.outputs[i]).kind == Buffer::Kind::kState) {
      results.push_back(tensor_in(output, output.scalar_type(), output.sizes(), output.strides(),
                                  output.storage_offset()));
    } else {
      results.push_back(output.clone());  // The next replay overwrites it.
    }
  }
  return results;
}

}  // namespace gallop::compile
