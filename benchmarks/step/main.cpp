// Runs training steps on request, for `run`:
//   bench_step WORKLOAD fp32|bf16 [compiled] [loop|trainer] [ddp|deterministic] [plain-heap]
//              [cpu-clock] [exported=FILE.pt2]
//
// Reads commands from standard input and answers each with a line of JSON:
//   run N    runs N steps: {"ms": [...], "loss": of the last step}
//   memory   {"peak_bytes": of the process, "start_bytes": before the model was created}
//   limit    {"flops", "bytes": minimum of a step, "flops_per_second", "bytes_per_second": peak
//            rates, "ms": minimum time}; see limit.h
// A step is forward, backward and update of prefetched batches; with "compiled" it is recorded and
// replayed. With "loop" the batches come from the loader in a minimal loop; with "trainer" a step
// is one iteration of the loop of `gallop train`, with loader, checks, counters and schedule.
// "plain-heap" leaves the settings of the C allocator unchanged. "cpu-clock" measures the CPU time
// of the process on all cores instead of wall time. With "ddp" or "deterministic" the process joins
// the group given by RANK, WORLD_SIZE and MASTER_PORT, and computes its slice of the batch. With
// "exported" the model is that of the archive instead of the built-in one.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/clock.h"
#include "gallop/base/heap.h"
#include "gallop/data/loader.h"
#include "gallop/data/tensor_samples.h"
#include "gallop/model/exported/exported_model.h"
#include "gallop/model/gpt.h"
#include "gallop/model/mlp.h"
#include "gallop/model/resnet.h"
#include "gallop/model/vit.h"
#include "gallop/optim/adam.h"
#include "gallop/optim/sgd.h"
#include "gallop/parallel/strategy.h"
#include "gallop/schedule/decays.h"
#include "gallop/train/step/step.h"
#include "gallop/train/trainer.h"
#include "limit.h"

namespace {

using namespace gallop;

constexpr int64_t kBatches = 4;  // Used in rotation.

struct Workload {
  std::unique_ptr<model::Model> model;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::vector<at::Tensor> inputs;
  std::vector<at::Tensor> targets;
  model::Task task;
  double lr = 0;
  int64_t moments = 0;                                 // Optimizer states per parameter.
  int64_t rows = 0;                                    // Rows of the global batch.
  std::unique_ptr<parallel::Collectives> collectives;  // Collectives of the process group.
  std::unique_ptr<parallel::Strategy> strategy;
};

model::Task images(int64_t channels, int64_t side) {
  return {.kind = model::Task::Kind::kImages,
          .channels = channels,
          .height = side,
          .width = side,
          .classes = 10};
}

// A model and the sizes of its batches: images with ten classes, or text.
struct Recipe {
  std::function<std::unique_ptr<model::Model>(const model::Task&)> make;
  std::vector<int64_t> sizes;
  int64_t vocabulary = 0;
};

const std::map<std::string, Recipe>& recipes() {
  using model::Task;
  static const std::map<std::string, Recipe> kRecipes = {
      {"resnet20",
       {[](const Task& task) { return model::make_resnet({.depth = 20}, task, 1); },
        {128, 3, 32, 32}}},
      {"wide-resnet",
       {[](const Task& task) { return model::make_resnet({.depth = 14, .width = 4}, task, 1); },
        {128, 3, 32, 32}}},
      {"resnet18",
       {[](const Task& task) { return model::make_resnet({.depth = 18}, task, 1); },
        {128, 3, 64, 64}}},
      {"vit", {[](const Task& task) { return model::make_vit({}, task, 1); }, {128, 3, 32, 32}}},
      {"gpt",
       {[](const Task& task) {
          return model::make_gpt({.layers = 6, .width = 256, .heads = 8}, task, 1);
        },
        {16, 128},
        65}},
      {"gpt2",
       {[](const Task& task) {
          return model::make_gpt({.layers = 12, .width = 768, .heads = 12}, task, 1);
        },
        {1, 1024},
        50257}},
      {"mlp",
       {[](const Task& task) {
          return model::make_mlp({.hidden = {256, 128}}, task, 1);
        },
        {64, 1, 28, 28}}},
      {"mlp20",
       {[](const Task& task) {
          return model::make_mlp({.hidden = std::vector<int64_t>(19, 256)}, task, 1);
        },
        {64, 1, 28, 28}}}};
  return kRecipes;
}

// `archive`: an exported model that replaces the built-in one; empty for none.
Workload make_workload(const std::string& name, const std::string& archive) {
  const auto found = recipes().find(name);
  if (found == recipes().end()) {
    std::string names;
    for (const auto& [known, recipe] : recipes()) names += " " + known;
    throw std::invalid_argument("no workload named '" + name + "'; there are" + names);
  }
  const Recipe& recipe = found->second;
  const auto generator = at::detail::createCPUGenerator(1);
  const auto& sizes = recipe.sizes;
  const bool text = recipe.vocabulary > 0;
  const int64_t classes = text ? recipe.vocabulary : 10;
  const model::Task task =
      text ? model::Task{.kind = model::Task::Kind::kText, .classes = classes, .context = sizes[1]}
           : images(sizes[1], sizes[2]);
  Workload work;
  work.task = task;
  work.rows = sizes[0];
  work.model =
      archive.empty() ? recipe.make(task) : model::make_exported({.file = archive}, task, {});
  if (name.find("resnet") != std::string::npos) {
    work.model->to(at::kCPU, /*channels_last=*/true);
    work.lr = 0.1;
    work.moments = 1;
    work.optimizer = optim::make_sgd({.lr = 0.1, .momentum = 0.9}, work.model->parameters());
  } else {
    work.lr = 1e-3;
    work.moments = 2;
    work.optimizer = optim::make_adamw({.lr = 1e-3}, work.model->parameters());
  }
  for (int64_t i = 0; i < kBatches; ++i) {
    work.inputs.push_back(text ? at::randint(classes, sizes, generator, at::kLong)
                               : at::randn(sizes, generator, at::kFloat));
    const auto target_sizes = text ? sizes : std::vector<int64_t>{sizes[0]};
    work.targets.push_back(at::randint(classes, target_sizes, generator, at::kLong));
  }
  return work;
}

int number_of(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) throw std::invalid_argument(fmt::format("ddp: {} is not set", variable));
  return std::stoi(text);
}

void share(Workload& work, const char* strategy) {
  static const auto kStrategies = parallel::built_in_strategies();
  const int rank = number_of("RANK"), size = number_of("WORLD_SIZE");
  work.collectives =
      parallel::init_process_group({.rank = rank, .size = size, .port = number_of("MASTER_PORT")});
  work.strategy = kStrategies.build(config::Component(kStrategies, strategy), *work.collectives,
                                    {work.model->parameters(), work.model->buffers()});
  for (auto* list : {&work.inputs, &work.targets}) {
    for (at::Tensor& tensor : *list) {
      tensor = tensor.slice(0, work.rows * rank / size, work.rows * (rank + 1) / size).clone();
    }
  }
}

// Forward, backward and update only.
class EagerStep {
 public:
  EagerStep(Workload& work, precision::Precision precision)
      : work_(work),
        precision_(precision),
        parameters_(work.model->parameters()),
        lr_(at::full({}, work.lr, at::kFloat)) {}

  double run(const at::Tensor& input, const at::Tensor& target) {
    for (const auto& parameter : parameters_) parameter.tensor.mutable_grad().reset();
    at::Tensor loss_sum;
    {
      const precision::AutocastGuard autocast(precision_, at::kCPU);
      loss_sum = train::cross_entropy_sum(work_.model->forward_to_head(input), target,
                                          /*label_smoothing=*/0, /*count_correct=*/false)
                     .sum;
    }
    const auto count = static_cast<double>(target.numel());
    loss_sum.backward(at::full({}, 1 / count, at::kFloat));
    work_.optimizer->step(lr_);
    return loss_sum.item<double>() / count;
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

using Clock = double (*)();

// Answers the commands on standard input. The steps are run by the caller.
class Server {
 public:
  Server(int64_t start_bytes, Clock clock, std::function<Limit()> limit)
      : start_bytes_(start_bytes), clock_(clock), limit_(std::move(limit)) {}

  /// Answers until steps are requested; false at the end of the commands.
  bool wants_step() {
    if (left_ > 0) return start_step();
    for (std::string command; std::cin >> command;) {
      if (command == "run") {
        std::cin >> left_;
        return start_step();
      }
      if (command == "limit") {
        answer_limit();
        continue;
      }
      if (command != "memory") {
        throw std::invalid_argument("unknown command '" + command +
                                    "'; use run N, memory or limit");
      }
      answer(fmt::format("\"peak_bytes\": {}, \"start_bytes\": {}", peak_bytes(), start_bytes_));
    }
    return false;
  }

  void took_step(double loss) {
    ms_.push_back(1000 * (clock_() - begin_));
    if (--left_ > 0) return;
    answer(fmt::format("\"ms\": [{:.4f}], \"loss\": {:.6f}", fmt::join(ms_, ", "), loss));
    ms_.clear();
  }

 private:
  bool start_step() {
    begin_ = clock_();
    return true;
  }
  void answer_limit() {
    const Limit limit = limit_();
    answer(
        fmt::format("\"flops\": {}, \"bytes\": {}, \"flops_per_second\": {}, "
                    "\"bytes_per_second\": {}, \"ms\": {:.4f}",
                    limit.flops, limit.bytes, limit.flops_per_second, limit.bytes_per_second,
                    limit.milliseconds()));
  }
  static void answer(const std::string& fields) {
    fmt::print("{{{}}}\n", fields);
    std::fflush(stdout);
  }

  int64_t start_bytes_;
  Clock clock_;
  std::function<Limit()> limit_;
  int64_t left_ = 0;
  double begin_ = 0;
  std::vector<double> ms_;
};

// How a workload is run, from the command line.
struct Form {
  precision::Precision precision;
  bool compiled = false;

  std::optional<compile::CompileConfig> compile() const {
    return compiled ? std::optional(compile::CompileConfig()) : std::nullopt;
  }
};

// The mean loss of a step.
using Step = std::function<double(const at::Tensor& input, const at::Tensor& target)>;

Step make_step(Workload& work, const Form& form) {
  if (!form.compiled) {
    const auto step = std::make_shared<EagerStep>(work, form.precision);
    return
        [=](const at::Tensor& input, const at::Tensor& target) { return step->run(input, target); };
  }
  const auto step =
      std::make_shared<train::TrainStep>(*work.model, *work.optimizer,
                                         train::StepConfig{.precision = form.precision,
                                                           .every_target_counts = true,
                                                           .compile = form.compile(),
                                                           .strategy = work.strategy.get()});
  return [=, lr = work.lr, rows = work.rows, i = int64_t{0}](const at::Tensor& input,
                                                             const at::Tensor& target) mutable {
    return step
        ->run({{"input", input}, {"target", target}}, i++, lr, /*count_correct=*/false, {},
              {.rows = rows})
        .tally.loss();
  };
}

void serve_bare(Workload& work, const Form& form, Server& server) {
  const Step step = make_step(work, form);
  for (size_t i = 0; server.wants_step(); i = (i + 1) % kBatches) {
    server.took_step(step(work.inputs[i], work.targets[i]));
  }
}

data::LoaderConfig loader_config(const Workload& work) {
  return {.batch = work.inputs.front().size(0), .threads = at::get_num_threads()};
}

void serve_loop(Workload& work, const Form& form, Server& server) {
  const data::TensorSamples samples(at::cat(work.inputs), at::cat(work.targets));
  data::Loader loader(samples, loader_config(work), {});
  const Step step = make_step(work, form);
  while (server.wants_step()) {
    const auto batch = loader.next();
    server.took_step(step(batch->input(), batch->target()));
  }
}

// Runs the trainer's steps one by one, as requested.
class SteppedObserver final : public train::Observer {
 public:
  SteppedObserver(Server& server, StopRequest& stop) : server_(server), stop_(stop) {}

  void stepped(const train::StepEvent& event) override {
    server_.took_step(event.loss);
    if (!server_.wants_step()) stop_.request(-1);
  }

 private:
  Server& server_;
  StopRequest& stop_;
};

void serve_trainer(Workload& work, const Form& form, Server& server) {
  const data::TensorSamples samples(at::cat(work.inputs), at::cat(work.targets));
  const auto schedule = schedule::make_cosine({.warmup = {.length = "0.05"}}, {});
  const auto folder =
      std::filesystem::temp_directory_path() / fmt::format("bench_step-{}", getpid());
  train::CheckpointStore checkpoints(folder);
  StopRequest stop;
  SteppedObserver observer(server, stop);
  const train::TrainerParts parts{.model = *work.model,
                                  .optimizer = *work.optimizer,
                                  .schedule = *schedule,
                                  .train_samples = samples,
                                  .checkpoints = checkpoints,
                                  .observers = {&observer},
                                  .stop = stop};
  train::TrainConfig config;
  config.steps = 1'000'000;
  config.checkpoint_every = "never";
  train::Trainer trainer(parts, config, {.precision = form.precision, .compile = form.compile()},
                         loader_config(work), {});
  if (server.wants_step()) trainer.run();
  std::filesystem::remove_all(folder);
}

}  // namespace

int main(int count, char** args) {
  try {
    const std::vector<std::string> arguments(args + 1, args + count);
    if (arguments.size() < 2) {
      throw std::invalid_argument(
          "bench_step WORKLOAD fp32|bf16 [compiled] [loop|trainer] [ddp|deterministic] "
          "[plain-heap] [cpu-clock] [exported=FILE.pt2]");
    }
    constexpr std::string_view kExported = "exported=";
    std::string archive;
    for (const std::string& word : arguments) {
      if (word.starts_with(kExported)) archive = word.substr(kExported.size());
    }
    const auto has = [&](const char* word) {
      return std::find(arguments.begin() + 2, arguments.end(), word) != arguments.end();
    };
    if (!has("plain-heap")) retain_freed_memory();
    const int64_t start_bytes = peak_bytes();
    auto work = make_workload(arguments[0], archive);
    const auto precision = precision::parse_precision(arguments[1]);
    for (const char* strategy : {"ddp", "deterministic"}) {
      if (has(strategy)) share(work, strategy);
    }
    Server server(start_bytes, has("cpu-clock") ? cpu_seconds : monotonic_seconds, [&] {
      return limit_of_step(*work.model, work.task, work.inputs.front().size(0), precision,
                           work.moments);
    });
    const auto serve = has("trainer") ? serve_trainer : has("loop") ? serve_loop : serve_bare;
    serve(work, {.precision = precision, .compiled = has("compiled")}, server);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_step: {}\n", error.what());
    return 2;
  }
}
