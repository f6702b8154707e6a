#include "gallop/train/losses/cross_entropy.h"
#include "gallop/train/losses/ctc.h"
#include "gallop/train/losses/dice.h"
#include "gallop/train/losses/elementwise.h"
#include "gallop/train/losses/embeddings.h"
#include "gallop/train/losses/focal.h"
#include "gallop/train/losses/kl_divergence.h"
#include "gallop/train/losses/model_loss.h"
#include "gallop/train/losses/weighted_sum.h"

namespace gallop::train {

LossRegistry built_in_losses() {
  LossRegistry registry("loss");
  registry.add("cross-entropy", "softmax cross-entropy of class or soft labels", make_cross_entropy)
      .add("bce-with-logits", "binary cross-entropy of each output", make_bce_with_logits)
      .add("focal", "focal loss: cross-entropy that down-weights easy targets", make_focal)
      .add("mse", "mean squared error", make_mse)
      .add("l1", "mean absolute error", make_l1)
      .add("huber", "squared error, and absolute error above delta", make_huber)
      .add("smooth-l1", "Huber loss divided by beta", make_smooth_l1)
      .add("quantile", "pinball loss of one or several quantiles", make_quantile)
      .add("poisson-nll", "negative log-likelihood of counts", make_poisson_nll)
      .add("gaussian-nll", "negative log-likelihood of a mean and a variance for each target",
           make_gaussian_nll)
      .add("kl-divergence", "Kullback-Leibler divergence from the target distribution over classes",
           make_kl_divergence)
      .add("cosine-embedding", "cosine similarity of matching and non-matching pairs",
           make_cosine_embedding)
      .add("triplet-margin", "triplet loss: distances to a positive and a negative embedding",
           make_triplet_margin)
      .add("info-nce", "contrastive cross-entropy of a positive key among negative ones",
           make_info_nce)
      .add("dice", "Dice loss: overlap of predicted and target regions", make_dice)
      .add("ctc", "CTC: label sequences without an alignment", make_ctc)
      .add("model", "the mean loss that an exported model computes, its output `loss`",
           make_model_loss)
      .add("weighted-sum", "the weighted sum of other losses", make_weighted_sum);
  return registry;
}

}  // namespace gallop::train
