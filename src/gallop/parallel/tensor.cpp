#include "gallop/parallel/tensor.h"

#include <utility>

#include "gallop/base/error.h"
#include "gallop/parallel/ddp.h"
#include "gallop/parallel/model_parallel.h"
#include "gallop/parallel/zero.h"

namespace gallop::parallel {

namespace {

ModelParallelConfig config_of(const TensorConfig& config) {
  return {.tensor_parallel_degree = config.tensor_parallel_degree,
          .sequence_parallel = config.sequence_parallel,
          .tp_plan = config.tp_plan,
          .data_parallel = config.data_parallel};
}

class Tensor final : public ModelParallel {
 public:
  Tensor(const TensorConfig& config, Collectives& collectives, const ModelTensors& model)
      : ModelParallel(config_of(config), collectives, model) {
    const ModelTensors own = tensors_of(model, nullptr, 0);
    std::unique_ptr<Strategy> replicas;
    if (divides_replicas()) {
      const auto sums = config.data_parallel == "zero-1" ? ReplicaSums::kInBackward
                                                         : ReplicaSums::kInEachBackward;
      replicas = make_sharded_replicas(option(), sums, data_parallel_group(), own);
    } else if (data_parallel_group().size() > 1) {
      replicas = make_ddp({}, data_parallel_group(), own);
    }
    set_parameters(model, std::move(replicas), nullptr);
  }

  NamedTensors state() const override {
    NamedTensors all = replicas() != nullptr ? replicas()->state() : NamedTensors();
    all.push_back({"norm_sums", parameters_here().norm_sums()});
    return all;
  }
  bool sums_each_micro_batch() const override {
    return replicas() != nullptr && replicas()->sums_each_micro_batch();
  }

  void begin_gradient_sync(const Pass& pass) override {
    is_last_ = pass.is_last;
    if (replicas() != nullptr) replicas()->begin_gradient_sync(pass);
  }
  void finish_gradient_sync() override {
    if (replicas() != nullptr) {
      replicas()->finish_gradient_sync();
    } else {
      note_unused(parameters_here().tensors());
    }
    if (is_last_) sync_gradients_along_tp();
  }
  // The collectives depend on the layers.
  std::optional<std::vector<PendingCollective>> collective_calls(
      int64_t /*passes*/) const override {
    return std::nullopt;
  }

 private:
  bool is_last_ = true;  // The pass that is under way, of those of a step.
};

}  // namespace

void visit(config::Visitor& visitor, TensorConfig& config) {
  visit_tensor_parallel(visitor, config.tensor_parallel_degree, config.sequence_parallel,
                        config.tp_plan, /*is_required=*/true);
  visit_data_parallel(visitor, config.data_parallel, {"ddp", "zero-1", "zero-2"});
}

DeviceMesh tensor_mesh(const TensorConfig& config, int processes) {
  return model_parallel_mesh(config_of(config), processes);
}

std::unique_ptr<Strategy> make_tensor(const TensorConfig& config, Collectives& collectives,
                                      const ModelTensors& model) {
  if (collectives.size() == 1) return make_ddp({}, collectives, model);
  if (!model.parameters.front().tensor.is_cpu()) {
    throw UsageError(
        "parallel.name=tensor runs on CPUs only so far; use parallel.name=zero-2 on GPUs");
  }
  return std::make_unique<Tensor>(config, collectives, model);
}

}  // namespace gallop::parallel
