#include "gallop/data/augmentations/policies.h"

#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/data/augmentations/policy_space.h"
#include "gallop/data/augmentations/timm_policies.h"
#include "gallop/data/augmentations/warps.h"
#include "gallop/data/draw.h"

namespace gallop::data {

namespace {

constexpr int kAutoAugmentBins = 10;
constexpr int kAugMixBins = 10;
constexpr size_t kAugMixColors = 4;  // The operations that all_ops adds, at the end of the list.
constexpr uint64_t kAugMixMaxDepth = 3;

int draw_below(Philox& random, int64_t bound) {
  return static_cast<int>(random.below(static_cast<uint64_t>(bound)));
}

/// What the four policies have in common.
class PolicyAugmentation : public Augmentation {
 public:
  AugmentStage stage() const override { return AugmentStage::kPixels; }
  // Like torchvision, which has no rule for masks: AugMix adds up images.
  bool supports_masks() const override { return false; }
  void check(const ImageShape& shape) const override { check_fill(name_, warps_.fill, shape); }

 protected:
  PolicyAugmentation(const char* name, Policy policy, const std::string& interpolation,
                     const std::vector<double>& fill)
      : name_(name),
        policy_(policy),
        warps_{.interpolation = interpolation_of(interpolation), .fill = fill} {}

  Policy policy() const { return policy_; }

  PolicyOperation draw_operation(Philox& random, size_t among) const {
    return operations_of(policy_)[random.below(among)];
  }

  /// Draws the sign and appends the operation.
  void append(PolicyOperation operation, std::optional<float> magnitude, const ImageShape& shape,
              Philox& random, std::vector<pixels::Operation>& operations) const {
    double value = magnitude.value_or(0);
    if (is_signed(operation) && random.uniform() <= 0.5F) value = -value;
    append_operation(operation, value, shape, warps_, operations);
  }

 private:
  const char* name_;
  Policy policy_;
  WarpOptions warps_;
};

class RandAugment final : public PolicyAugmentation {
 public:
  explicit RandAugment(const RandAugmentConfig& config)
      : PolicyAugmentation("rand-augment", Policy::kRandAugment, config.interpolation, config.fill),
        config_(config) {
    if (config.magnitude < config.num_magnitude_bins) return;
    throw UsageError(fmt::format("rand-augment: magnitude {} must be below num_magnitude_bins, {}",
                                 config.magnitude, config.num_magnitude_bins));
  }

  void draw(const ImageShape& shape, Philox& random,
            std::vector<pixels::Operation>& operations) const override {
    const int bin = static_cast<int>(config_.magnitude);
    const int bins = static_cast<int>(config_.num_magnitude_bins);
    for (int64_t i = 0; i < config_.num_ops; ++i) {
      const PolicyOperation operation = draw_operation(random, operations_of(policy()).size());
      append(operation, magnitude_of(policy(), operation, bin, bins, shape), shape, random,
             operations);
    }
  }
  using Augmentation::draw;

 private:
  RandAugmentConfig config_;
};

class TrivialAugmentWide final : public PolicyAugmentation {
 public:
  explicit TrivialAugmentWide(const TrivialAugmentWideConfig& config)
      : PolicyAugmentation("trivial-augment-wide", Policy::kTrivialAugmentWide,
                           config.interpolation, config.fill),
        bins_(static_cast<int>(config.num_magnitude_bins)) {}

  void draw(const ImageShape& shape, Philox& random,
            std::vector<pixels::Operation>& operations) const override {
    const PolicyOperation operation = draw_operation(random, operations_of(policy()).size());
    const int bin = draw_below(random, bins_);
    append(operation, magnitude_of(policy(), operation, bin, bins_, shape), shape, random,
           operations);
  }
  using Augmentation::draw;

 private:
  int bins_;
};

class AutoAugment final : public PolicyAugmentation {
 public:
  explicit AutoAugment(const AutoAugmentConfig& config)
      : PolicyAugmentation("auto-augment", Policy::kAutoAugment, config.interpolation, config.fill),
        pairs_(auto_augment_pairs(config.policy)) {}

  void draw(const ImageShape& shape, Philox& random,
            std::vector<pixels::Operation>& operations) const override {
    for (const PolicyStep& step : pairs_[random.below(pairs_.size())]) {
      if (random.uniform() > static_cast<float>(step.tenths / 10.0)) continue;
      append(step.operation,
             magnitude_of(policy(), step.operation, step.bin, kAutoAugmentBins, shape), shape,
             random, operations);
    }
  }
  using Augmentation::draw;

 private:
  std::span<const PolicyPair> pairs_;
};

class AugMix final : public PolicyAugmentation {
 public:
  explicit AugMix(const AugMixConfig& config)
      : PolicyAugmentation("aug-mix", Policy::kAugMix, config.interpolation, config.fill),
        config_(config) {}

  void draw(const ImageShape& shape, Philox& random,
            std::vector<pixels::Operation>& operations) const override {
    const auto parts = draw_dirichlet(random, config_.alpha, 2);
    const auto weights =
        draw_dirichlet(random, config_.alpha, static_cast<size_t>(config_.mixture_width));
    pixels::Mix mix{.original = static_cast<float>(parts[0]), .chains = {}};
    for (const double weight : weights) {
      mix.chains.push_back({.weight = static_cast<float>(weight) * static_cast<float>(parts[1]),
                            .operations = draw_chain(shape, random)});
    }
    operations.emplace_back(std::move(mix));
  }
  using Augmentation::draw;

 private:
  std::vector<pixels::Operation> draw_chain(const ImageShape& shape, Philox& random) const {
    const size_t among = operations_of(policy()).size() - (config_.all_ops ? 0 : kAugMixColors);
    const int64_t depth = config_.chain_depth > 0
                              ? config_.chain_depth
                              : 1 + static_cast<int64_t>(random.below(kAugMixMaxDepth));
    std::vector<pixels::Operation> operations;
    for (int64_t i = 0; i < depth; ++i) {
      const PolicyOperation operation = draw_operation(random, among);
      const int bin = draw_below(random, config_.severity);
      append(operation, magnitude_of(policy(), operation, bin, kAugMixBins, shape), shape, random,
             operations);
    }
    return operations;
  }

  AugMixConfig config_;
};

void visit_bins(config::Visitor& visitor, int64_t& bins) {
  visitor.field({.name = "num_magnitude_bins",
                 .help = "number of steps from the smallest to the largest magnitude",
                 .min = 2,
                 .max = 1000},
                bins);
}

}  // namespace

void visit(config::Visitor& visitor, RandAugmentConfig& config) {
  visitor.field(
      {.name = "num_ops", .help = "number of operations for each image", .min = 0, .max = 100},
      config.num_ops);
  visitor.field({.name = "magnitude",
                 .help = "magnitude of all operations, from 0 to num_magnitude_bins - 1",
                 .min = 0,
                 .max = 999},
                config.magnitude);
  visit_bins(visitor, config.num_magnitude_bins);
  visit_warp(visitor, config.interpolation, config.fill);
}

void visit(config::Visitor& visitor, TrivialAugmentWideConfig& config) {
  visit_bins(visitor, config.num_magnitude_bins);
  visit_warp(visitor, config.interpolation, config.fill);
}

void visit(config::Visitor& visitor, AutoAugmentConfig& config) {
  visitor.field({.name = "policy",
                 .help = "the data set for which pairs of operations were found: imagenet, "
                         "cifar10 or svhn; or a name of timm, such as rand-m9-n3-mstd0.5-inc1"},
                config.policy);
  visitor.field(
      {.name = "interpolation",
       .help = "interpolation of pixels; auto: bilinear for policies of timm, nearest for others",
       .choices = {"auto", "nearest", "bilinear"}},
      config.interpolation);
  visit_fill(
      visitor, config.fill,
      "value outside the image (0 to 255), one or one per channel; []: black, where bilinear "
      "interpolation includes it, and for names of timm 128");
}

void visit(config::Visitor& visitor, AugMixConfig& config) {
  visitor.field({.name = "severity",
                 .help = "magnitudes are drawn from the first `severity` of 10 steps",
                 .min = 1,
                 .max = kAugMixBins},
                config.severity);
  visitor.field({.name = "mixture_width", .help = "number of chains", .min = 1, .max = 100},
                config.mixture_width);
  visitor.field({.name = "chain_depth",
                 .help = "number of operations per chain; -1: drawn from 1 to 3 for each chain",
                 .min = -1,
                 .max = 100},
                config.chain_depth);
  visitor.field({.name = "alpha",
                 .help = "parameter of the beta and Dirichlet distributions of the weights",
                 .min = 0,
                 .above_min = true},
                config.alpha);
  visitor.field({.name = "all_ops",
                 .help = "include brightness, color, contrast and sharpness in the chains"},
                config.all_ops);
  visit_warp(visitor, config.interpolation, config.fill);
}

std::unique_ptr<Augmentation> make_rand_augment(const RandAugmentConfig& config) {
  return std::make_unique<RandAugment>(config);
}

std::unique_ptr<Augmentation> make_trivial_augment_wide(const TrivialAugmentWideConfig& config) {
  return std::make_unique<TrivialAugmentWide>(config);
}

std::unique_ptr<Augmentation> make_auto_augment(const AutoAugmentConfig& config) {
  if (is_timm_policy(config.policy)) {
    const bool is_nearest = config.interpolation == "nearest";
    return make_timm_policy(config.policy, interpolation_of(is_nearest ? "nearest" : "bilinear"),
                            config.fill);
  }
  if (config.policy != "imagenet" && config.policy != "cifar10" && config.policy != "svhn") {
    throw UsageError(fmt::format(
        "auto-augment: policy '{}' is neither imagenet, cifar10 nor svhn, nor a name of timm, "
        "such as rand-m9-n3-mstd0.5-inc1, augmix-m5, original-mstd0.5, v0 or 3a",
        config.policy));
  }
  return std::make_unique<AutoAugment>(config);
}

std::unique_ptr<Augmentation> make_aug_mix(const AugMixConfig& config) {
  return std::make_unique<AugMix>(config);
}

}  // namespace gallop::data
