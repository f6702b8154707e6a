#include "gallop/app/trained_model.h"

#include <charconv>

#include <fmt/format.h>

#include "gallop/app/print.h"
#include "gallop/app/recipe_components.h"
#include "gallop/base/text.h"
#include "gallop/config/resolve.h"
#include "gallop/data/tokenizer.h"
#include "gallop/track/run_folder.h"
#include "gallop/train/checkpoint.h"
#include "gallop/train/progress.h"

namespace gallop::app {

namespace {

constexpr const char* kInputs = "inputs.yaml";
constexpr const char* kCheckpoints = "checkpoints";

bool is_checkpoint(const fs::path& folder) {
  return folder.filename().string().starts_with("step-") &&
         folder.parent_path().filename() == kCheckpoints &&
         track::RunFolder::is_run(folder.parent_path().parent_path());
}

// Normalizes a path: "runs/a/checkpoints/step-00000100/" without the trailing slash.
fs::path clean(const std::string& name) {
  fs::path path = fs::path(name).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

train::CheckpointInfo info_of(const fs::path& checkpoint) {
  const train::CheckpointStore store(checkpoint.parent_path());
  for (const auto& info : store.list()) {
    if (info.folder.filename() == checkpoint.filename()) return info;
  }
  throw DataError(fmt::format("{}: no complete checkpoint", printable(checkpoint.string())));
}

// A run that was never evaluated has no best checkpoint, so that its newest one is used.
void note_if_none_is_best(const train::CheckpointStore& store, const train::CheckpointInfo& newest,
                          const fs::path& run) {
  if (train::read_integer(store.read_trainer(newest), "evaluated_step") == 0) return;
  print_error(
      "gallop: note: {} has no best checkpoint, as none of its evaluations had a finite metric; "
      "its newest is used, of step {}\n",
      printable(run.string()), newest.step);
}

}  // namespace

const train::Task& TrainedModel::task() const {
  return recipe.recipe.registries->tasks.find(inputs.task);
}

precision::Precision TrainedModel::precision() const {
  return precision::for_evaluation(precision::parse_precision(recipe.recipe.train.precision));
}

void write_inputs(const fs::path& folder, data::Signature inputs) {
  const auto fields = [&](config::Visitor& visitor) { visit(visitor, inputs); };
  write_file_atomically(folder / kInputs,
                        config::to_yaml(config::write_fields(fields, config::Node()), false));
}

data::Signature read_inputs(const fs::path& folder) {
  const fs::path file = folder / kInputs;
  data::Signature inputs{.task = ""};
  config::Problems problems;
  const config::Node written = config::parse_yaml(read_file(file, 1 << 26), file.string());
  config::read_fields(
      written, [&](config::Visitor& visitor) { visit(visitor, inputs); }, problems);
  problems.throw_if_any();
  // Runs of versions without other tasks.
  if (inputs.task.empty()) inputs.task = inputs.is_text() ? "causal-lm" : "classification";
  if (written.find("unit") == nullptr) data::complete_undeclared(inputs);
  return inputs;
}

bool has_inputs(const fs::path& folder) { return fs::exists(folder / kInputs); }

std::vector<fs::path> find_checkpoints(const std::string& runs, const std::string& name,
                                       const std::string& checkpoint) {
  if (const fs::path path = clean(name); is_checkpoint(path)) return {path};
  const fs::path folder = track::RunFolder::find(runs, name);
  const train::CheckpointStore store(folder / kCheckpoints);
  if (checkpoint == "best" || checkpoint == "latest") {
    auto found = checkpoint == "best" ? store.best() : store.newest();
    if (!found) {
      found = store.newest();
      if (found) note_if_none_is_best(store, *found, folder);
    }
    if (found) return {found->folder};
    throw DataError(fmt::format("{} has no checkpoint yet", folder.string()));
  }
  if (checkpoint == "snapshots") {
    std::vector<fs::path> found;
    for (const auto& snapshot : store.snapshots()) found.push_back(snapshot.folder);
    if (!found.empty()) return found;
    throw UsageError(
        fmt::format("{} has no snapshots; train.snapshots=true keeps them", folder.string()));
  }
  std::vector<std::string> steps;
  for (const auto& one : store.list()) {
    steps.push_back(std::to_string(one.step));
    if (steps.back() == checkpoint) return {one.folder};
  }
  throw UsageError(fmt::format("{} has no checkpoint '{}'; it has best, latest and steps {}",
                               folder.string(), printable(checkpoint), join_names(steps, "and")));
}

fs::path find_checkpoint(const std::string& runs, const std::string& name,
                         const std::string& checkpoint) {
  const auto found = find_checkpoints(runs, name, checkpoint);
  if (found.size() == 1) return found.front();
  throw UsageError(fmt::format("{} means {} checkpoints, but a single one is required", checkpoint,
                               found.size()));
}

TrainedModel open_trained_model(const Registries& registries, const std::string& runs,
                                const std::string& name, const std::string& checkpoint,
                                const std::vector<Override>& overrides) {
  const fs::path found = find_checkpoint(runs, name, checkpoint);
  const fs::path folder = found.parent_path().parent_path();
  TrainedModel run{.folder = folder,
                   .recipe = parse_recipe(registries, track::RunFolder::read_recipe(folder),
                                          (folder / "recipe.yaml").string(), overrides),
                   .inputs = read_inputs(folder),
                   .model = nullptr,
                   .checkpoint = info_of(found)};
  model::InitialWeights weights(0);
  const std::string run_folder = folder.string();
  weights.run = run_folder;
  run.model = build_model(*run.recipe.recipe.registries, run.recipe,
                          model_task(run.inputs, run.recipe.recipe.registries->tasks), weights);
  NamedTensors tensors = run.model->parameters();
  for (const auto& buffer : run.model->buffers()) tensors.push_back(buffer);
  train::CheckpointStore(folder / kCheckpoints).load_model(run.checkpoint, tensors);
  return run;
}

}  // namespace gallop::app
