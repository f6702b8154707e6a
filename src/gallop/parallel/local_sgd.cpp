#include "gallop/parallel/local_sgd.h"

#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/parallel/ddp.h"

namespace gallop::parallel {

namespace {

NamedTensors trained_of(const ModelTensors& model) {
  NamedTensors trained;
  for (const NamedTensor& one : model.parameters) {
    if (one.tensor.requires_grad()) trained.push_back(one);
  }
  return trained;
}

// What warm-up steps sum.
std::vector<at::Tensor> summed(const ModelTensors& model, const AveragingSchedule& schedule) {
  std::vector<at::Tensor> parameters;
  if (schedule.warmup_steps == 0) return parameters;
  for (const size_t i : in_gradient_order(model)) {
    const at::Tensor& parameter = model.parameters[i].tensor;
    if (parameter.requires_grad()) parameters.push_back(parameter);
  }
  return parameters;
}

class LocalSgd final : public DataParallel {
 public:
  LocalSgd(Collectives& collectives, const ModelTensors& model,
           const std::vector<at::Tensor>& summed, const AveragingSchedule& schedule,
           const std::optional<OuterOptimizer>& outer)
      : DataParallel(collectives, model, /*shares_batch_norm=*/false, summed,
                     GradientBuckets(summed, *parse_bytes(kDefaultBucket)),
                     [&collectives](GradientBuckets& buckets) {
                       return make_bucket_sums({}, buckets, collectives.size());
                     }),
        trained_(trained_of(model)),
        averager_(collectives, trained_, model.buffers, schedule, outer) {
    for (const NamedTensor& one : trained_) bytes_ += static_cast<int64_t>(one.tensor.nbytes());
  }

  ModelAverager* averager() override { return &averager_; }
  std::string describe() const override {
    const AveragingSchedule& schedule = averager_.schedule();
    const auto all = format_bytes(bytes_);
    std::string text = schedule.sync_every == 1
                           ? fmt::format("{} are exchanged in each step, as with ddp", all)
                           : fmt::format("{} are exchanged every {} steps instead of in each", all,
                                         schedule.sync_every);
    if (schedule.warmup_steps > 0) {
      text += fmt::format(", after the first {}", schedule.warmup_steps);
    }
    return text;
  }

  void begin_step(int64_t step) override {
    averager_.begin_step(step);
    use_buckets(!averager_.is_local_step());
  }
  void end_step() override { averager_.end_step(); }
  void begin_gradient_sync(const Pass& pass) override {
    if (!averager_.is_local_step()) DataParallel::begin_gradient_sync(pass);
  }
  void finish_gradient_sync() override {
    if (!averager_.is_local_step()) return DataParallel::finish_gradient_sync();
    note_unused(trained_);
  }
  std::optional<std::vector<PendingCollective>> collective_calls(int64_t passes) const override {
    if (!averager_.is_local_step()) return DataParallel::collective_calls(passes);
    return std::vector<PendingCollective>();
  }

 private:
  NamedTensors trained_;
  int64_t bytes_ = 0;
  ModelAverager averager_;
};

std::unique_ptr<Strategy> make(const AveragingSchedule& schedule,
                               const std::optional<OuterOptimizer>& outer, Collectives& collectives,
                               const ModelTensors& model) {
  if (collectives.size() == 1) return make_ddp({}, collectives, model);
  return std::make_unique<LocalSgd>(collectives, model, summed(model, schedule), schedule, outer);
}

constexpr double kMostSteps = 1e9;

void visit_schedule(config::Visitor& visitor, int64_t& sync_every, int64_t& warmup_steps) {
  visitor.field({.name = "sync_every",
                 .help = "steps between two synchronizations of the replicas",
                 .min = 1,
                 .max = kMostSteps},
                sync_every);
  visitor.field({.name = "warmup_steps",
                 .help = "number of first steps, which all-reduce gradients as ddp does",
                 .min = 0,
                 .max = kMostSteps},
                warmup_steps);
}

}  // namespace

void visit(config::Visitor& visitor, LocalSgdConfig& config) {
  visit_schedule(visitor, config.sync_every, config.warmup_steps);
}

void visit(config::Visitor& visitor, DiLoCoConfig& config) {
  visit_schedule(visitor, config.sync_every, config.warmup_steps);
  visitor.field(
      {.name = "outer_lr",
       .help = "learning rate of the outer optimizer (SGD); 1 without momentum equals local-sgd",
       .min = 0,
       .max = 100,
       .above_min = true},
      config.outer.lr);
  visitor.field({.name = "outer_momentum",
                 .help = "momentum of the outer optimizer",
                 .min = 0,
                 .max = 1,
                 .below_max = true},
                config.outer.momentum);
  visitor.field({.name = "outer_nesterov", .help = "Nesterov momentum in the outer optimizer"},
                config.outer.nesterov);
}

std::unique_ptr<Strategy> make_local_sgd(const LocalSgdConfig& config, Collectives& collectives,
                                         const ModelTensors& model) {
  return make({.sync_every = config.sync_every, .warmup_steps = config.warmup_steps}, std::nullopt,
              collectives, model);
}

std::unique_ptr<Strategy> make_diloco(const DiLoCoConfig& config, Collectives& collectives,
                                      const ModelTensors& model) {
  return make({.sync_every = config.sync_every, .warmup_steps = config.warmup_steps}, config.outer,
              collectives, model);
}

}  // namespace gallop::parallel
