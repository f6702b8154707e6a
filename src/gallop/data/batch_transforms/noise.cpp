#include "gallop/data/batch_transforms/noise.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/masked_fill.h>
#include <c10/util/accumulate.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/philox.h"
#include "gallop/data/draw.h"

namespace gallop::data {

namespace {

void require_numbers(const char* transform, const Fields& fields) {
  const Field& input = fields.input();
  if (c10::isFloatingType(input.shape.dtype)) return;
  throw UsageError(
      fmt::format("data.batch_transforms: {} is for numbers, but the input '{}' holds indices",
                  transform, input.name));
}

// The random numbers of each row of the batch, as draw(random, out) writes them: [rows, each].
template <typename T, typename Draw>
at::Tensor draw_rows(const BatchKey& key, Purpose purpose, const Batch& batch, int64_t each,
                     c10::ScalarType dtype, const Draw& draw) {
  const int64_t rows = batch.size();
  at::Tensor drawn = at::empty({rows, each}, dtype);
  for (int64_t row = 0; row < rows; ++row) {
    Philox random(key.seed, purpose, static_cast<uint64_t>(batch.epoch),
                  static_cast<uint64_t>(batch.position_of(row)));
    draw(random, drawn.mutable_data_ptr<T>() + row * each);
  }
  return drawn;
}

class GaussianNoise final : public BatchTransform {
 public:
  explicit GaussianNoise(const GaussianNoiseConfig& config) : config_(config) {}

  void check(const Fields& fields) const override { require_numbers("gaussian-noise", fields); }

  void apply(const BatchKey& key, Batch& batch) const override {
    at::Tensor& input = batch.tensors[batch.fields->input_index()];
    if (input.numel() == 0) return;
    const int64_t each = input.numel() / input.size(0);
    const at::Tensor noise = draw_rows<float>(
        key, Purpose::kNoise, batch, each, at::kFloat, [&](Philox& random, float* out) {
          draw_normal(random, config_.mean, config_.sigma, {out, static_cast<size_t>(each)});
        });
    input = input.add(noise.reshape(input.sizes()).to(input.device(), input.scalar_type()));
  }

 private:
  GaussianNoiseConfig config_;
};

class PixelDropout final : public BatchTransform {
 public:
  explicit PixelDropout(const PixelDropoutConfig& config) : config_(config) {}

  void check(const Fields& fields) const override { require_numbers("pixel-dropout", fields); }

  void apply(const BatchKey& key, Batch& batch) const override {
    at::Tensor& input = batch.tensors[batch.fields->input_index()];
    if (input.numel() == 0) return;
    // Images [N, C, H, W] have one mask for all channels.
    std::vector<int64_t> sizes = input.sizes().vec();
    if (sizes.size() > 3) sizes[1] = 1;
    const int64_t each = c10::multiply_integers(sizes) / input.size(0);
    const at::Tensor drops = draw_rows<bool>(key, Purpose::kPixelDropout, batch, each, at::kBool,
                                             [&](Philox& random, bool* out) {
                                               for (int64_t i = 0; i < each; ++i)
                                                 out[i] = random.uniform() < config_.p;
                                             });
    input = input.masked_fill(drops.reshape(sizes).to(input.device()), config_.value);
  }

 private:
  PixelDropoutConfig config_;
};

}  // namespace

void visit(config::Visitor& visitor, GaussianNoiseConfig& config) {
  visitor.field({.name = "mean", .help = "mean of the noise"}, config.mean);
  visitor.field({.name = "sigma", .help = "standard deviation of the noise", .min = 0},
                config.sigma);
}

std::unique_ptr<BatchTransform> make_gaussian_noise(const GaussianNoiseConfig& config) {
  return std::make_unique<GaussianNoise>(config);
}

void visit(config::Visitor& visitor, PixelDropoutConfig& config) {
  visitor.field({.name = "p", .help = "probability of replacing a pixel", .min = 0, .max = 1},
                config.p);
  visitor.field({.name = "value", .help = "new value; 0 is the mean of the data"}, config.value);
}

std::unique_ptr<BatchTransform> make_pixel_dropout(const PixelDropoutConfig& config) {
  return std::make_unique<PixelDropout>(config);
}

}  // namespace gallop::data
