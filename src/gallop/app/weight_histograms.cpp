#include "gallop/app/weight_histograms.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/histc.h>
#include <ATen/ops/isfinite.h>

#include "gallop/track/histogram.h"

namespace gallop::app {

namespace {

constexpr int64_t kParts = 30;  // TensorBoard's number of bins.

track::Histogram histogram_of(const at::Tensor& tensor) {
  track::Histogram histogram;
  const at::Tensor all = tensor.detach().to(at::kFloat).flatten();
  const at::Tensor finite = all.masked_select(at::isfinite(all));
  histogram.not_finite = all.numel() - finite.numel();
  if (finite.numel() == 0) return histogram;
  histogram.least = finite.min().item<double>();
  histogram.most = finite.max().item<double>();
  if (histogram.least == histogram.most) {  // histc would widen the range.
    histogram.counts = {finite.numel()};
    return histogram;
  }
  const at::Tensor counts =
      at::histc(finite, kParts, histogram.least, histogram.most).to(at::kLong).cpu();
  const int64_t* const values = counts.const_data_ptr<int64_t>();
  histogram.counts.assign(values, values + counts.numel());
  return histogram;
}

}  // namespace

WeightHistograms::WeightHistograms(const fs::path& run, int64_t step, const model::Model& model)
    : path_(track::histograms_of(run)), writer_(path_, step, {}), model_(model) {}

void WeightHistograms::evaluated(const train::EvaluationEvent& event) {
  const at::NoGradGuard no_gradients;
  for (const auto& parameter : model_.parameters()) {
    track::Histogram histogram = histogram_of(parameter.tensor);
    histogram.name = parameter.name;
    histogram.step = event.step;
    writer_.append(track::record_of(histogram));
  }
}

void WeightHistograms::went_back(int64_t step) { writer_ = track::LogWriter(path_, step, {}); }

}  // namespace gallop::app
