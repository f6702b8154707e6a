#include "gallop/app/fit.h"

#include <utility>

#include <ATen/ops/full.h>
#include <fmt/format.h>

#include "gallop/app/distributed_context.h"
#include "gallop/app/registries.h"
#include "gallop/app/report_errors.h"
#include "gallop/app/signals.h"
#include "gallop/app/start_run.h"
#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/base/heap.h"
#include "gallop/base/temporary_folder.h"
#include "gallop/data/data_module.h"
#include "gallop/data/function_samples.h"
#include "gallop/data/tensor_samples.h"
#include "gallop/model/model.h"
#include "gallop/track/run_folder.h"
#include "gallop/train/losses/shapes.h"

namespace gallop {

namespace {

constexpr const char* kOwn = "own";

struct NoOptions {};
void visit(config::Visitor& /*visitor*/, NoOptions& /*options*/) {}

class FunctionLoss final : public train::Loss {
 public:
  explicit FunctionLoss(LossFunction function) : function_(std::move(function)) {}

  at::Tensor sum(const model::Output& output, const NamedTensors& batch) const override {
    return function_(output.logits(), batch);
  }
  at::Tensor count(const NamedTensors& batch) const override {
    const at::Tensor& target = train::field_of(batch, "target");
    return train::count_tensor(expected_count(target, target.size(0)), target);
  }
  // One target per sample.
  int64_t expected_count(const at::Tensor& /*target*/, int64_t rows) const override { return rows; }
  // The function reads the weights of samples, if there are any.
  train::LossTraits traits() const override {
    return {.counts_by_size = true, .takes_weights = true};
  }

 private:
  LossFunction function_;
};

std::unique_ptr<data::Samples> shared(const std::shared_ptr<const data::Samples>& samples) {
  return samples ? std::make_unique<data::SharedSamples>(samples) : nullptr;
}

// As the recipe's section of data is opened.
std::unique_ptr<data::DataModule> open(const FitData& data) {
  auto module = std::make_unique<data::DataModule>();
  module->signature = data.signature;
  module->train = shared(data.train);
  module->validation = shared(data.validation);
  module->test = shared(data.test);
  return module;
}

std::vector<app::Override> overrides_of(std::vector<std::string> options, bool has_loss) {
  std::vector<app::Override> all = app::take_overrides(options);
  if (!options.empty()) {
    throw UsageError(
        fmt::format("'{}' is no option of a recipe; write SECTION.OPTION=VALUE, such as "
                    "optimizer.lr=0.1",
                    options.front()));
  }
  all.push_back(app::Override::parse("data.name", kOwn));
  all.push_back(app::Override::parse("model.name", kOwn));
  if (has_loss) all.push_back(app::Override::parse("train.loss", kOwn));
  return all;
}

FitData data_of(std::shared_ptr<const data::Samples> samples, const char* task) {
  FitData data;
  data.signature.kind = "numbers";
  data.signature.task = task;
  data.train = std::move(samples);
  return data;
}

FitData numbers_of(std::shared_ptr<const data::Samples> samples) {
  FitData data = data_of(std::move(samples), "regression");
  const std::vector<int64_t>& sizes = data.train->fields().target().shape.sizes;
  const int64_t outputs = sizes.empty() ? 1 : sizes[0];
  for (int64_t i = 0; i < outputs; ++i) {
    data.signature.targets.push_back(outputs == 1 ? "target" : fmt::format("target {}", i));
  }
  return data;
}

}  // namespace

FitData regression_data(const at::Tensor& inputs, const at::Tensor& targets) {
  return numbers_of(std::make_shared<data::TensorSamples>(
      inputs, targets.dim() == 1 ? targets.unsqueeze(1) : targets));
}

FitData classification_data(const at::Tensor& inputs, const at::Tensor& labels, int64_t classes) {
  FitData data = data_of(std::make_shared<data::TensorSamples>(inputs, labels), "classification");
  for (int64_t i = 0; i < classes; ++i) {
    data.signature.classes.push_back(fmt::format("class {}", i));
  }
  return data;
}

FitData computed_data(int64_t size, const SampleFunction& function,
                      std::vector<std::string> classes) {
  auto samples =
      std::make_shared<data::FunctionSamples>(size, function, static_cast<int64_t>(classes.size()));
  if (classes.empty()) return numbers_of(std::move(samples));
  FitData data = data_of(std::move(samples), "classification");
  data.signature.classes = std::move(classes);
  return data;
}

Trainer::Trainer(TrainerOptions options) : Trainer(std::move(options), Registries()) {}

Trainer::Trainer(TrainerOptions options, Registries registries)
    : options_(std::move(options)),
      registries_(std::make_shared<const Registries>(std::move(registries))) {}

int run_main(const std::function<train::Outcome()>& program) {
  return static_cast<int>(app::report_errors(
      [&] { return program().finished ? ExitCode::kDone : ExitCode::kStopped; }));
}

train::Outcome Trainer::fit_model(std::function<std::unique_ptr<model::Model>()> make,
                                  const FitData& data, LossFunction loss) {
  if (!data.train) throw UsageError("no training samples; set FitData::train");
  track::RunFolder::check_name(options_.name);
  retain_freed_memory();
  Registries registries = *registries_;
  registries.data_modules.add_function<NoOptions>(
      kOwn, "the program's own samples",
      [&data](const NoOptions&, const data::DataContext&) { return open(data); });
  registries.models.add_function<NoOptions>(
      kOwn, "the program's own model",
      [&make](const NoOptions&, const model::Task&, model::InitialWeights) { return make(); });
  if (loss) {
    registries.losses.add_function<NoOptions>(
        kOwn, "the program's own loss",
        [&loss](const NoOptions&, const train::LossContext&) -> std::unique_ptr<train::Loss> {
          return std::make_unique<FunctionLoss>(loss);
        });
  }
  const TemporaryFolder folder(fs::temp_directory_path(), "gallop-fit-");
  const fs::path recipe = folder.path() / (options_.name + ".yaml");
  write_file_atomically(recipe, options_.recipe.empty() ? "train: {}\n" : options_.recipe);
  StopRequest stop;
  app::SignalGuard signals(stop, app::SignalGuard::Says::kStopping, app::SignalGuard::Scope::kCall);
  const app::DistributedContext context = app::DistributedContext::join();
  const app::RunOptions options{
      .runs = options_.runs, .name = options_.name, .resume_if_there = true, .can_probe = false};
  const auto run =
      app::start_run(registries, options, recipe.string(),
                     overrides_of(options_.overrides, static_cast<bool>(loss)), stop, context);
  if (!run) return {};  // Stopped by a signal before it began.
  const train::Outcome outcome = run->train(
      options_.quiet ? app::ConsoleStyle::kQuiet : app::default_console_style(), signals);
  run->gather_parameters();  // The program may read its model.
  return outcome;
}

}  // namespace gallop
