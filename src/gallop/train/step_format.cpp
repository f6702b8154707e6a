#include "gallop/train/step_format.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "gallop/base/clock.h"
#include "gallop/optim/gradients.h"
#include "gallop/train/kept_tensors.h"

namespace gallop::train {

namespace {

using precision::Precision;

constexpr int kPasses = 3;
constexpr double kWorthwhile = 0.95;
// A pass that takes as long is timed well enough with fewer rows than the batch has.
constexpr double kLongMilliseconds = 15;
constexpr int64_t kFewRows = 4;
// So much slower, a format need not be timed again.
constexpr double kHopeless = 1.5;

double time_pass(model::Model& model, const NamedTensors& parameters, const at::Tensor& input,
                 const at::Tensor& target, Precision precision, const Loss& loss_function) {
  optim::drop_gradients(parameters);
  const precision::Tf32Guard tf32(precision, input.device().type());
  const double start = monotonic_seconds();
  at::Tensor loss;
  {
    const precision::AutocastGuard autocast(precision, input.device().type());
    loss = loss_function.sum({model.forward(input)}, {{"input", input}, {"target", target}});
  }
  loss.backward();
  // Reading a gradient waits for the device.
  const at::Tensor& gradient = parameters.front().tensor.grad();
  if (gradient.defined()) gradient.reshape(-1).slice(0, 0, 1).cpu();
  return 1000 * (monotonic_seconds() - start);
}

// How many rows of the batch a pass in this format needs to take long, all if they are too few.
int64_t rows_to_time(model::Model& model, const at::Tensor& input, const at::Tensor& target,
                     const StepFormat& format, const Loss& loss) {
  const int64_t all = input.size(0);
  model.to(input.device(), format.channels_last);
  for (int64_t rows = std::min(kFewRows, all);;) {
    double time = std::numeric_limits<double>::max();
    for (int pass = 0; pass < 2; ++pass) {
      time = std::min(time, time_pass(model, model.parameters(), input.narrow(0, 0, rows),
                                      target.narrow(0, 0, rows), format.precision, loss));
    }
    if (rows == all || time >= kLongMilliseconds) return rows;
    const auto needed = std::ceil(static_cast<double>(rows) * kLongMilliseconds / time);
    rows = std::min(all, std::max(2 * rows, static_cast<int64_t>(needed)));
  }
}

}  // namespace

std::string StepFormat::describe() const {
  return fmt::format("{}{}", precision::name_of(precision), channels_last ? ", channels_last" : "");
}

std::vector<StepFormat> candidate_formats(const std::string& precision,
                                          const std::string& channels_last, bool images,
                                          at::Device device) {
  // fp8 and what else may change the result is for those who ask for it.
  std::vector<Precision> precisions{Precision::kFp32, Precision::kBf16};
  if (device.is_cuda()) {
    precisions = {Precision::kFp32, Precision::kTf32, Precision::kBf16, Precision::kFp16};
  }
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
                                       const std::vector<StepFormat>& formats, const Loss& loss) {
  const KeptTensors statistics(model.buffers());
  std::vector<FormatTiming> timings;
  for (const auto& format : formats) {
    timings.push_back({format, std::numeric_limits<double>::max()});
  }
  const int64_t rows = rows_to_time(model, input, target, formats.back(), loss);
  const at::Tensor some = input.narrow(0, 0, rows), their_target = target.narrow(0, 0, rows);
  double best = std::numeric_limits<double>::max();
  for (int pass = 0; pass <= kPasses; ++pass) {
    for (auto& timing : timings) {
      if (pass > 1 && timing.milliseconds > kHopeless * best) continue;
      model.to(input.device(), timing.format.channels_last);
      const double time =
          time_pass(model, model.parameters(), some, their_target, timing.format.precision, loss);
      if (pass > 0) timing.milliseconds = std::min(timing.milliseconds, time);
      if (pass > 0) best = std::min(best, time);
    }
  }
  const double whole = static_cast<double>(input.size(0)) / static_cast<double>(rows);
  for (auto& timing : timings) timing.milliseconds *= whole;

  optim::drop_gradients(model.parameters());
  model.to(input.device(), formats.front().channels_last);
  statistics.put_back();
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
