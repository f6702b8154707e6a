#include "gallop/app/proven_training.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "gallop/app/recipe_components.h"
#include "gallop/app/session.h"
#include "gallop/app/trainer_parts.h"
#include "gallop/base/clock.h"
#include "gallop/base/temporary_folder.h"
#include "gallop/data/device_loader.h"
#include "gallop/parallel/mesh.h"
#include "gallop/train/prove/probes.h"
#include "gallop/train/prove/proof_text.h"
#include "gallop/train/state_watch.h"

namespace gallop::app {

namespace {

using precision::Precision;
using train::PlainStep;
using train::RecordedStep;

// A reference in fp64 takes about so many times as long as a plain step in fp32.
constexpr double kWideFactor = 2.5;
constexpr double kMostWideSeconds = 120;
constexpr int64_t kProbedRows = 2;

double roundoff_of(Precision precision) {
  switch (precision) {
    case Precision::kFp32: return std::ldexp(1, -24);
    case Precision::kTf32:
    case Precision::kFp16: return std::ldexp(1, -11);
    case Precision::kBf16:
    case Precision::kBf16Weights: return std::ldexp(1, -8);
    case Precision::kFp8: return std::ldexp(1, -4);
  }
  throw InternalError("prove: a precision without a roundoff");
}

void require_provable(const Session& session, const DistributedContext& context,
                      const model::Model& model) {
  if (!session.device().is_cpu()) {
    throw UsageError(
        "'gallop prove' and train.prove support only CPUs so far; set train.device=cpu, or omit "
        "train.prove");
  }
  if (const std::string draw = model.draws_from_generator(); !draw.empty()) {
    throw UsageError(fmt::format(
        "model '{}' cannot be proven: it draws random numbers from LibTorch's generator, which no "
        "reference can repeat: {}",
        session.recipe().model.name(), draw));
  }
  const data::Fields& fields = session.data().train->fields();
  const bool is_ragged = std::any_of(fields.begin(), fields.end(), [](const data::Field& field) {
    return field.padding.has_value();
  });
  if (is_ragged && !context.is_alone()) {
    throw UsageError(
        "samples of several lengths are padded separately in each process, so steps of "
        "several processes cannot be compared; prove them in one process");
  }
}

// Trains the first steps of a session.
std::vector<RecordedStep> record_steps(Session& session, const DistributedContext& context,
                                       int64_t steps, bool probes, const StopRequest& stop) {
  std::optional<TemporaryFolder> folder;
  const std::string path = context.run_on_rank0([&] {
    folder.emplace(fs::temp_directory_path(), "gallop-prove-");
    return folder->path().string();
  });
  train::CheckpointStore checkpoints(fs::path(path) / "checkpoints", {});
  train::StepConfig step_config = session.step_config();
  train::Division division{.micro_batches = step_config.gradient_accumulation};
  if (step_config.strategy != nullptr) {
    division.slices = step_config.strategy->batch_slices();
    division.shares_batch_norm = step_config.strategy->shares_batch_norm();
  }
  train::StepRecorder recorder(session.model(), session.optimizer(), division, context.rank(),
                               context.size());
  train::ProbedModel model(session.model());
  train::ProbedOptimizer optimizer(session.optimizer(), session.model().parameters(), model);
  const train::TrainerParts own = trainer_parts(session, checkpoints, stop);
  train::TrainerParts parts{
      .model = probes ? model : own.model,
      .optimizer = probes ? optimizer : own.optimizer,
      .schedule = own.schedule,
      .lr_factor = own.lr_factor,
      .scheduled = own.scheduled,
      .train_samples = own.train_samples,
      .evaluation_samples = own.evaluation_samples,
      .checkpoints = checkpoints,
      .observers = {&recorder},
      .stop = stop,
      .until = {.unit = train::Interval::Unit::kSteps, .count = static_cast<double>(steps)},
      .teacher = own.teacher};
  if (probes) recorder.probe(model, optimizer);
  const bool has_hooks =
      step_config.strategy != nullptr && step_config.strategy->block_hooks() != nullptr;
  if (probes && !has_hooks) model.probe_blocks();
  train::Trainer trainer(parts, session.recipe().train, step_config, session.training_loader(),
                         session.evaluate_config());
  trainer.run();
  return recorder.take();
}

std::string bytes_of(const at::Tensor& tensor) {
  const at::Tensor host = tensor.cpu().contiguous();
  return {static_cast<const char*>(host.const_data_ptr()), host.nbytes()};
}

// The rows of all processes, whose tensors differ in their number.
at::Tensor gathered(parallel::Collectives& collectives, const at::Tensor& own) {
  std::vector<int64_t> sizes = own.sizes().vec();
  const int64_t row_bytes =
      static_cast<int64_t>(own.element_size()) *
      std::accumulate(sizes.begin() + 1, sizes.end(), int64_t{1}, std::multiplies<>());
  std::vector<at::Tensor> all;
  for (const std::string& bytes : parallel::gather_bytes(collectives, bytes_of(own))) {
    sizes.front() = row_bytes == 0 ? 0 : static_cast<int64_t>(bytes.size()) / row_bytes;
    at::Tensor tensor = at::empty(sizes, at::TensorOptions(own.scalar_type()));
    std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
    all.push_back(tensor);
  }
  return at::cat(all).to(own.device());
}

// Completes the batches and outputs of all processes, and requires that their states are equal.
void gather_steps(parallel::Collectives& collectives, std::vector<RecordedStep>& steps) {
  for (RecordedStep& step : steps) {
    for (NamedTensor& field : step.batch) {
      field.tensor = gathered(collectives, field.tensor);
    }
    const auto whole = step.division.whole_rows();
    if (step.batch.front().tensor.size(0) != whole) {
      throw UsageError(fmt::format(
          "step {} has broken samples, so its slices are unknown; remove them from the data, "
          "or prove the training in one process",
          step.step + 1));
    }
    const bool has_outputs = step.outputs.defined();
    if (!parallel::any_of(collectives, !has_outputs)) {
      step.outputs = gathered(collectives, step.outputs);
      for (NamedTensor& one : step.activations) one.tensor = gathered(collectives, one.tensor);
    } else {
      step.activations.clear();
    }
    NamedTensors state = step.after.parameters;
    state.insert(state.end(), step.after.buffers.begin(), step.after.buffers.end());
    const auto checksums = parallel::gather(collectives, train::checksum_of(state));
    const auto other = std::find_if(checksums.begin(), checksums.end(),
                                    [&](uint64_t one) { return one != checksums.front(); });
    if (other == checksums.end()) continue;
    throw InternalError(fmt::format("rank {} has other weights after step {} than rank 0",
                                    other - checksums.begin(), step.step + 1));
  }
}

// Whether the optimizer stores weights or states in other formats than fp32, for which there are no
// operators of LibTorch.
bool has_own_format(Session& session) {
  const NamedTensors state = session.optimizer().state();
  return session.format().precision == Precision::kBf16Weights ||
         std::any_of(state.begin(), state.end(),
                     [](const NamedTensor& one) { return one.tensor.scalar_type() == at::kByte; });
}

// A model and an optimizer of their own for a plain step.
struct PlainTraining {
  std::unique_ptr<model::Model> model, stored;  // The second has the weights of the optimizer.
  std::unique_ptr<optim::Optimizer> optimizer;
  std::optional<PlainStep> step;

  PlainTraining(Session& session, bool is_wide, Precision precision, bool channels_last) {
    const auto make = [&] {
      auto made = session.make_model();
      made->to(session.device(), channels_last);
      return made;
    };
    model = make();
    const bool stores_bf16 = session.format().precision == Precision::kBf16Weights;
    if (is_wide) {
      train::convert_to_fp64(*model);
    } else if (precision == Precision::kBf16Weights) {
      precision::keep_in_bf16(model->parameters());
    }
    if (has_own_format(session)) {
      stored = make();
      if (stores_bf16) precision::keep_in_bf16(stored->parameters());
    }
    optimizer = session.make_optimizer(stored ? *stored : *model);
    train::StepConfig config = session.step_config();
    config.precision = precision;
    const double loss_scale = precision == Precision::kFp16 ? config.loss_scale.initial : 1;
    step.emplace(*model, *optimizer, config, loss_scale,
                 stored ? stored->parameters() : NamedTensors());
  }

  // Seconds of a step of the first rows, at most so many.
  double run_some(const RecordedStep& like, int64_t rows, uint64_t seed) {
    step->load(like.before);
    rows = std::min(rows, like.batch.front().tensor.size(0));
    const double began = monotonic_seconds();
    step->run(slice_rows(like.batch, 0, rows), train::undivided({.rows = {rows}}, seed), like.step,
              like.lr, like.scheduled);
    return monotonic_seconds() - began;
  }
};

// The training that steps are compared with, and the one that gives the bounds.
struct References {
  std::unique_ptr<PlainTraining> reference, plain;
  train::ComparisonConfig comparison;
  std::string why_narrow;  // Why the reference is not in fp64.

  bool is_wide() const { return why_narrow.empty(); }
};

// Whether a model supports fp64: archives may have constants and casts of fp32.
bool runs_some(PlainTraining& wide, const RecordedStep& first, int64_t rows, uint64_t seed) {
  try {
    wide.run_some(first, rows, seed);
    return true;
  } catch (const c10::Error&) {
    return false;
  } catch (const Error&) {
    return false;
  }
}

std::string why_no_fp64(const ProveConfig& config, PlainTraining& wide, PlainTraining& plain,
                        const RecordedStep& first, int64_t least_rows, int64_t steps) {
  const auto seed = uint64_t{1};
  if (!runs_some(wide, first, least_rows, seed)) {
    if (config.reference == "fp64") {
      throw UsageError("--reference fp64: the model computes in fp32 alone; omit it");
    }
    return "as the model computes in no other";
  }
  if (config.reference == "fp64") return {};
  const double seconds = kWideFactor * static_cast<double>(steps) *
                         plain.run_some(first, first.division.whole_rows(), seed);
  if (seconds <= kMostWideSeconds) return {};
  return fmt::format("in fp64 it would take about {:.0f} s", seconds);
}

References build_references(Session& session, const ProveConfig& config,
                            const std::vector<RecordedStep>& steps, size_t compared_steps) {
  const RecordedStep& first = steps.front();
  const int64_t fixed = session.model().fixed_batch();
  const int64_t least_rows = fixed > 0 ? fixed : std::min(kProbedRows, first.division.rows.front());
  const train::StepConfig step_config = session.step_config();
  const Precision precision = session.format().precision;
  const bool draws = PlainStep(session.model(), session.optimizer(), step_config)
                         .draws_dropout(slice_rows(first.batch, 0, least_rows));
  if (draws && first.division.shares_batch_norm && first.division.rows.size() > 1) {
    throw UsageError(
        "processes that synchronize batch norm cannot be proven with a model that has dropout, "
        "which each draws for itself; prove the training in one process");
  }
  // The numbers that dropout draws depend on the memory order.
  const bool channels_last = draws && session.format().channels_last;
  References all;
  all.plain = std::make_unique<PlainTraining>(session, false, precision, channels_last);
  if (config.reference == "fp32") {
    all.why_narrow = "as requested";
  } else {
    all.reference = std::make_unique<PlainTraining>(session, true, Precision::kFp32, channels_last);
    all.why_narrow = why_no_fp64(config, *all.reference, *all.plain, first, least_rows,
                                 static_cast<int64_t>(compared_steps));
  }
  if (!all.is_wide()) {
    all.reference =
        std::make_unique<PlainTraining>(session, false, Precision::kFp32, channels_last);
  }
  all.comparison = {
      .seed = static_cast<uint64_t>(session.recipe().train.seed),
      .depends_on_division = draws || fixed > 0 || !session.model().statistics().empty(),
      .roundoff = roundoff_of(precision),
      .storage_roundoff =
          roundoff_of(precision == Precision::kBf16Weights ? precision : Precision::kFp32),
      .has_plain_state = !has_own_format(session),
      .perturbs = !all.is_wide() && precision == Precision::kFp32};
  return all;
}

std::string text_of(const References& references, bool is_undivided) {
  std::string text = references.is_wide() ? "fp64" : "fp32, " + references.why_narrow;
  text += "; LibTorch's operators, eager, one process";
  text += is_undivided ? ", undivided batches" : ", batches divided as in the training";
  if (!references.comparison.has_plain_state) text += "; updates in the optimizer's own format";
  return text;
}

// Compares on rank 0.
train::Proof compare(Session& session, const References& references,
                     const std::vector<std::vector<RecordedStep>>& runs, const StopRequest& stop) {
  train::Comparison comparison(*references.reference->step, *references.plain->step,
                               references.comparison);
  for (const auto& steps : runs) {
    data::LoaderConfig config = session.training_loader();
    config.threads = 0;
    config.part = 0;
    config.parts = 1;
    data::DeviceLoader loader(*session.data().train, config, {.seed = session.recipe().train.seed},
                              session.device());
    for (const RecordedStep& step : steps) {
      const auto batch = loader.next(&stop);
      if (!batch) return {};
      if (!step.is_skipped) comparison.add(step, batch->by_role());
    }
  }
  if (comparison.proof().steps == 0) {
    throw UsageError(
        "the updates of all steps were skipped, so there is nothing to compare; increase "
        "--steps, or reduce train.loss_scale.initial");
  }
  return comparison.proof();
}

}  // namespace

void require_provable_strategy(const Recipe& recipe, int processes) {
  if (processes == 1) return;
  if (parallel::trains_replicas(recipe.strategy.name())) {
    throw UsageError(
        fmt::format("'gallop prove' and train.prove compare updates with those by the gradient of "
                    "the whole batch, which no process computes with parallel.name={}; prove the "
                    "training with parallel.name=ddp",
                    recipe.strategy.name()));
  }
  const parallel::DeviceMesh mesh = parallel::mesh_of(recipe.strategy, processes);
  if (mesh.size(parallel::kContextAxis) > 1) {
    throw UsageError(
        "'gallop prove' and train.prove compute whole sequences, and each process has only some of "
        "their tokens with parallel.name=context; prove the training in one process");
  }
  if (mesh.size(parallel::kExpertAxis) > 1) {
    throw UsageError(
        "'gallop prove' and train.prove read gradients and states of all experts, and each process "
        "has only some of the experts with parallel.name=expert; prove the training in one "
        "process");
  }
  if (!parallel::divides_update(recipe.strategy.name())) return;
  if (recipe.strategy.name() == "pipeline") {
    throw UsageError(
        "'gallop prove' and train.prove read gradients and states of the whole model, and each "
        "process has only its own stages with parallel.name=pipeline; prove the training in one "
        "process, which is bit-identical");
  }
  if (recipe.strategy.name() == "tensor") {
    throw UsageError(
        "'gallop prove' and train.prove read gradients and states of whole parameters, and each "
        "process has only parts of them with parallel.name=tensor; prove the training in one "
        "process");
  }
  throw UsageError(
      fmt::format("'gallop prove' and train.prove read gradients and states of whole parameters, "
                  "and each process has only shards of them with parallel.name={}; use "
                  "parallel.name=ddp with parallel.sum_order=rank, which is bit-identical",
                  recipe.strategy.name()));
}

ProvenTraining prove_training(const ResolvedRecipe& resolved, const std::string& runs,
                              const DistributedContext& context, const ProveConfig& config,
                              const StopRequest& stop) {
  require_provable_strategy(resolved.recipe, context.size());
  ProvenTraining result;
  std::vector<std::vector<RecordedStep>> recorded;
  Session session(resolved, runs, context.collectives());
  require_provable(session, context, session.model());
  recorded.push_back(record_steps(session, context, config.steps, /*probes=*/false, stop));
  {
    Session again(session.resolved(), runs, context.collectives());
    recorded.push_back(record_steps(again, context, config.steps, /*probes=*/true, stop));
  }
  const bool stopped = context.run_on_rank0([&] { return stop.requested(); });
  if (stopped) return result;
  if (!context.is_alone()) {
    context.collectives()->begin(parallel::Section::kCheckpoint, config.steps);
    for (auto& steps : recorded) gather_steps(*context.collectives(), steps);
  }
  result.difference = context.run_on_rank0([&] {
    const References references =
        build_references(session, config, recorded.front(), 2 * recorded.front().size());
    result.proof = compare(session, references, recorded, stop);
    result.reference = text_of(references, !references.comparison.depends_on_division);
    return train::difference_text(result.proof);
  });
  const auto steps = static_cast<int64_t>(recorded.front().size());
  result.training = fmt::format(
      "{}: steps 1 to {} of {}; {}{}", session.resolved().name, steps,
      samples_text(session.inputs(), session.recipe().data.batch_size), session.describe_training(),
      context.is_alone() ? "" : fmt::format(", {} processes", context.size()));
  return result;
}

}  // namespace gallop::app
