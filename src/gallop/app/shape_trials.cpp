#include "gallop/app/shape_trials.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <fmt/format.h>

#include "gallop/model/functional/conv2d.h"
#include "gallop/model/functional/linear.h"
#include "gallop/precision/precision.h"
#include "gallop/train/measured_choice.h"

namespace gallop::app {

namespace {

constexpr double kLeastShare = 0.08;  // Fraction of the step.
// Elements of a vector of 64 bytes in fp32; kernels for 16 bits work on pairs of as many.
constexpr int64_t kMultiple = 16;
// FLOPs of forward, and of the gradients of input and weight, for each multiply-add.
constexpr double kFlopsPerMultiplyAdd = 6;
// Convolutions with fewer inputs are grouped, or read the colors of images.
constexpr int64_t kLeastChannels = 16;

struct LayerShape {
  int64_t outputs = 0, inputs = 0;
  int64_t kernel = 0;  // Side of a square convolution; 0: a linear layer.

  std::string text() const { return fmt::format("{} inputs and {} outputs", inputs, outputs); }
  int64_t weights() const { return outputs * inputs * std::max<int64_t>(1, kernel * kernel); }
};

std::optional<LayerShape> shape_of(const at::Tensor& weight) {
  if (weight.dim() == 2) return LayerShape{.outputs = weight.size(0), .inputs = weight.size(1)};
  if (weight.dim() != 4 || weight.size(2) != weight.size(3)) return std::nullopt;
  if (weight.size(1) < kLeastChannels) return std::nullopt;
  return LayerShape{.outputs = weight.size(0), .inputs = weight.size(1), .kernel = weight.size(2)};
}

// The change of a model that is smallest.
int64_t nearest_multiple(int64_t size) {
  return std::max(kMultiple, (size + kMultiple / 2) / kMultiple * kMultiple);
}

// Forward and backward of a layer on random numbers.
class LayerStep {
 public:
  // `rows`: of a GEMM; the pixels of all samples for a convolution.
  LayerStep(const LayerShape& shape, int64_t rows, int64_t samples, const train::StepFormat& format)
      : kernel_(shape.kernel), precision_(format.precision) {
    if (kernel_ == 0) {
      input_ = at::randn({rows, shape.inputs});
      weight_ = at::randn({shape.outputs, shape.inputs});
    } else {
      const auto pixels = static_cast<double>(rows) / static_cast<double>(samples);
      const auto side = std::max<int64_t>(kernel_, std::llround(std::sqrt(pixels)));
      input_ = at::randn({samples, shape.inputs, side, side});
      weight_ = at::randn({shape.outputs, shape.inputs, kernel_, kernel_});
      if (format.channels_last) {
        input_ = input_.contiguous(c10::MemoryFormat::ChannelsLast);
        weight_ = weight_.contiguous(c10::MemoryFormat::ChannelsLast);
      }
    }
    input_.requires_grad_();
    weight_.requires_grad_();
    run();
  }

  train::MeasuredCost time() {
    const train::CostMeter meter(/*works=*/true);
    run();
    return meter.read();
  }

 private:
  void run() {
    at::Tensor output;
    {
      const precision::AutocastGuard autocast(precision_, c10::kCPU);
      output = kernel_ == 0 ? model::functional::linear(input_, weight_, {})
                            : model::functional::conv2d(input_, weight_, {}, 1, (kernel_ - 1) / 2);
    }
    if (!gradient_.defined()) gradient_ = at::randn_like(output);
    output.backward(gradient_);
    input_.mutable_grad().reset();
    weight_.mutable_grad().reset();
  }

  int64_t kernel_;
  precision::Precision precision_;
  at::Tensor input_, weight_, gradient_;
};

}  // namespace

std::vector<advise::ShapeTrial> time_layer_shapes(Session& session,
                                                  const profile::Profile& profile) {
  std::vector<advise::ShapeTrial> trials;
  if (!session.device().is_cpu()) return trials;
  const train::StepFormat& format = session.format();
  const int64_t samples =
      std::max<int64_t>(1, profile.samples / session.recipe().train.gradient_accumulation);
  const NamedTensors parameters = session.model().parameters();
  for (const profile::LayerTime& layer : profile.layers) {
    if (layer.name.empty() || profile.share_of(layer.seconds()) < kLeastShare) continue;
    const at::Tensor* weight = find_tensor(parameters, layer.name + ".weight");
    const auto shape = weight == nullptr ? std::nullopt : shape_of(*weight);
    if (!shape) continue;
    LayerShape better = *shape;
    better.outputs = nearest_multiple(shape->outputs);
    better.inputs = nearest_multiple(shape->inputs);
    if (better.outputs == shape->outputs && better.inputs == shape->inputs) continue;
    const auto rows = static_cast<int64_t>(
        layer.flops / (kFlopsPerMultiplyAdd * static_cast<double>(shape->weights())));
    if (rows < samples) continue;
    LayerStep own(*shape, rows, samples, format), other(better, rows, samples, format);
    const auto choice = train::choose_by_measuring(
        {shape->text(), better.text()},
        [&](size_t candidate) { return candidate == 0 ? own.time() : other.time(); },
        {.rounds = 5, .most_seconds = 2, .hopeless = 3});
    trials.push_back(
        {.layer = layer.name,
         .sizes = shape->text(),
         .better_sizes = better.text(),
         .seconds = choice.candidates[1].seconds,
         .seconds_as_is = choice.candidates[0].seconds,
         .work = static_cast<double>(better.weights()) / static_cast<double>(shape->weights())});
  }
  return trials;
}

}  // namespace gallop::app
