#pragma once

#include <memory>
#include <string>

#include "gallop/config/visitor.h"
#include "gallop/train/losses/loss.h"

// Losses of several embeddings of each sample: outputs [N, views, D]. The count is the number of
// samples.
namespace gallop::train {

/// Embeddings divided by their L2 norm along the last dimension. torch.nn.functional.normalize.
at::Tensor normalized(const at::Tensor& embeddings);

struct CosineEmbeddingConfig {
  double margin = 0;
};
void visit(config::Visitor& visitor, CosineEmbeddingConfig& config);
/// 1 - cos(a, b) for pairs [N, 2, D] with target 1, max(0, cos(a, b) - margin) for pairs with
/// target -1. torch.nn.CosineEmbeddingLoss.
std::unique_ptr<Loss> make_cosine_embedding(const CosineEmbeddingConfig& config,
                                            const LossContext& context);

struct TripletMarginConfig {
  double margin = 1;
  double p = 2;
  double eps = 1e-6;
  bool swap = false;
};
void visit(config::Visitor& visitor, TripletMarginConfig& config);
/// max(0, d(a, p) - d(a, n) + margin) for an anchor, a positive and a negative embedding, outputs
/// [N, 3, D], where d is the p-norm of the difference; with swap, d(a, n) is replaced by the
/// smaller of d(a, n) and d(p, n) (Balntas et al., "Learning local feature descriptors with
/// triplets", 2016). Reads no target. torch.nn.TripletMarginLoss.
std::unique_ptr<Loss> make_triplet_margin(const TripletMarginConfig& config,
                                          const LossContext& context);

struct InfoNceConfig {
  double temperature = 0.1;
  std::string negatives = "batch";  ///< Or "given".
};
void visit(config::Visitor& visitor, InfoNceConfig& config);
/// -log(exp(q k+ / t) / sum_k exp(q k / t)) for a query and its positive key, normalized (van den
/// Oord et al., "Representation learning with contrastive predictive coding", 2018). Negative keys
/// are those of the other samples of the batch, outputs [N, 2, D], which rules out micro-batches;
/// or they are given with the sample, outputs [N, 2 + K, D]. Reads no target.
std::unique_ptr<Loss> make_info_nce(const InfoNceConfig& config, const LossContext& context);

}  // namespace gallop::train
