#include "gallop/train/losses/embeddings.h"

#include <functional>
#include <limits>

#include <ATen/core/Reduction.h>
#include <ATen/ops/cosine_embedding_loss.h>
#include <ATen/ops/div.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/triplet_margin_loss.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/train/losses/shapes.h"
#include "gallop/train/losses/shared_rows.h"

namespace gallop::train {

namespace {

class OfEmbeddings : public Loss {
 public:
  at::Tensor count(const NamedTensors& batch) const final { return count_samples(batch); }
  int64_t expected_count(const at::Tensor&, int64_t rows) const final { return rows; }
  LossTraits traits() const override { return {.counts_by_size = true, .takes_weights = true}; }

 protected:
  // [N, D]
  static at::Tensor view_of(const at::Tensor& outputs, int64_t view) {
    return outputs.select(1, view);
  }
};

class CosineEmbedding final : public OfEmbeddings {
 public:
  explicit CosineEmbedding(const CosineEmbeddingConfig& config) : config_(config) {}

  at::Tensor sum(const model::Output& output, const NamedTensors& batch) const override {
    const at::Tensor outputs = widened(output.logits());
    return weighted_total(at::cosine_embedding_loss(view_of(outputs, 0), view_of(outputs, 1),
                                                    field_of(batch, "target").reshape(-1),
                                                    config_.margin, at::Reduction::None),
                          weights_by_sample(batch));
  }

  void check_targets(const std::function<at::Tensor()>& some_targets) const override {
    const at::Tensor targets = some_targets();
    if (targets.numel() == 0) return;
    if (!targets.abs().eq(1).all().item<bool>()) {
      throw UsageError(
          "train.loss: cosine-embedding needs the targets 1 and -1, for pairs that match and pairs "
          "that do not, but the training data have others");
    }
    if (targets.eq(1).all().item<bool>()) {
      throw UsageError(
          "train.loss: all pairs of the training data match, so with cosine-embedding all "
          "embeddings would become equal; use info-nce, which contrasts the pairs of a batch");
    }
  }

 private:
  CosineEmbeddingConfig config_;
};

class TripletMargin final : public OfEmbeddings {
 public:
  explicit TripletMargin(const TripletMarginConfig& config) : config_(config) {}

  at::Tensor sum(const model::Output& output, const NamedTensors& batch) const override {
    const at::Tensor outputs = widened(output.logits());
    return weighted_total(at::triplet_margin_loss(view_of(outputs, 0), view_of(outputs, 1),
                                                  view_of(outputs, 2), config_.margin, config_.p,
                                                  config_.eps, config_.swap, at::Reduction::None),
                          weights_by_sample(batch));
  }

 private:
  TripletMarginConfig config_;
};

class InfoNce final : public OfEmbeddings {
 public:
  explicit InfoNce(const InfoNceConfig& config) : config_(config) {}

  at::Tensor sum(const model::Output& output, const NamedTensors& batch) const override {
    // Autocast would round similarities to bf16.
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    const at::Tensor all = normalized(widened(output.logits()));
    const at::Tensor query = view_of(all, 0), weights = weights_by_sample(batch);
    if (compares_samples()) {
      const SharedRows keys = SharedRows::of(view_of(all, 1));
      at::Tensor similar = query.matmul(keys.rows.t()).div(config_.temperature);
      if (keys.is_missing.defined()) {
        similar = similar.masked_fill(keys.is_missing, -std::numeric_limits<double>::infinity());
      }
      return weighted_total(at::log_softmax(similar, 1).diagonal(keys.first), weights).neg();
    }
    const at::Tensor keys = all.slice(1, 1);
    const at::Tensor similar = query.unsqueeze(1).mul(keys).sum(-1).div(config_.temperature);
    return weighted_total(at::log_softmax(similar, 1).select(1, 0), weights).neg();
  }

  void check_targets(const std::function<at::Tensor()>& some_targets) const override {
    const at::Tensor targets = some_targets();
    if (targets.numel() == 0 || !targets.lt(0).any().item<bool>()) return;
    throw UsageError(
        "train.loss: info-nce takes the first two views of each sample as matching, but the "
        "training data have pairs with the target -1; use cosine-embedding");
  }

  LossTraits traits() const override {
    return {.counts_by_size = true, .compares_samples = compares_samples(), .takes_weights = true};
  }

 private:
  bool compares_samples() const { return config_.negatives == "batch"; }

  InfoNceConfig config_;
};

}  // namespace

at::Tensor normalized(const at::Tensor& embeddings) {
  constexpr double kLeastNorm = 1e-12;  // The default of PyTorch.
  const at::Tensor norms = at::linalg_vector_norm(embeddings, 2, {-1}, /*keepdim=*/true);
  return embeddings.div(norms.clamp_min(kLeastNorm));
}

void visit(config::Visitor& v, CosineEmbeddingConfig& c) {
  v.field({.name = "margin",
           .help = "margin: cosine below which pairs that do not match have no loss",
           .min = -1,
           .max = 1},
          c.margin);
}

void visit(config::Visitor& v, TripletMarginConfig& c) {
  v.field({.name = "margin",
           .help = "margin by which the negative must be farther away than the positive",
           .min = 0,
           .above_min = true},
          c.margin);
  v.field({.name = "p", .help = "norm of the distance", .min = 0, .above_min = true}, c.p);
  v.field({.name = "eps", .help = "epsilon within the norm", .min = 0}, c.eps);
  v.field({.name = "swap",
           .help = "use the distance from the positive to the negative if it is smaller"},
          c.swap);
}

void visit(config::Visitor& v, InfoNceConfig& c) {
  v.field({.name = "temperature",
           .help = "divisor of the cosine similarities",
           .min = 0,
           .above_min = true},
          c.temperature);
  v.field({.name = "negatives",
           .help = "batch: the positive keys of the other samples; given: outputs of each sample",
           .choices = {"batch", "given"}},
          c.negatives);
}

std::unique_ptr<Loss> make_cosine_embedding(const CosineEmbeddingConfig& config,
                                            const LossContext& context) {
  require_views("cosine-embedding", 2, /*or_more=*/false, context);
  int64_t targets = 1;
  for (const int64_t size : context.target_sizes) targets *= size;
  if (context.classes > 0 || targets != 1) {
    throw UsageError(
        fmt::format("train.loss: cosine-embedding needs one target for each pair, 1 or -1, but the "
                    "data have {}",
                    context.classes > 0 ? "class labels"
                                        : "targets of sizes " + text_of(context.target_sizes)));
  }
  return std::make_unique<CosineEmbedding>(config);
}

std::unique_ptr<Loss> make_triplet_margin(const TripletMarginConfig& config,
                                          const LossContext& context) {
  require_views("triplet-margin", 3, /*or_more=*/false, context);
  return std::make_unique<TripletMargin>(config);
}

std::unique_ptr<Loss> make_info_nce(const InfoNceConfig& config, const LossContext& context) {
  const bool is_given = config.negatives == "given";
  require_views("info-nce", is_given ? 3 : 2, /*or_more=*/is_given, context);
  return std::make_unique<InfoNce>(config);
}

}  // namespace gallop::train
