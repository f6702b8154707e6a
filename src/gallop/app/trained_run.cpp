#include "gallop/app/trained_run.h"

#include <charconv>

#include <fmt/format.h>

#include "gallop/base/text.h"
#include "gallop/config/resolve.h"
#include "gallop/track/run_folder.h"
#include "gallop/train/checkpoint.h"

namespace gallop::app {

namespace {

constexpr const char* kInputs = "inputs.yaml";

train::CheckpointInfo find_checkpoint(const train::CheckpointStore& store,
                                      const std::string& wanted, const fs::path& folder) {
  if (wanted == "best" || wanted == "latest") {
    auto found = wanted == "best" ? store.best() : store.newest();
    if (!found) found = store.newest();
    if (found) return *found;
    throw DataError(fmt::format("{} has no checkpoint yet", folder.string()));
  }
  std::vector<std::string> steps;
  for (const auto& checkpoint : store.list()) {
    steps.push_back(std::to_string(checkpoint.step));
    if (steps.back() == wanted) return checkpoint;
  }
  throw UsageError(fmt::format("{} has no checkpoint '{}'; it has best, latest and steps {}",
                               folder.string(), printable(wanted), join_names(steps, "and")));
}

}  // namespace

precision::Precision TrainedRun::precision() const {
  return precision::parse_precision(recipe.recipe.train.precision);
}

fs::path find_run(const std::string& runs, const std::string& name) {
  for (const fs::path& folder : {fs::path(name), fs::path(runs) / name}) {
    if (track::RunFolder::is_run(folder)) return folder;
  }
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(runs, ignored)) {
    if (track::RunFolder::is_run(entry.path())) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  throw UsageError(fmt::format("there is no run '{}'{}", printable(name),
                               names.empty()
                                   ? fmt::format("; {} holds none", runs)
                                   : fmt::format("; {} holds {}", runs, join_names(names, "and"))));
}

void write_inputs(const fs::path& folder, RunInputs inputs) {
  const auto fields = [&](config::Visitor& visitor) { visit(visitor, inputs); };
  write_file_atomically(folder / kInputs,
                        config::to_yaml(config::write_fields(fields, config::Node()), false));
}

RunInputs read_inputs(const fs::path& folder) {
  const fs::path file = folder / kInputs;
  RunInputs inputs;
  config::Problems problems;
  config::read_fields(
      config::parse_yaml(read_file(file, 1 << 26), file.string()),
      [&](config::Visitor& visitor) { visit(visitor, inputs); }, problems);
  problems.throw_if_any();
  return inputs;
}

bool has_inputs(const fs::path& folder) { return fs::exists(folder / kInputs); }

TrainedRun open_trained_run(const Families& families, const std::string& runs,
                            const std::string& name, const std::string& checkpoint,
                            const std::vector<Override>& overrides) {
  const fs::path folder = find_run(runs, name);
  TrainedRun run{.folder = folder,
                 .recipe = parse_recipe(families, track::RunFolder::read_recipe(folder),
                                        (folder / "recipe.yaml").string(), overrides),
                 .inputs = read_inputs(folder),
                 .model = nullptr};
  run.model =
      families.models.build(run.recipe.recipe.model, run.inputs.task(), model::InitialWeights(0));
  NamedTensors tensors = run.model->parameters();
  for (const auto& buffer : run.model->buffers()) tensors.push_back(buffer);
  const train::CheckpointStore store(folder / "checkpoints");
  const train::CheckpointInfo found = find_checkpoint(store, checkpoint, folder);
  store.load_model(found, tensors);
  run.step = found.step;
  return run;
}

}  // namespace gallop::app
