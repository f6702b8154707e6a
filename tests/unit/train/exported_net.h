#pragma once

#include <memory>
#include <string>
#include <utility>

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include "gallop/model/exported/exported_model.h"
#include "unit/model/exported_case.h"
#include "unit/train/compared_ranks.h"
#include "unit/train/trainee.h"

// The archives of tests/parity/make_exported.py as cases of training steps.
namespace gallop::train {

using model::exported::Json;

/// The loss with which the fixtures were made.
class FixtureLoss final : public Loss {
 public:
  explicit FixtureLoss(const Json& loss) : loss_(loss) {}
  at::Tensor sum(const model::Output& output, const NamedTensors& batch) const override {
    const at::Tensor loss =
        model::exported::loss_of(loss_, output.logits(), batch[1].tensor, at::Reduction::Sum)
            .to(at::kFloat);
    return loss_["kind"] == "inside" ? loss.mul(static_cast<double>(batch[0].tensor.size(0)))
                                     : loss;
  }
  at::Tensor count(const NamedTensors& batch) const override {
    return at::full({}, static_cast<double>(batch[1].tensor.numel()), at::kDouble);
  }
  LossTraits traits() const override { return {.needs_whole_batch = loss_["kind"] == "inside"}; }

 private:
  const Json& loss_;
};

/// An archive as a case of a training step.
struct Net {
  explicit Net(std::string name_)
      : name(std::move(name_)),
        json(model::exported::read(model::exported::folder() / (name + ".json"))) {}

  /// Whether the mean over a batch is that over its parts.
  bool can_be_cut() const {
    return json["loss"]["kind"] != "inside" && json["loss"].value("labels", "") != "rows" &&
           json["runs"][0]["sizes"].contains("batch");
  }

  std::unique_ptr<model::Model> make() const {
    model::ExportedConfig config{.file = (model::exported::folder() / (name + ".pt2")).string(),
                                 .output = json["loss"]["output"]};
    for (const Json& input : json["inputs"]) {
      config.inputs.push_back("field_" + input["value"].get<std::string>());
    }
    return make_exported(config, {.kind = model::Task::Kind::kNumbers}, {});
  }

  Case tested(StepConfig config = {}, const std::string& wrappers = "[]") const {
    config.loss = std::make_shared<FixtureLoss>(json["loss"]);
    return {.name = name,
            .make_model = [this] { return make(); },
            .optimizer = "adamw",
            .config = config,
            .channels_last = false,
            .wrappers = wrappers};
  }

  /// So many rows; 0: those of the archive.
  NamedTensors batch(int64_t rows = 0) const {
    Json sizes = json["runs"][0]["sizes"];
    if (rows > 0) sizes["batch"] = rows;
    const model::exported::Trained trained(json, name, /*training=*/true);
    const auto inputs = trained.inputs(sizes);
    at::Tensor target;
    {
      const at::NoGradGuard no_grad;
      target = trained.target(trained.run(sizes));
    }
    const int64_t count = inputs.begin()->second.size(0);
    NamedTensors batch{{"input", at::zeros({count})},
                       {"target", target.defined() ? target : at::zeros({count}, at::kLong)}};
    for (const auto& [value, tensor] : inputs) batch.push_back({"field_" + value, tensor.clone()});
    return batch;
  }

  std::string name;
  Json json;
};

}  // namespace gallop::train
