#include "gallop/data/batch_transform.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/arange.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/data/batch_transforms/mixing.h"
#include "gallop/data/batch_transforms/noise.h"
#include "gallop/data/batch_transforms/random_choice.h"
#include "gallop/data/batch_transforms/timm_mixup.h"

namespace gallop::data {

namespace {

// Labels [N] as probabilities [N, classes].
at::Tensor one_hot(const at::Tensor& labels, int64_t classes) {
  if (!labels.is_cpu()) {
    const at::Tensor all = at::arange(classes, labels.options());
    return labels.unsqueeze(1).eq(all).to(at::kFloat);
  }
  at::Tensor soft = at::zeros({labels.size(0), classes}, at::kFloat);
  auto* const values = soft.mutable_data_ptr<float>();
  const auto* const numbers = labels.const_data_ptr<int64_t>();
  for (int64_t row = 0; row < labels.size(0); ++row) {
    if (numbers[row] < 0 || numbers[row] >= classes) {
      throw DataError(fmt::format(
          "data.batch_transforms: a sample has the label {}, but only 0 to {} can be mixed",
          numbers[row], classes - 1));
    }
    values[row * classes + numbers[row]] = 1;
  }
  return soft;
}

}  // namespace

BatchTransforms::BatchTransforms(std::vector<std::unique_ptr<BatchTransform>> list, int64_t classes)
    : list_(std::move(list)), classes_(classes) {
  for (const auto& one : list_) {
    if (!one->mixes()) continue;
    if (mixing_ != nullptr) {
      throw UsageError(
          "data.batch_transforms: two of the transforms mix samples; use one of them for each "
          "batch, such as random-choice: {transforms: [mixup, cutmix]}");
    }
    mixing_ = one.get();
  }
  if (mixing_ == nullptr) classes_ = 0;
}

std::vector<int64_t> BatchTransforms::partners(const BatchKey& key, const WholeBatch& whole,
                                               int64_t begin, int64_t end) const {
  std::vector<int64_t> positions;
  if (mixing_ == nullptr) return positions;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t partner = mixing_->partner(key, whole, row);
    if (partner < begin || partner >= end) positions.push_back(whole.position + partner);
  }
  return positions;
}

int64_t BatchTransforms::most_partners(int64_t rows) const {
  return mixing_ == nullptr ? 0 : mixing_->most_partners(rows);
}

void BatchTransforms::apply(const BatchKey& key, Batch& batch) const {
  if (softens_labels()) {
    at::Tensor& target = batch.tensors[batch.fields->target_index()];
    target = one_hot(target, classes_);
  }
  for (const auto& one : list_) one->apply(key, batch);
  if (batch.partner_rows == 0) return;
  const int64_t own = batch.own_size();
  for (at::Tensor& tensor : batch.tensors) tensor = tensor.narrow(0, 0, own);
  batch.partner_rows = 0;
  batch.row_positions.resize(static_cast<size_t>(own));
}

BatchTransformRegistry built_in_batch_transforms() {
  BatchTransformRegistry registry("batch transform");
  registry.add("gaussian-noise", "adds normal noise to the input", make_gaussian_noise)
      .add("pixel-dropout", "sets random pixels of the input to a value", make_pixel_dropout)
      .add("mixup", "MixUp: weighted mean of two samples and of their targets", make_mixup)
      .add("cutmix",
           "CutMix: replaces a box of each image by that of another one, and mixes targets",
           make_cutmix)
      .add("timm-mixup", "timm's Mixup: MixUp or CutMix of each batch, pair or sample",
           make_timm_mixup)
      .add("random-choice", "one of several transforms, chosen for each batch", make_random_choice);
  return registry;
}

std::shared_ptr<const BatchTransforms> build_batch_transforms(
    const BatchTransformRegistry& registry, const config::ComponentList& list, const Fields& fields,
    int64_t classes) {
  if (list.items.empty()) return nullptr;
  std::vector<std::unique_ptr<BatchTransform>> transforms;
  for (const config::Component& one : list.items) {
    transforms.push_back(registry.build(one));
    transforms.back()->check(fields);
  }
  const RowShape& target = fields.target().shape;
  const bool has_labels = target.sizes.empty() && !c10::isFloatingType(target.dtype);
  auto all = std::make_shared<BatchTransforms>(std::move(transforms), has_labels ? classes : 0);
  if (has_labels && all->mixes() && classes == 0) {
    throw UsageError(fmt::format(
        "data.batch_transforms mixes targets, but '{}' is an integer that is not a class label",
        fields.target().name));
  }
  return all;
}

}  // namespace gallop::data
