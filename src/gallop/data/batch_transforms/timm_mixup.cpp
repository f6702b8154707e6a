#include "gallop/data/batch_transforms/timm_mixup.h"

#include <algorithm>

#include "gallop/base/error.h"
#include "gallop/data/batch_transforms/mixing.h"
#include "gallop/data/draw.h"

namespace gallop::data {

namespace {

constexpr const char* kName = "timm-mixup";

Mixing::Mode mode_of(const std::string& name) {
  if (name == "pair") return Mixing::Mode::kPair;
  return name == "elem" ? Mixing::Mode::kElement : Mixing::Mode::kBatch;
}

class TimmMixup final : public Mixing {
 public:
  explicit TimmMixup(const TimmMixupConfig& config)
      : Mixing({.p = config.prob, .variant = MixingVariant::kTimm, .mode = mode_of(config.mode)}),
        config_(config),
        cuts_(config.cutmix_alpha > 0 || !config.cutmix_minmax.empty()) {}

  void check(const Fields& fields) const override {
    if (config_.mixup_alpha > 0) check_mixed_fields(kName, fields, false);
    if (cuts_) check_mixed_fields(kName, fields, true);
  }

 protected:
  MixedRow draw(int height, int width, Philox& random) const override {
    const bool is_cut =
        cuts_ && (config_.mixup_alpha <= 0 || random.uniform() < config_.switch_prob);
    if (!is_cut) return {.keep = draw_dirichlet(random, config_.mixup_alpha, 2)[0]};
    if (!config_.cutmix_minmax.empty()) {
      const auto [top, rows] = draw_side(height, random);
      const auto [left, columns] = draw_side(width, random);
      return mixed_by_area({.top = top, .left = left, .height = rows, .width = columns}, height,
                           width);
    }
    const double lambda = draw_dirichlet(random, config_.cutmix_alpha, 2)[0];
    const auto x = static_cast<int>(random.below(static_cast<uint64_t>(width)));
    const auto y = static_cast<int>(random.below(static_cast<uint64_t>(height)));
    return mixed_by_area(cutmix_box(MixingVariant::kTimm, height, width, lambda, y, x), height,
                         width);
  }

 private:
  // rand_bbox_minmax: a length from int(size * min) to below int(size * max), anywhere. In images
  // that are too small for two lengths, the shortest.
  std::pair<int, int> draw_side(int size, Philox& random) const {
    const auto least = static_cast<int>(size * config_.cutmix_minmax[0]);
    const auto most = static_cast<int>(size * config_.cutmix_minmax[1]);
    const int length =
        least + static_cast<int>(random.below(static_cast<uint64_t>(std::max(1, most - least))));
    const int places = size - length + 1;
    return {static_cast<int>(random.below(static_cast<uint64_t>(places))), length};
  }

  TimmMixupConfig config_;
  bool cuts_;
};

}  // namespace

void visit(config::Visitor& visitor, TimmMixupConfig& config) {
  visitor.field({.name = "mixup_alpha",
                 .help = "lambda of MixUp is drawn from Beta(alpha, alpha); 0: no MixUp",
                 .min = 0},
                config.mixup_alpha);
  visitor.field({.name = "cutmix_alpha",
                 .help = "lambda of CutMix is drawn from Beta(alpha, alpha); 0: no CutMix",
                 .min = 0},
                config.cutmix_alpha);
  visitor.field(
      {.name = "cutmix_minmax",
       .help = "range of the sides of boxes as fractions of those of the image, instead of "
               "cutmix_alpha",
       .min = 0,
       .max = 1},
      config.cutmix_minmax);
  visitor.field({.name = "prob",
                 .help = "probability that a batch, pair or sample is mixed",
                 .min = 0,
                 .max = 1},
                config.prob);
  visitor.field({.name = "switch_prob",
                 .help = "probability of CutMix instead of MixUp, if both are enabled",
                 .min = 0,
                 .max = 1},
                config.switch_prob);
  visitor.field(
      {.name = "mode",
       .help = "unit for which lambda is drawn: the batch, each pair of partners or each sample",
       .choices = {"batch", "pair", "elem"}},
      config.mode);
}

std::unique_ptr<BatchTransform> make_timm_mixup(const TimmMixupConfig& config) {
  const auto& minmax = config.cutmix_minmax;
  if (!minmax.empty() && (minmax.size() != 2 || minmax[0] >= minmax[1])) {
    throw UsageError(
        "data.batch_transforms: timm-mixup: cutmix_minmax must be two numbers, the smaller one "
        "first");
  }
  if (config.mixup_alpha <= 0 && config.cutmix_alpha <= 0 && minmax.empty()) {
    throw UsageError(
        "data.batch_transforms: timm-mixup needs mixup_alpha or cutmix_alpha above 0, or "
        "cutmix_minmax");
  }
  return std::make_unique<TimmMixup>(config);
}

}  // namespace gallop::data
