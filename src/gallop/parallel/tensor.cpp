#include "gallop/parallel/tensor.h"

#include <utility>

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/parallel/collectives_group.h"
#include "gallop/parallel/ddp.h"
#include "gallop/parallel/packed.h"
#include "gallop/parallel/tensor_parameters.h"

namespace gallop::parallel {

namespace {

class Tensor final : public Strategy {
 public:
  Tensor(const TensorConfig& config, Collectives& collectives, const ModelTensors& model)
      : collectives_(collectives),
        group_(collectives, config.sequence_parallel),
        model_(model.parallelize(group_)),
        parameters_(model.parameters, model_.divided, collectives) {
    parameters_.require_divisible_update(model.update_units);
    for (const std::string& name : model_.partial_gradients) {
      // Null for one that is not trained.
      const at::Tensor* const parameter = find_tensor(model.parameters, name);
      if (parameter != nullptr && parameter->requires_grad()) partial_.push_back(*parameter);
    }
  }

  Collectives& collectives() override { return collectives_; }
  NamedTensors state() const override { return {}; }
  bool divides_batches() const override { return false; }
  const optim::UpdatedParameters* updated() const override { return &parameters_; }
  std::unique_ptr<optim::Optimizer> make_optimizer(const NamedTensors& buffers,
                                                   const MakeOptimizer& make) const override {
    return make_tensor_optimizer(parameters_, buffers, make);
  }
  std::vector<LogicalTensor> parameters_in_parts() const override {
    return parameters_.logical_parameters();
  }
  bool model_is_in_parts() const override { return true; }
  std::string describe() const override {
    return group_.sequence_parallel() ? "with sequence parallelism" : "";
  }

  void begin_gradient_sync(const Pass& /*pass*/) override {}
  void finish_gradient_sync() override {
    note_unused(parameters_.tensors());
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& parameter : partial_) {
      if (parameter.grad().defined()) gradients.push_back(parameter.grad());
    }
    if (gradients.empty()) return;
    const at::Tensor packed =
        at::empty({count_numbers(gradients)}, gradients.front().options().requires_grad(false));
    const std::vector<at::Tensor> places = places_in(packed, 0, gradients);
    copy_all(gradients, places);
    all_reduce_async(packed);
    wait_tensor(packed);
    copy_all(places, gradients);
  }
  // The collectives depend on the layers.
  std::optional<std::vector<PendingCollective>> collective_calls(
      int64_t /*passes*/) const override {
    return std::nullopt;
  }

 private:
  Collectives& collectives_;
  CollectivesGroup group_;
  ParallelizedModel model_;
  TensorParameters parameters_;
  std::vector<at::Tensor> partial_;  // Parameters whose gradients have to be summed.
};

}  // namespace

void visit(config::Visitor& visitor, TensorConfig& config) {
  visitor.field({.name = "sequence_parallel",
                 .help = "norms, dropouts and residuals are computed for a part of the tokens in "
                         "each process, which takes less memory"},
                config.sequence_parallel);
}

std::unique_ptr<Strategy> make_tensor(const TensorConfig& config, Collectives& collectives,
                                      const ModelTensors& model) {
  if (collectives.size() == 1) return make_ddp({}, collectives, model);
  if (!model.parameters.front().tensor.is_cpu()) {
    throw UsageError(
        "parallel.name=tensor runs on CPUs only so far; take parallel.name=zero-2 on GPUs");
  }
  return std::make_unique<Tensor>(config, collectives, model);
}

}  // namespace gallop::parallel
