#include "gallop/train/step_format.h"

#include <algorithm>
#include <limits>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "gallop/base/clock.h"
#include "gallop/train/loss.h"

namespace gallop::train {

namespace {

using precision::Precision;

constexpr int kPasses = 3;
constexpr double kWorthwhile = 0.95;

double time_pass(model::Model& model, const NamedTensors& parameters, const at::Tensor& input,
                 const at::Tensor& target, Precision precision) {
  for (const auto& parameter : parameters) parameter.tensor.mutable_grad().reset();
  const double start = monotonic_seconds();
  at::Tensor loss;
  {
    const precision::AutocastGuard autocast(precision, input.device().type());
    loss = cross_entropy_sum(model.forward(input), target, 0);
  }
  loss.backward();
  // Reading a gradient waits for the device.
  const at::Tensor& gradient = parameters.front().tensor.grad();
  if (gradient.defined()) gradient.reshape(-1).slice(0, 0, 1).cpu();
  return 1000 * (monotonic_seconds() - start);
}

}  // namespace

std::string StepFormat::describe() const {
  return fmt::format("{}{}", precision::name_of(precision), channels_last ? ", channels_last" : "");
}

std::vector<StepFormat> candidate_formats(const std::string& precision,
                                          const std::string& channels_last, bool images,
                                          at::Device device) {
  std::vector<Precision> precisions{Precision::kFp32, Precision::kBf16};
  if (device.is_cuda()) precisions.push_back(Precision::kFp16);
  if (precision != "auto") precisions = {precision::parse_precision(precision)};
  std::vector<bool> orders{false, true};
  if (channels_last != "auto") orders = {channels_last == "true"};
  if (!images) orders = {false};

  std::vector<StepFormat> formats;
  for (const Precision candidate : precisions) {
    for (const bool order : orders) formats.push_back({candidate, order});
  }
  return formats;
}

std::vector<FormatTiming> time_formats(model::Model& model, const at::Tensor& input,
                                       const at::Tensor& target,
                                       const std::vector<StepFormat>& formats) {
  const NamedTensors buffers = model.buffers();
  std::vector<at::Tensor> statistics;
  for (const auto& buffer : buffers) statistics.push_back(buffer.tensor.clone());

  std::vector<FormatTiming> timings;
  for (const auto& format : formats) {
    timings.push_back({format, std::numeric_limits<double>::max()});
  }
  for (int pass = 0; pass <= kPasses; ++pass) {
    for (auto& timing : timings) {
      model.to(input.device(), timing.format.channels_last);
      const double time =
          time_pass(model, model.parameters(), input, target, timing.format.precision);
      if (pass > 0) timing.milliseconds = std::min(timing.milliseconds, time);
    }
  }

  for (const auto& parameter : model.parameters()) parameter.tensor.mutable_grad().reset();
  model.to(input.device(), formats.front().channels_last);
  const at::NoGradGuard no_gradients;
  for (size_t i = 0; i < buffers.size(); ++i) buffers[i].tensor.copy_(statistics[i]);
  return timings;
}

StepFormat pick_format(const std::vector<FormatTiming>& timings) {
  const FormatTiming* best = &timings.front();
  for (const auto& timing : timings) {
    if (timing.milliseconds < kWorthwhile * best->milliseconds) best = &timing;
  }
  return best->format;
}

}  // namespace gallop::train
