#include "gallop/model/tabular_input.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include <ATen/TensorOperators.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/zeros.h>

#include "gallop/model/functional/embedding.h"
#include "gallop/model/network.h"

namespace gallop::model {

namespace {

int64_t embedding_width(int64_t indices) {
  constexpr int64_t kMost = 600;
  return std::min<int64_t>(kMost, std::llround(1.6 * std::pow(static_cast<double>(indices), 0.56)));
}

size_t bins_of(const Task& task, size_t feature) {
  const size_t edges = feature < task.bins.size() ? task.bins[feature].size() : 0;
  return edges < 2 ? 1 : edges - 1;
}

}  // namespace

TabularInput::TabularInput(Initializer& initializer, const TabularInputConfig& config,
                           const Task& task)
    : config_(config) {
  const int64_t features = task.features, width = config.embedding_width;
  const auto uniform = [&](int64_t rows, int64_t columns, int64_t fan_in) {
    return initializer.bias(rows * columns, fan_in, {}).view({rows, columns});
  };
  if (config.number_embedding == "piecewise-linear") {
    add_bins(initializer, task);
    weight_ = register_parameter("numbers_weight", uniform(features, width, width));
    bias_ = register_parameter("numbers_bias", uniform(features, width, width));
  } else if (config.number_embedding == "periodic") {
    const int64_t inner = 2 * config.frequencies;
    waves_ = register_parameter(
        "numbers_frequencies",
        initializer.truncated_normal({features, config.frequencies}, config.frequency_scale,
                                     3 * config.frequency_scale));
    values_ = register_parameter(
        "numbers_values", uniform(features * inner, width, inner).view({features, inner, -1}));
    bias_ = register_parameter("numbers_bias", uniform(features, width, inner));
  }
  const bool is_embedded = config.number_embedding != "none";
  for (int64_t i = 0; i < features; ++i) chunks_.push_back(is_embedded ? width : 1);
  for (size_t i = 0; i < task.categories.size(); ++i) {
    const int64_t size = embedding_width(task.categories[i]);
    categories_.push_back(register_parameter("categories_" + std::to_string(i),
                                             initializer.normal({task.categories[i], size}, 1)));
    chunks_.push_back(size);
  }
}

// The encoding is scale x + shift, limited to low and high; beyond the bins of a number it is 0.
void TabularInput::add_bins(Initializer& initializer, const Task& task) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const int64_t features = task.features;
  size_t most = 1;
  for (size_t i = 0; i < static_cast<size_t>(features); ++i) {
    most = std::max(most, bins_of(task, i));
  }
  const auto bins = static_cast<int64_t>(most);
  scale_ = register_buffer("bins_scale", initializer.constant({features, bins}, 0));
  shift_ = register_buffer("bins_shift", initializer.constant({features, bins}, 0));
  low_ = register_buffer("bins_low", initializer.constant({features, bins}, 0));
  high_ = register_buffer("bins_high", initializer.constant({features, bins}, 1));
  values_ = register_parameter("numbers_values",
                               initializer.constant({features, bins, config_.embedding_width}, 0));
  if (scale_.is_meta()) return;
  const auto at = [&](const at::Tensor& tensor, int64_t row, size_t column) -> float& {
    return tensor.mutable_data_ptr<float>()[row * bins + static_cast<int64_t>(column)];
  };
  for (int64_t i = 0; i < features; ++i) {
    const size_t count = bins_of(task, static_cast<size_t>(i));
    at(low_, i, 0) = static_cast<float>(-kInfinity);
    at(high_, i, count - 1) = static_cast<float>(kInfinity);
    at(scale_, i, 0) = 1;
    if (static_cast<size_t>(i) >= task.bins.size() || task.bins[static_cast<size_t>(i)].size() < 2)
      continue;
    const std::vector<double>& edges = task.bins[static_cast<size_t>(i)];
    for (size_t bin = 0; bin < count; ++bin) {
      const double size = edges[bin + 1] - edges[bin];
      at(scale_, i, bin) = static_cast<float>(1 / size);
      at(shift_, i, bin) = static_cast<float>(-edges[bin] / size);
    }
  }
}

int64_t TabularInput::width() const {
  int64_t width = 0;
  for (const int64_t chunk : chunks_) width += chunk;
  return width;
}

at::Tensor TabularInput::encode(const at::Tensor& numbers) const {
  const at::Tensor each = numbers.unsqueeze(-1);
  if (config_.number_embedding == "periodic") {
    const at::Tensor angles = each * waves_ * (2 * std::numbers::pi);
    return at::cat({angles.cos(), angles.sin()}, -1);
  }
  return at::minimum(at::maximum(each * scale_ + shift_, low_), high_);
}

at::Tensor TabularInput::embed_numbers(const at::Tensor& numbers) const {
  if (config_.number_embedding == "none") return numbers;
  // By number: [F, N, T] x [F, T, d].
  const at::Tensor encoded = encode(numbers).transpose(0, 1);
  const at::Tensor embedded = at::bmm(encoded, values_).transpose(0, 1);
  if (config_.number_embedding == "periodic") return at::relu(embedded + bias_).flatten(1);
  return (embedded + numbers.unsqueeze(-1) * weight_ + bias_).flatten(1);
}

at::Tensor TabularInput::forward(const at::Tensor& numbers, const at::Tensor& categories) const {
  at::Tensor embedded = embed_numbers(numbers);
  if (categories_.empty()) return embedded;
  at::Tensor indices = categories;
  if (!indices.defined()) {
    indices = at::zeros({numbers.size(0), static_cast<int64_t>(categories_.size())},
                        numbers.options().dtype(at::kLong));
  }
  std::vector<at::Tensor> parts = {embedded};
  for (size_t i = 0; i < categories_.size(); ++i) {
    parts.push_back(
        functional::embedding(indices.select(1, static_cast<int64_t>(i)), categories_[i])
            .to(embedded.scalar_type()));
  }
  return at::cat(parts, 1);
}

TabularBatch tabular_batch(const NamedTensors& batch) {
  const at::Tensor* const categories = find_tensor(batch, "categories");
  return {.numbers = batch.front().tensor,
          .categories = categories == nullptr ? at::Tensor() : *categories};
}

void require_table(const Task& task, const std::string& model) {
  require(task.kind == Task::Kind::kNumbers,
          "model '" + model + "' takes tables, but the data are " +
              (task.kind == Task::Kind::kImages ? "images; use 'resnet'" : "text; use 'gpt'"));
  require(task.context == 0,
          "model '" + model + "' takes tables, but the rows are no vectors; use 'layers'");
  require_one_output(task, model);
  require(task.features > 0 && task.classes > 0,
          "model '" + model + "' needs at least one input and one output");
}

void visit(config::Visitor& visitor, TabularInputConfig& config) {
  visitor.field(
      {.name = "number_embedding",
       .help =
           "embedding of numbers: piecewise-linear (bins of the training data), periodic, or none",
       .choices = {"piecewise-linear", "periodic", "none"}},
      config.number_embedding);
  visitor.field(
      {.name = "embedding_width", .help = "elements of the embedding of a number", .min = 1},
      config.embedding_width);
  visitor.field(
      {.name = "frequencies", .help = "frequencies per number of the periodic embedding", .min = 1},
      config.frequencies);
  visitor.field({.name = "frequency_scale",
                 .help = "standard deviation of the initial frequencies",
                 .min = 0,
                 .above_min = true},
                config.frequency_scale);
}

}  // namespace gallop::model
