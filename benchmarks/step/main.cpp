// Training steps on demand, for run: bench_step WORKLOAD fp32|bf16 [full] [plain-heap] [cpu-clock]
//
// Reads commands from standard input and answers each with a line of JSON:
//   run N    N steps: {"ms": [...], "loss": the last one's}
//   memory   {"peak_bytes": of the process, "start_bytes": before the model was made}
// "full" takes steps as `gallop train` does, with the norm of the gradients and its check; without
// it a step is forward, backward and update alone. "plain-heap" leaves the C allocator as it is.
// "cpu-clock" counts the time of the process on all cores instead of the time that passed.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <stdexcept>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/clock.h"
#include "gallop/base/heap.h"
#include "gallop/model/gpt.h"
#include "gallop/model/mlp.h"
#include "gallop/model/resnet.h"
#include "gallop/optim/adamw.h"
#include "gallop/optim/sgd.h"
#include "gallop/train/step.h"

namespace {

using namespace gallop;

constexpr int64_t kBatches = 4;  // That the steps take in turn.

struct Workload {
  std::unique_ptr<model::Model> model;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::vector<at::Tensor> inputs;
  std::vector<at::Tensor> targets;
  double lr = 0;
};

model::Task images(int64_t channels, int64_t side) {
  return {.kind = model::Task::Kind::kImages,
          .channels = channels,
          .height = side,
          .width = side,
          .classes = 10};
}

Workload make_workload(const std::string& name) {
  const auto generator = at::detail::createCPUGenerator(1);
  Workload work;
  std::vector<int64_t> sizes;
  int64_t classes = 10;
  const auto adamw = [&] { return optim::make_adamw({.lr = 1e-3}, work.model->parameters()); };
  if (name == "resnet20") {
    work.model = model::make_resnet({.depth = 20}, images(3, 32), 1);
    work.model->to(at::kCPU, /*channels_last=*/true);
    work.lr = 0.1;
    work.optimizer = optim::make_sgd({.lr = 0.1, .momentum = 0.9}, work.model->parameters());
    sizes = {128, 3, 32, 32};
  } else if (name == "gpt") {
    classes = 65;
    const model::Task task{.kind = model::Task::Kind::kText, .classes = classes, .context = 128};
    work.model = model::make_gpt({.layers = 6, .width = 256, .heads = 8}, task, 1);
    work.lr = 1e-3;
    work.optimizer = adamw();
    sizes = {16, 128};
  } else if (name == "mlp") {
    work.model = model::make_mlp({.hidden = {256, 128}}, images(1, 28), 1);
    work.lr = 1e-3;
    work.optimizer = adamw();
    sizes = {64, 1, 28, 28};
  } else {
    throw std::invalid_argument("no workload named '" + name + "'; it is resnet20, gpt or mlp");
  }
  for (int64_t i = 0; i < kBatches; ++i) {
    const bool text = sizes.size() == 2;
    work.inputs.push_back(text ? at::randint(classes, sizes, generator, at::kLong)
                               : at::randn(sizes, generator, at::kFloat));
    const auto target_sizes = text ? sizes : std::vector<int64_t>{sizes[0]};
    work.targets.push_back(at::randint(classes, target_sizes, generator, at::kLong));
  }
  return work;
}

// Forward, backward and update, and nothing else.
class BareStep {
 public:
  BareStep(Workload& work, precision::Precision precision)
      : work_(work),
        precision_(precision),
        parameters_(work.model->parameters()),
        lr_(at::full({}, work.lr, at::kFloat)) {}

  double run(const at::Tensor& input, const at::Tensor& target) {
    for (const auto& parameter : parameters_) parameter.tensor.mutable_grad().reset();
    at::Tensor loss;
    {
      const precision::AutocastGuard autocast(precision_, at::kCPU);
      const auto logits = work_.model->forward(input);
      loss = at::cross_entropy_loss(logits.flatten(0, -2), target.flatten());
    }
    loss.backward();
    work_.optimizer->step(lr_);
    return loss.item<double>();
  }

 private:
  Workload& work_;
  precision::Precision precision_;
  NamedTensors parameters_;
  at::Tensor lr_;
};

int64_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "VmHWM:") continue;
    int64_t kib = 0;
    status >> kib;
    return kib * 1024;
  }
  throw std::runtime_error("/proc/self/status has no VmHWM");
}

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct Options {
  precision::Precision precision;
  bool full;
  double (*clock)();
};

void serve(const std::string& name, const Options& options) {
  const int64_t start_bytes = peak_bytes();
  auto work = make_workload(name);
  BareStep bare(work, options.precision);
  train::StepConfig config;
  config.precision = options.precision;
  train::TrainStep whole(*work.model, *work.optimizer, config);
  int64_t step = 0;
  for (std::string command; std::cin >> command;) {
    if (command == "memory") {
      fmt::print("{{\"peak_bytes\": {}, \"start_bytes\": {}}}\n", peak_bytes(), start_bytes);
    } else if (command == "run") {
      int64_t count = 0;
      std::cin >> count;
      std::vector<double> ms;
      double loss = 0;
      for (int64_t i = 0; i < count; ++i, ++step) {
        const auto& input = work.inputs[static_cast<size_t>(step % kBatches)];
        const auto& target = work.targets[static_cast<size_t>(step % kBatches)];
        const double begin = options.clock();
        loss = options.full ? whole.run(input, target, step, work.lr, false).tally.loss()
                            : bare.run(input, target);
        ms.push_back(1000 * (options.clock() - begin));
      }
      fmt::print("{{\"ms\": [{:.4f}], \"loss\": {:.6f}}}\n", fmt::join(ms, ", "), loss);
    } else {
      throw std::invalid_argument("no command '" + command + "'; it is run N or memory");
    }
    std::fflush(stdout);
  }
}

}  // namespace

int main(int count, char** words) {
  try {
    const std::vector<std::string> arguments(words + 1, words + count);
    if (arguments.size() < 2)
      throw std::invalid_argument("bench_step WORKLOAD fp32|bf16 [full] [plain-heap] [cpu-clock]");
    const auto has = [&](const char* word) {
      return std::find(arguments.begin() + 2, arguments.end(), word) != arguments.end();
    };
    if (!has("plain-heap")) keep_freed_memory();
    serve(arguments[0], {.precision = precision::parse_precision(arguments[1]),
                         .full = has("full"),
                         .clock = has("cpu-clock") ? cpu_seconds : monotonic_seconds});
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_step: {}\n", error.what());
    return 2;
  }
}
