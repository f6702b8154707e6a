// An optimizer, a schedule, a batch transform, an augmentation, a data module and a model, as small
// as they can be.
#include "gallop/app/plugin.h"

#include <cmath>
#include <memory>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros_like.h>

#include "gallop/data/data_config.h"
#include "gallop/data/data_module.h"
#include "gallop/model/initializer.h"
#include "gallop/model/module_model.h"

namespace components {
using namespace gallop;

/// Parameters move by the sign of a moving average of their gradients (Bernstein et al., 2018).
struct SignumConfig {
  double lr = 0.01, inertia = 0.9;
};
void visit(config::Visitor& visitor, SignumConfig& config) {
  visitor.field({.name = "lr", .help = "learning rate", .min = 0, .above_min = true}, config.lr);
  visitor.field({.name = "inertia", .help = "decay of the average", .min = 0}, config.inertia);
}
struct Signum final : optim::Optimizer {
  Signum(const SignumConfig& options, const NamedTensors& all) : config(options), parameters(all) {
    for (const auto& [name, tensor] : parameters) {
      averages.push_back({"average." + name, at::zeros_like(tensor.detach())});
    }
  }
  at::Tensor step(const at::Tensor& lr, const at::Tensor& grad_scale, const at::Tensor& found_inf,
                  const optim::ScheduledOptions& /*scheduled*/) override {
    const at::NoGradGuard no_grad;
    const at::Tensor rate = found_inf.defined() ? lr * (found_inf == 0) : lr;
    for (size_t i = 0; i < parameters.size(); ++i) {
      at::Tensor gradient = parameters[i].tensor.grad();
      if (!gradient.defined()) continue;
      if (grad_scale.defined()) gradient = gradient / grad_scale;
      at::Tensor& average = averages[i].tensor;
      average.mul_(config.inertia).add_(gradient * (1 - config.inertia));
      parameters[i].tensor.sub_(average.sign() * rate);
    }
    return {};
  }
  bool can_schedule(optim::ScheduledOption /*option*/) const override { return false; }
  NamedTensors state() const override { return averages; }
  double base_lr() const override { return config.lr; }
  SignumConfig config;
  NamedTensors parameters, averages;
};
std::unique_ptr<optim::Optimizer> make_signum(const SignumConfig& config,
                                              const NamedTensors& parameters) {
  return std::make_unique<Signum>(config, parameters);
}

/// Halves the learning rate at equal distances.
struct HalvingConfig {
  int64_t halvings = 1;
};
void visit(config::Visitor& visitor, HalvingConfig& config) {
  visitor.field({.name = "halvings", .help = "how often the rate is halved", .min = 0},
                config.halvings);
}
struct Halving final : schedule::Schedule {
  explicit Halving(int64_t count) : halvings(count) {}
  double factor(double progress) const override {
    return std::exp2(-std::floor(progress * static_cast<double>(halvings + 1)));
  }
  int64_t halvings;
};
std::unique_ptr<schedule::Schedule> make_halving(const HalvingConfig& config,
                                                 const schedule::RunLength& /*length*/) {
  return std::make_unique<Halving>(config.halvings);
}

/// Multiplies inputs by a factor.
struct GainConfig {
  double gain = 1;
};
void visit(config::Visitor& visitor, GainConfig& config) {
  visitor.field({.name = "gain", .help = "factor of inputs"}, config.gain);
}
struct Gain final : data::BatchTransform {
  explicit Gain(double factor) : gain(factor) {}
  void apply(const data::BatchKey& /*key*/, data::Batch& batch) const override {
    batch.tensors[batch.fields->input_index()].mul_(gain);
  }
  double gain;
};
std::unique_ptr<data::BatchTransform> make_gain(const GainConfig& config) {
  return std::make_unique<Gain>(config.gain);
}

/// Shifts images down by a random number of rows.
struct SinkConfig {
  int64_t rows = 2;
};
void visit(config::Visitor& visitor, SinkConfig& config) {
  visitor.field({.name = "rows", .help = "largest shift", .min = 0}, config.rows);
}
struct Sink final : data::Augmentation {
  explicit Sink(int64_t most) : rows(most) {}
  void plan(const data::SampleKey& /*key*/, Philox& random, data::MovePlan& plan) const override {
    plan.shift(-static_cast<int>(random.below(static_cast<uint32_t>(rows) + 1)), 0);
  }
  int64_t rows;
};
std::unique_ptr<data::Augmentation> make_sink(const SinkConfig& config) {
  return std::make_unique<Sink>(config.rows);
}

/// Points in the plane, by their distance from the origin.
struct RingsConfig {
  int64_t count = 1000;
};
void visit(config::Visitor& visitor, RingsConfig& config) {
  visitor.field({.name = "count", .help = "number of points", .min = 1}, config.count);
}
struct Rings final : data::Samples {
  explicit Rings(int64_t points)
      : Samples({{.name = "point", .shape = {.sizes = {2}}},
                 {.name = "ring", .shape = {.dtype = c10::ScalarType::Long}}}),
        count(points) {}
  int64_t size() const override { return count; }
  bool every_target_counts() const override { return true; }
  std::optional<int64_t> label(int64_t index) const override { return index % 2; }
  bool fill(int64_t index, int64_t /*epoch*/, const data::SampleRow& row,
            data::Scratch& /*scratch*/) const override {
    Philox random(1, Purpose::kSample, 0, static_cast<uint64_t>(index));
    const double angle = 6.28 * random.uniform(), radius = 1 + 2 * static_cast<double>(index % 2);
    row.as<float>(0)[0] = static_cast<float>(radius * std::cos(angle));
    row.as<float>(0)[1] = static_cast<float>(radius * std::sin(angle));
    *row.as<int64_t>(1) = index % 2;
    return true;
  }
  int64_t count;
};
std::unique_ptr<data::DataModule> open_rings(const RingsConfig& config,
                                             const data::DataContext& context) {
  auto module = std::make_unique<data::DataModule>();
  module->signature.kind = "numbers";
  module->signature.task = data::choose_task(context.config, {"classification"});
  module->signature.columns = {"x", "y"};
  module->signature.classes = {"inner", "outer"};
  module->train = std::make_unique<Rings>(config.count);
  return module;
}

/// A linear layer over squared linear functions of the inputs.
struct RadialConfig {
  int64_t units = 8;
};
void visit(config::Visitor& visitor, RadialConfig& config) {
  visitor.field({.name = "units", .help = "hidden units", .min = 1}, config.units);
}
struct Radial final : torch::nn::Module {
  Radial(int64_t units, const model::Task& task, model::Initializer init)
      : hidden(register_parameter("hidden", init.weight({units, task.features}, {}))),
        head(register_parameter("head", init.weight({task.classes, units}, {}))),
        bias(register_parameter("bias", init.constant({task.classes}, 0))) {}
  at::Tensor forward(const at::Tensor& x) {
    return at::linear(at::linear(x, hidden).square(), head, bias);
  }
  at::Tensor hidden, head, bias;
};
std::unique_ptr<model::Model> make_radial(const RadialConfig& config, const model::Task& task,
                                          model::InitialWeights weights) {
  if (task.kind != model::Task::Kind::kNumbers) {
    throw UsageError("model radial needs inputs that are numbers; choose another model");
  }
  return model::model_of(std::make_shared<Radial>(config.units, task, model::Initializer(weights)));
}

void register_components(Registries& registries) {
  registries.optimizers.add("signum", "sign of averaged gradients", make_signum);
  registries.schedules.add("halving", "halves the rate at equal distances", make_halving);
  registries.batch_transforms.add("gain", "multiplies inputs", make_gain);
  registries.augmentations.add("sink", "shifts images down", make_sink);
  registries.data_modules.add("rings", "points on two circles", open_rings);
  registries.models.add("radial", "linear over squares", make_radial);
}

}  // namespace components

GALLOP_PLUGIN("components", components::register_components)
