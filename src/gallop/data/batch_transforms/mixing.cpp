#include "gallop/data/batch_transforms/mixing.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/permutation.h"
#include "gallop/base/philox.h"
#include "gallop/data/draw.h"

namespace gallop::data {

namespace {

MixingVariant variant_of(const std::string& name) {
  if (name == "timm") return MixingVariant::kTimm;
  return name == "fastai" ? MixingVariant::kFastai : MixingVariant::kTorchvision;
}

Mixing::Options options_of(const char* name, const MixingConfig& config) {
  using Mode = Mixing::Mode;
  if (config.mode != "batch" && config.variant != "timm") {
    throw UsageError(
        fmt::format("data.batch_transforms: {} has mode {}, which belongs to variant: timm, but "
                    "its variant is {}",
                    name, config.mode, config.variant));
  }
  return {.alpha = config.alpha,
          .p = config.p,
          .variant = variant_of(config.variant),
          .mode = config.mode == "pair"   ? Mode::kPair
                  : config.mode == "elem" ? Mode::kElement
                                          : Mode::kBatch};
}

class MixUp final : public Mixing {
 public:
  using Mixing::Mixing;
  void check(const Fields& fields) const override { check_mixed_fields("mixup", fields, false); }

 protected:
  MixedRow draw(int /*height*/, int /*width*/, Philox& random) const override {
    const double lambda = draw_lambda(random);
    const bool is_larger = options().variant == MixingVariant::kFastai;
    return {.keep = is_larger ? std::max(lambda, 1 - lambda) : lambda};
  }
};

class CutMix final : public Mixing {
 public:
  using Mixing::Mixing;
  void check(const Fields& fields) const override { check_mixed_fields("cutmix", fields, true); }

 protected:
  MixedRow draw(int height, int width, Philox& random) const override {
    const double lambda = draw_lambda(random);
    const auto x = static_cast<int>(random.below(static_cast<uint64_t>(width)));
    const auto y = static_cast<int>(random.below(static_cast<uint64_t>(height)));
    return mixed_by_area(cutmix_box(options().variant, height, width, lambda, y, x), height, width);
  }
};

// The plan of targets: numbers are mixed by lambda, masks are cut like the images.
std::vector<MixedRow> for_targets(std::vector<MixedRow> plan, const at::Tensor& target) {
  if (target.dim() >= 3) return plan;
  for (MixedRow& row : plan) row.box.reset();
  return plan;
}

}  // namespace

// Targets that are no class labels are numbers, which are mixed, or masks, which are cut.
void check_mixed_fields(const char* name, const Fields& fields, bool cuts) {
  const auto reject = [&](const std::string& why) {
    throw UsageError(fmt::format("data.batch_transforms: {} {}", name, why));
  };
  const RowShape& input = fields.input().shape;
  const RowShape& target = fields.target().shape;
  if (!c10::isFloatingType(input.dtype)) {
    reject(fmt::format("mixes numbers, but the input '{}' holds indices, such as tokens",
                       fields.input().name));
  }
  if (fields.input().padding || fields.target().padding) {
    reject("mixes samples of one size, but those of these data have different lengths");
  }
  if (fields.size() > 2) {
    for (size_t i = 0; i < fields.size(); ++i) {
      if (i == fields.input_index() || i == fields.target_index()) continue;
      reject(fmt::format(
          "mixes one input and its target, but samples have the field '{}' as well, for which "
          "mixing is not defined",
          fields[i].name));
    }
  }
  if (cuts && input.sizes.size() != 3) reject("cuts boxes out of images; use mixup");
  const bool is_mask = target.sizes.size() >= 2;
  if (cuts && is_mask &&
      !std::equal(target.sizes.end() - 2, target.sizes.end(), input.sizes.end() - 2)) {
    reject("cuts the same box out of image and target, which have different sizes");
  }
  if (!cuts && !target.sizes.empty() && !c10::isFloatingType(target.dtype)) {
    reject(
        "would need a probability of each class for every pixel, but the target is a mask of "
        "classes; use cutmix, which cuts masks as it cuts images");
  }
}

MixedRow mixed_by_area(const Region& box, int height, int width) {
  const double area = static_cast<double>(box.width) * box.height;
  return {.keep = 1 - area / (static_cast<double>(width) * height), .box = box};
}

Region cutmix_box(MixingVariant variant, int height, int width, double lambda, int center_y,
                  int center_x) {
  const double ratio = std::sqrt(1 - lambda);
  // The pixels before the centre, and from it on.
  const auto half = [&](int size) {
    if (variant == MixingVariant::kTorchvision) {
      const auto each = static_cast<int>(0.5 * ratio * size);
      return std::pair(each, each);
    }
    const bool is_timm = variant == MixingVariant::kTimm;
    const auto cut = static_cast<int>(is_timm ? size * ratio : std::nearbyint(size * ratio));
    return std::pair(cut / 2, is_timm ? (cut + 1) / 2 : cut / 2);
  };
  const auto clipped = [](int center, std::pair<int, int> sides, int size) {
    return std::pair(std::max(center - sides.first, 0), std::min(center + sides.second, size));
  };
  const auto [top, bottom] = clipped(center_y, half(height), height);
  const auto [left, right] = clipped(center_x, half(width), width);
  return {.top = top, .left = left, .height = bottom - top, .width = right - left};
}

double Mixing::draw_lambda(Philox& random) const {
  return draw_dirichlet(random, options_.alpha, 2)[0];
}

int64_t Mixing::partner(const BatchKey& key, const WholeBatch& whole, int64_t row) const {
  if (options_.variant == MixingVariant::kTorchvision) return (row + whole.size - 1) % whole.size;
  if (options_.variant == MixingVariant::kTimm) return whole.size - 1 - row;
  Philox random(key.seed, Purpose::kMixPartner, static_cast<uint64_t>(whole.epoch),
                static_cast<uint64_t>(whole.position));
  return Permutation(random.next_u64(), 0, whole.size)(row);
}

int64_t Mixing::most_partners(int64_t rows) const {
  return options_.variant == MixingVariant::kTorchvision ? 1 : rows;
}

std::vector<MixedRow> Mixing::plan(const BatchKey& key, const Batch& batch) const {
  const WholeBatch whole = batch.whole();
  std::vector<int64_t> rows(static_cast<size_t>(whole.size), -1);  // By the place in the batch.
  for (int64_t row = 0; row < batch.size(); ++row) {
    rows[static_cast<size_t>(batch.position_of(row) - whole.position)] = row;
  }
  const at::Tensor& input = batch.input();
  const bool is_image = input.dim() == 4;
  const int height = is_image ? static_cast<int>(input.size(2)) : 0;
  const int width = is_image ? static_cast<int>(input.size(3)) : 0;
  const auto draw_row = [&](Purpose purpose, int64_t place) {
    Philox random(key.seed, purpose, static_cast<uint64_t>(batch.epoch),
                  static_cast<uint64_t>(whole.position + place));
    if (random.uniform() >= options_.p) return MixedRow{};
    return draw(height, width, random);
  };
  const bool is_by_batch = options_.mode == Mode::kBatch;
  MixedRow of_batch;
  if (is_by_batch) of_batch = draw_row(Purpose::kMixBatch, 0);
  std::vector<MixedRow> plan;
  for (int64_t row = 0; row < batch.own_size(); ++row) {
    const int64_t place = batch.position_of(row) - whole.position;
    const int64_t other = partner(key, whole, place);
    MixedRow one = of_batch;
    if (!is_by_batch) {
      const int64_t drawn = options_.mode == Mode::kPair ? std::min(place, other) : place;
      one = draw_row(Purpose::kMixRow, drawn);
      one.keep = static_cast<float>(one.keep);  // As in timm, so that 1 - keep rounds alike.
    }
    // A row whose partner is broken does not change.
    const int64_t found = rows[static_cast<size_t>(other)];
    one.partner = found < 0 ? row : found;
    plan.push_back(one);
  }
  return plan;
}

void Mixing::apply(const BatchKey& key, Batch& batch) const {
  const std::vector<MixedRow> plan = this->plan(key, batch);
  mix_rows(batch.tensors[batch.fields->input_index()], plan);
  at::Tensor& target = batch.tensors[batch.fields->target_index()];
  mix_rows(target, for_targets(plan, target));
}

void visit(config::Visitor& visitor, MixingConfig& config) {
  visitor.field({.name = "alpha",
                 .help = "lambda is drawn from the distribution Beta(alpha, alpha)",
                 .min = 0,
                 .above_min = true},
                config.alpha);
  visitor.field({.name = "p", .help = "probability that lambda is not 1", .min = 0, .max = 1},
                config.p);
  visitor.field({.name = "variant",
                 .help = "definition: torchvision mixes with the sample before, timm with that at "
                         "the other end of the batch, fastai with a random one",
                 .choices = {"torchvision", "timm", "fastai"}},
                config.variant);
  visitor.field({.name = "mode",
                 .help = "for variant timm: one lambda for the batch, each pair or each sample",
                 .choices = {"batch", "pair", "elem"}},
                config.mode);
}

std::unique_ptr<BatchTransform> make_mixup(const MixingConfig& config) {
  Mixing::Options options = options_of("mixup", config);
  if (options.variant == MixingVariant::kFastai) options.mode = Mixing::Mode::kElement;
  return std::make_unique<MixUp>(options);
}

std::unique_ptr<BatchTransform> make_cutmix(const MixingConfig& config) {
  return std::make_unique<CutMix>(options_of("cutmix", config));
}

}  // namespace gallop::data
