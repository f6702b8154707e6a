#include "gallop/train/losses/model_loss.h"

#include <ATen/ops/mul.h>

#include "gallop/base/error.h"
#include "gallop/train/losses/shapes.h"

namespace gallop::train {

namespace {

class ModelLoss final : public Loss {
 public:
  at::Tensor sum(const model::Output& output, const NamedTensors& batch) const override {
    if (!output.loss.defined()) {
      throw UsageError(
          "train.loss: model is the loss that the model computes, and this model computes none; "
          "export it with an output named 'loss', a scalar, or use another loss");
    }
    return widened(output.loss).mul(static_cast<double>(rows_of(batch)));
  }
  at::Tensor count(const NamedTensors& batch) const override {
    return count_tensor(rows_of(batch), field_of(batch, "target"));
  }
  int64_t expected_count(const at::Tensor& /*target*/, int64_t rows) const override { return rows; }
  LossTraits traits() const override { return {.counts_by_size = true, .needs_whole_batch = true}; }
};

}  // namespace

void visit(config::Visitor& /*visitor*/, ModelLossConfig& /*config*/) {}

std::unique_ptr<Loss> make_model_loss(const ModelLossConfig& /*config*/,
                                      const LossContext& /*context*/) {
  return std::make_unique<ModelLoss>();
}

}  // namespace gallop::train
