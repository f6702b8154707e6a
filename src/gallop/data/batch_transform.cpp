#include "gallop/data/batch_transform.h"

#include <cmath>
#include <numbers>

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/philox.h"

namespace gallop::data {

namespace {

class GaussianNoise final : public BatchTransform {
 public:
  explicit GaussianNoise(const GaussianNoiseConfig& config) : config_(config) {}

  void check(const Fields& fields) const override {
    const Field& input = fields.input();
    if (c10::isFloatingType(input.shape.dtype)) return;
    throw UsageError(fmt::format(
        "data.batch_transforms: gaussian-noise is for numbers, but the input '{}' holds indices",
        input.name));
  }

  void apply(const BatchKey& key, Batch& batch) const override {
    at::Tensor& input = batch.tensors[batch.fields->input_index()];
    if (input.numel() == 0) return;
    const int64_t rows = input.size(0), each = input.numel() / rows;
    const at::Tensor noise = at::empty({rows, each}, at::kFloat);
    for (int64_t row = 0; row < rows; ++row) {
      draw(key, batch.epoch, batch.position + row, noise.mutable_data_ptr<float>() + row * each,
           each);
    }
    input = input.add(noise.reshape(input.sizes()).to(input.device(), input.scalar_type()));
  }

 private:
  // Pairs of normal values by Box and Muller (1958), in the order of a row's elements.
  void draw(const BatchKey& key, int64_t epoch, int64_t position, float* out, int64_t count) const {
    Philox random(key.seed, Purpose::kNoise, static_cast<uint64_t>(epoch),
                  static_cast<uint64_t>(position));
    for (int64_t i = 0; i < count; i += 2) {
      const double radius = config_.sigma * std::sqrt(-2 * std::log(1 - random.uniform()));
      const double angle = 2 * std::numbers::pi * random.uniform();
      out[i] = static_cast<float>(config_.mean + radius * std::cos(angle));
      if (i + 1 < count) out[i + 1] = static_cast<float>(config_.mean + radius * std::sin(angle));
    }
  }

  GaussianNoiseConfig config_;
};

}  // namespace

BatchTransformRegistry built_in_batch_transforms() {
  BatchTransformRegistry registry("batch transform");
  registry.add("gaussian-noise", "adds normal noise to the input", make_gaussian_noise);
  return registry;
}

std::shared_ptr<const BatchTransforms> build_batch_transforms(
    const BatchTransformRegistry& registry, const config::ComponentList& list,
    const Fields& fields) {
  if (list.items.empty()) return nullptr;
  auto transforms = std::make_shared<BatchTransforms>();
  for (const config::Component& one : list.items) {
    transforms->push_back(registry.build(one));
    transforms->back()->check(fields);
  }
  return transforms;
}

void visit(config::Visitor& visitor, GaussianNoiseConfig& config) {
  visitor.field({.name = "mean", .help = "mean of the noise"}, config.mean);
  visitor.field({.name = "sigma", .help = "standard deviation of the noise", .min = 0},
                config.sigma);
}

std::unique_ptr<BatchTransform> make_gaussian_noise(const GaussianNoiseConfig& config) {
  return std::make_unique<GaussianNoise>(config);
}

}  // namespace gallop::data
