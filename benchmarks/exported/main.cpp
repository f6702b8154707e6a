// Runs training steps of an exported model on request, for `run`:
//   bench_exported FILE.pt2 cross-entropy|mse fp32|bf16 [channels_last] [eager] [deterministic]
//                 [cuda]
//
// Reads commands from standard input and answers each with a line of JSON:
//   run N    runs N steps: {"seconds": of all, "loss": of the last}
//   report   {"peak_bytes", "start_bytes": of the process, with and without the model, or of
//            tensors on the GPU; "captured", "replayed", "reasons", "fallbacks": of the compiler}
// A step is forward, backward and update of batches that are in memory: the archive's sample, in
// four orders of its rows. Targets are random. On a GPU the host continues without waiting for a
// step, as in training, and operators are deterministic on request.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/roll.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "gallop/app/device.h"
#include "gallop/base/clock.h"
#include "gallop/base/heap.h"
#include "gallop/base/memory.h"
#include "gallop/model/exported/exported_model.h"
#include "gallop/model/exported/sample_inputs.h"
#include "gallop/optim/adam.h"
#include "gallop/train/losses/elementwise.h"
#include "gallop/train/step/step.h"

namespace {

using namespace gallop;

constexpr int64_t kBatches = 4;  // Used in rotation.
constexpr double kLearningRate = 1e-4;

struct Form {
  std::string file, loss;
  precision::Precision precision = precision::Precision::kFp32;
  bool channels_last = false, compiled = true;
  c10::Device device = c10::kCPU;
};

// The inputs of the archive's sample as fields of a batch, of which the first is "input".
NamedTensors sample_of(model::exported::Archive& archive, model::ExportedConfig& config) {
  const auto program = archive.program(archive.training_program());
  const auto values = model::exported::sample_inputs(archive);
  NamedTensors fields;
  size_t next = 0;
  for (const auto& input : program.inputs) {
    using Kind = model::exported::InputSpec::Kind;
    if (input.kind != Kind::kUserInput && input.kind != Kind::kUserConstant) continue;
    const c10::IValue& value = values.at(next++);
    if (input.kind == Kind::kUserConstant) continue;
    const std::string field = fields.empty() ? "input" : input.name;
    config.inputs.push_back(fmt::format("{}={}", input.name, field));
    fields.push_back({field, value.toTensor()});
  }
  return fields;
}

model::Task task_of(const at::Tensor& input) {
  model::Task task;
  task.kind = at::isIntegralType(input.scalar_type(), /*includeBool=*/true)
                  ? model::Task::Kind::kText
                  : model::Task::Kind::kNumbers;
  task.features = input.size(-1);
  return task;
}

at::Tensor target_of(model::Model& model, const NamedTensors& sample, const std::string& loss) {
  const at::NoGradGuard no_grad;
  const auto generator = at::detail::createCPUGenerator(1);
  model.set_training(false);
  const at::Tensor output = model.forward(sample);
  model.set_training(true);
  if (loss == "mse") {
    return at::randn(output.sizes(), generator, at::kFloat).to(output.device());
  }
  std::vector<int64_t> sizes = output.sizes().vec();
  const auto classes = sizes.begin() + (output.dim() == 4 ? 1 : output.dim() - 1);
  const int64_t count = *classes;
  sizes.erase(classes);
  return at::randint(count, sizes, generator, at::kLong).to(output.device());
}

int64_t peak_bytes(c10::Device device) {
  if (device.is_cpu()) return peak_resident_bytes();
  const auto stats = at::getDeviceAllocator(device.type())->getDeviceStats(device.index());
  return stats.allocated_bytes[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)]
      .peak;
}

class Training {
 public:
  explicit Training(const Form& form)
      : form_(form), start_bytes_(form.device.is_cpu() ? peak_bytes(form.device) : 0) {
    model::ExportedConfig config{.file = form.file};
    NamedTensors sample;
    {
      model::exported::Archive archive(form.file);
      sample = sample_of(archive, config);
    }
    model_ = make_exported(config, task_of(sample.front().tensor), {});
    model_->to(form.device, form.channels_last);
    for (auto& [name, tensor] : sample) tensor = tensor.to(form.device);
    sample.insert(sample.begin() + 1, {"target", target_of(*model_, sample, form.loss)});
    for (int64_t i = 0; i < kBatches; ++i) {
      NamedTensors batch;
      for (const auto& [name, tensor] : sample) {
        at::Tensor rolled = at::roll(tensor, i, 0);
        if (form.channels_last && rolled.dim() == 4) {
          rolled = rolled.contiguous(at::MemoryFormat::ChannelsLast);
        }
        batch.push_back({name, rolled});
      }
      batches_.push_back(std::move(batch));
    }
    optimizer_ = optim::make_adamw({.lr = kLearningRate}, model_->parameters());
    train::StepConfig step{.precision = form.precision, .every_target_counts = true};
    if (form.loss == "mse") {
      const std::vector<int64_t> sizes = sample[1].tensor.sizes().slice(1).vec();
      step.loss = train::make_mse(
          {}, {.output_sizes = sizes, .target_sizes = sizes, .target_type = at::kFloat});
    }
    if (form.compiled) step.compile = compile::CompileConfig();
    step_ = std::make_unique<train::TrainStep>(*model_, *optimizer_, step);
  }

  void run(int64_t steps) {
    const double begin = monotonic_seconds();
    double loss = 0;
    int64_t in_flight = 0;
    for (int64_t i = 0; i < steps; ++i) {
      step_->start(batches_[static_cast<size_t>(number_ % kBatches)], number_, kLearningRate,
                   /*count_correct=*/false);
      ++number_;
      ++in_flight;
      if (!step_->is_full() && !step_->can_take()) continue;
      loss = step_->take().tally.loss();
      --in_flight;
    }
    for (; in_flight > 0; --in_flight) loss = step_->take().tally.loss();
    answer({{"seconds", monotonic_seconds() - begin}, {"loss", loss}});
  }

  void report() {
    nlohmann::json fields{{"peak_bytes", peak_bytes(form_.device)}, {"start_bytes", start_bytes_}};
    if (const compile::CompileReport* const report = step_->compile_report()) {
      fields["captured"] = report->captured;
      fields["replayed"] = report->replayed;
      fields["reasons"] = report->reasons;
      fields["fallbacks"] = report->fallbacks;
    }
    answer(fields);
  }

 private:
  static void answer(const nlohmann::json& fields) {
    fmt::print("{}\n", fields.dump());
    std::fflush(stdout);
  }

  Form form_;
  int64_t start_bytes_;
  std::unique_ptr<model::Model> model_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::vector<NamedTensors> batches_;
  std::unique_ptr<train::TrainStep> step_;
  int64_t number_ = 0;
};

}  // namespace

int main(int count, char** args) {
  try {
    const std::vector<std::string> arguments(args + 1, args + count);
    if (arguments.size() < 3) {
      throw std::invalid_argument(
          "bench_exported FILE.pt2 cross-entropy|mse fp32|bf16 [channels_last] [eager] "
          "[deterministic] [cuda]");
    }
    const auto has = [&](const char* word) {
      return std::find(arguments.begin() + 3, arguments.end(), word) != arguments.end();
    };
    retain_freed_memory();
    Form form{.file = arguments[0],
              .loss = arguments[1],
              .precision = precision::parse_precision(arguments[2]),
              .channels_last = has("channels_last"),
              .compiled = !has("eager"),
              .device = app::choose_device(has("cuda") ? "cuda" : "cpu",
                                           has("deterministic") ? "true" : "false")
                            .device};
    std::optional<app::GpuKernels> kernels;
    if (form.device.is_cuda()) kernels.emplace(form.device);
    Training training(form);
    for (std::string command; std::cin >> command;) {
      if (command == "run") {
        int64_t steps = 0;
        std::cin >> steps;
        training.run(steps);
      } else if (command == "report") {
        training.report();
      } else {
        throw std::invalid_argument("unknown command '" + command + "'; use run N or report");
      }
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_exported: {}\n", error.what());
    return 1;
  }
}
