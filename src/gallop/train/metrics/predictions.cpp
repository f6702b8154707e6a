#include "gallop/train/metrics/predictions.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/error.h"
#include "gallop/data/text_samples.h"
#include "gallop/train/losses/shapes.h"

namespace gallop::train {

namespace {

[[noreturn]] void does_not_fit(const Predictions& batch) {
  throw InternalError(fmt::format("outputs of {} do not fit targets of {}",
                                  fmt::join(batch.outputs.sizes(), "x"),
                                  fmt::join(batch.target.sizes(), "x")));
}

template <typename T>
std::vector<T> values_of(const at::Tensor& tensor) {
  const at::Tensor host = tensor.cpu().contiguous();
  std::vector<T> values(static_cast<size_t>(host.numel()));
  if (!values.empty()) std::memcpy(values.data(), host.const_data_ptr(), values.size() * sizeof(T));
  return values;
}

}  // namespace

ClassRows class_rows(const Predictions& batch) {
  at::Tensor logits = batch.outputs.detach();
  const at::Tensor& target = batch.target;
  const auto wanted = target.sizes();
  if (logits.dim() != target.dim() + 1) does_not_fit(batch);
  const bool is_last = logits.sizes().slice(0, static_cast<size_t>(target.dim())) == wanted;
  const bool is_second = target.dim() > 0 && logits.size(0) == target.size(0) &&
                         logits.sizes().slice(2) == wanted.slice(1);
  if (!is_last && !is_second) does_not_fit(batch);
  // Both, if there are as many classes as rows and columns of an image.
  if (is_second && (!is_last || class_dimension(logits) == 1)) logits = logits.movedim(1, -1);
  return {.logits = logits.reshape({-1, logits.size(-1)}).to(at::kFloat),
          .target = target.reshape(-1).to(at::kLong)};
}

LabelRows label_rows(const Predictions& batch, const MetricTask& task) {
  const bool is_binary = task.target == MetricTask::Target::kBinary;
  const int64_t columns = is_binary ? 1 : batch.outputs.size(-1);
  if (batch.outputs.numel() != batch.target.numel()) does_not_fit(batch);
  const at::Tensor target = batch.target.reshape({-1, columns});
  at::Tensor counts = target.ne(data::kIgnoredTarget);
  return {.logits = batch.outputs.detach().reshape({-1, columns}).to(at::kFloat),
          .truth = target.gt(0.5).logical_and(counts),
          .counts = std::move(counts)};
}

HostNumbers host_numbers(const Predictions& batch) {
  if (batch.outputs.numel() != batch.target.numel()) does_not_fit(batch);
  const int64_t last = batch.target.dim() > 1 ? batch.target.size(-1) : 1;
  return {.columns = std::max<int64_t>(1, last),
          .outputs = batch.outputs.detach().cpu().to(at::kDouble).contiguous(),
          .target = batch.target.cpu().to(at::kDouble).contiguous()};
}

HostRows host_rows(const Predictions& batch, const MetricTask& task) {
  HostRows host;
  if (!task.has_classes()) {
    const LabelRows rows = label_rows(batch, task);
    host.rows = rows.logits.size(0);
    host.columns = rows.logits.size(1);
    host.logits = values_of<float>(rows.logits);
    host.truth = values_of<uint8_t>(rows.truth);
    host.counts = values_of<uint8_t>(rows.counts);
    return host;
  }
  const ClassRows rows = class_rows(batch);
  host.columns = rows.logits.size(1);
  const std::vector<float> logits = values_of<float>(rows.logits);
  const std::vector<int64_t> target = values_of<int64_t>(rows.target);
  for (size_t i = 0; i < target.size(); ++i) {
    if (target[i] == data::kIgnoredTarget) continue;
    host.target.push_back(target[i]);
    const auto* const row = logits.data() + i * static_cast<size_t>(host.columns);
    host.logits.insert(host.logits.end(), row, row + host.columns);
  }
  host.rows = static_cast<int64_t>(host.target.size());
  return host;
}

void probabilities_of(const float* logits, int64_t classes, std::vector<float>& probabilities) {
  const double highest = *std::max_element(logits, logits + classes);
  double sum = 0;
  std::vector<double> powers(static_cast<size_t>(classes));
  for (size_t i = 0; i < powers.size(); ++i) {
    powers[i] = std::exp(logits[i] - highest);
    sum += powers[i];
  }
  probabilities.resize(powers.size());
  for (size_t i = 0; i < powers.size(); ++i) probabilities[i] = static_cast<float>(powers[i] / sum);
}

double probability_of(float logit) { return 1 / (1 + std::exp(-static_cast<double>(logit))); }

}  // namespace gallop::train
