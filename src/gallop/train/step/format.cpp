#include "gallop/train/step/format.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <exception>
#include <functional>
#include <limits>
#include <utility>

#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/optim/gradients.h"
#include "gallop/train/losses/members.h"
#include "gallop/train/out_of_memory.h"
#include "gallop/train/tensor_snapshot.h"

namespace gallop::train {

namespace {

using precision::Precision;

// A pass that takes this long can be timed with fewer rows than the batch has.
constexpr double kLongSeconds = 0.015;
constexpr int64_t kFewRows = 4;

// The first pass in a format selects kernels and allocates memory; the second one still takes
// longer than those that follow, as some memory is new to it. A candidate may be timed only once.
constexpr int kWarmUpPasses = 2;

// LibTorch's bf16 GEMMs take 10 to 100 times as long as fp32's on CPUs without bf16 instructions,
// and a step of a transformer there many seconds. With them the ratio is below 1.
constexpr double kSlowGemm = 4;

struct Pass {
  MeasuredCost cost;
  double work_seconds = 0;  ///< CPU time on the CPU, which does not depend on other programs.
};

Pass time_pass(model::Model& model, const NamedTensors& parameters, const NamedTensors& batch,
               Precision precision, const Loss& loss_function) {
  optim::drop_gradients(parameters);
  const at::Device device = batch.front().tensor.device();
  const precision::Tf32Guard tf32(precision, device.type());
  const bool works = device.is_cpu();
  const CostMeter meter(works);
  at::Tensor loss;
  {
    const precision::AutocastGuard autocast(precision, device.type());
    loss = losses_of(loss_function, model.forward_to_head(batch), batch).sum;
  }
  loss.backward();
  // Reading a gradient waits for the device.
  const at::Tensor& gradient = parameters.front().tensor.grad();
  if (gradient.defined()) gradient.reshape(-1).slice(0, 0, 1).cpu();
  const double work_seconds = meter.thread_seconds();
  const MeasuredCost cost = meter.read();
  return {.cost = cost, .work_seconds = works ? work_seconds : cost.seconds};
}

// The number of rows with which a pass in this format takes long; all if they are too few.
int64_t rows_to_time(model::Model& model, const NamedTensors& batch, const StepFormat& format,
                     const Loss& loss) {
  const int64_t all = batch.front().tensor.size(0);
  model.to(batch.front().tensor.device(), format.channels_last);
  for (int64_t rows = std::min(kFewRows, all);;) {
    double time = std::numeric_limits<double>::max();
    for (int pass = 0; pass < 2; ++pass) {
      time = std::min(time, time_pass(model, model.parameters(), slice_rows(batch, 0, rows),
                                      format.precision, loss)
                                .work_seconds);
    }
    if (rows == all || time >= kLongSeconds) return rows;
    const auto needed = std::ceil(static_cast<double>(rows) * kLongSeconds / time);
    rows = std::min(all, std::max(2 * rows, static_cast<int64_t>(needed)));
  }
}

// CPU time of this thread for a GEMM of 128 x 256 x 256, which other programs do not prolong.
double gemm_seconds(at::ScalarType type) {
  const at::Tensor x = at::ones({128, 256}, type), weight = at::ones({256, 256}, type);
  // On a busy machine this thread may spin until another one of the GEMM gets a core.
  constexpr double kEnough = 0.01;
  double least = std::numeric_limits<double>::max();
  const CostMeter meter(/*works=*/true);
  for (int run = 0; run < 4 || meter.thread_seconds() < kEnough; ++run) {
    const double begin = meter.thread_seconds();
    at::mm(x, weight);
    least = std::min(least, meter.thread_seconds() - begin);
  }
  return least;
}

// Removes the formats in bf16 if its GEMMs are slow on this CPU, and returns the reason.
std::vector<std::string> exclude_slow_bf16(std::vector<StepFormat>& formats) {
  const double ratio = gemm_seconds(at::kBFloat16) / gemm_seconds(at::kFloat);
  if (ratio < kSlowGemm) return {};
  std::erase_if(formats, [](const StepFormat& one) { return one.precision == Precision::kBf16; });
  return {fmt::format("{} excluded, because a GEMM takes {:.0f} times as long",
                      precision::name_of(Precision::kBf16), ratio)};
}

// Runs a pass in a format, and removes the format if the model fails in it, for example at a view
// of contiguous memory in channels_last. The error of the last one left is thrown. Returns whether
// the format is still there.
bool keep_if_it_works(std::vector<StepFormat>& formats, size_t index,
                      const std::function<void()>& pass, std::vector<std::string>& excluded) {
  try {
    pass();
    return true;
  } catch (const UsageError& error) {
    if (formats.size() == 1 || out_of_memory(std::current_exception())) throw;
    const std::string what = error.what();
    excluded.push_back(fmt::format("{} excluded, because it fails: {}", formats[index].describe(),
                                   printable(what.substr(0, what.find('\n')))));
  }
  formats.erase(formats.begin() + static_cast<std::ptrdiff_t>(index));
  return false;
}

}  // namespace

std::string StepFormat::describe() const {
  return fmt::format("{}{}", precision::name_of(precision), channels_last ? ", channels_last" : "");
}

std::vector<StepFormat> candidate_formats(const std::string& precision,
                                          const std::string& channels_last, bool images,
                                          at::Device device) {
  // fp8 and other formats that may change the result must be requested explicitly.
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

FormatChoice choose_format(model::Model& model, const NamedTensors& batch,
                           std::vector<StepFormat> formats, const Loss& loss, double uses) {
  const at::Device device = batch.front().tensor.device();
  std::vector<std::string> excluded;
  // On a CPU the candidates are fp32, bf16, or both.
  if (device.is_cpu() && formats.front().precision != formats.back().precision) {
    excluded = exclude_slow_bf16(formats);
  }
  const TensorSnapshot statistics(model.buffers());
  int64_t rows = 0;
  const auto find_rows = [&] { rows = rows_to_time(model, batch, formats.back(), loss); };
  while (!keep_if_it_works(formats, formats.size() - 1, find_rows, excluded)) {
  }
  const NamedTensors some = slice_rows(batch, 0, rows);
  const auto measure = [&](size_t candidate) {
    const StepFormat& format = formats[candidate];
    model.to(device, format.channels_last);
    return time_pass(model, model.parameters(), some, format.precision, loss).cost;
  };
  for (size_t i = 0; i < formats.size();) {
    const auto warm_up = [&] {
      for (int pass = 0; pass < kWarmUpPasses; ++pass) measure(i);
    };
    if (keep_if_it_works(formats, i, warm_up, excluded)) i += 1;
  }
  std::vector<std::string> names;
  for (const StepFormat& format : formats) names.push_back(format.describe());
  FormatChoice choice;
  choice.scale = static_cast<double>(batch.front().tensor.size(0)) / static_cast<double>(rows);
  choice.measured = choose_by_measuring(names, measure, {.uses = choice.scale * uses});
  choice.measured.excluded = std::move(excluded);
  choice.format = formats[choice.measured.chosen];

  optim::drop_gradients(model.parameters());
  model.to(device, formats.front().channels_last);
  statistics.restore();
  return choice;
}

}  // namespace gallop::train
