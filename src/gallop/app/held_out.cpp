#include "gallop/app/held_out.h"

#include <algorithm>
#include <map>
#include <utility>

#include <ATen/ops/softmax.h>
#include <fmt/format.h>

#include "gallop/app/device.h"
#include "gallop/app/recipe_components.h"
#include "gallop/app/resume_options.h"
#include "gallop/app/run_inputs.h"
#include "gallop/app/runs/which_runs.h"
#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/text_samples.h"
#include "gallop/track/run_folder.h"
#include "gallop/train/evaluate.h"

namespace gallop::app {

namespace {

data::Part chosen_part(const data::DataModule& data, const std::string& word,
                       const fs::path& folder) {
  if (word.empty()) return data.validation ? data::Part::kValidation : data::Part::kTest;
  if (const auto part = data::part_of_word(word)) return *part;
  throw UsageError(
      fmt::format("--split must be train, validation or test, not '{}'; {} has these splits",
                  printable(word), folder.string()));
}

ResolvedRecipe recipe_of(const Registries& registries, const fs::path& run) {
  return parse_recipe(registries, track::RunFolder::read_recipe(run),
                      (run / "recipe.yaml").string(), {});
}

// Whether two recipes are for two folds of one cross-validation, or of two with other seeds. Each
// run may have measured its own formats, which change results by rounding alone.
bool is_other_fold(ResolvedRecipe& run, ResolvedRecipe& other) {
  const auto is_place = [](const OptionChange& change) {
    return change.option == "data.fold" || change.option == "train.seed";
  };
  const auto is_format = [](const OptionChange& change) {
    return change.option == "train.precision" || change.option == "train.channels_last";
  };
  const auto changes = changed_options(run, other, /*is_continued=*/false);
  return std::any_of(changes.begin(), changes.end(), is_place) &&
         std::all_of(changes.begin(), changes.end(), [&](const OptionChange& change) {
           return is_place(change) || is_format(change);
         });
}

/// Sums the predictions of each sample over the runs that predict it.
class Sums {
 public:
  Sums(int64_t classes, SplitPredictions& all) : all_(all) { all.values.classes = classes; }

  void add(const PredictedSample& sample, int64_t label, const float* shares) {
    data::LabeledPredictions& values = all_.values;
    const data::Part part = sample.split->part;
    const std::string name = sample.split->samples().describe(sample.index);
    const auto [known, is_new] = rows_.try_emplace({part, name}, values.size());
    if (is_new) {
      values.probabilities.insert(values.probabilities.end(), shares, shares + values.classes);
      values.labels.push_back(label);
      all_.samples.push_back(sample);
      all_.models.push_back(1);
      return;
    }
    const auto row = static_cast<size_t>(known->second);
    if (values.labels[row] != label) {
      throw UsageError(fmt::format("the label of '{}' in {} differs from that in an earlier run",
                                   printable(name), sample.split->run.folder.string()));
    }
    float* const sums = values.probabilities.data() + known->second * values.classes;
    for (int64_t k = 0; k < values.classes; ++k) sums[k] += shares[k];
    ++all_.models[row];
  }

  void divide() {
    data::LabeledPredictions& values = all_.values;
    for (int64_t row = 0; row < values.size(); ++row) {
      const auto models = static_cast<float>(all_.models[static_cast<size_t>(row)]);
      float* const sums = values.probabilities.data() + row * values.classes;
      for (int64_t k = 0; k < values.classes; ++k) sums[k] /= models;
    }
  }

 private:
  SplitPredictions& all_;
  std::map<std::pair<data::Part, std::string>, int64_t> rows_;
};

bool is_finished(const fs::path& run) {
  const auto records = log_of(run).current();
  return !records.empty() && records.back().kind == "end" &&
         records.back().texts.at("how") == "finished";
}

}  // namespace

PredictedSplit open_predicted_split(const Registries& registries, const std::string& runs,
                                    const std::string& name, const std::string& checkpoint,
                                    const std::string& part) {
  PredictedSplit split{.run = open_trained_model(registries, runs, name, checkpoint, {}),
                       .data = nullptr};
  const data::Signature& inputs = split.run.inputs;
  const Registries& own = *split.run.recipe.recipe.registries;
  if (!split.run.task().has_class_per_sample()) {
    throw UsageError(fmt::format(
        "label errors can be found only in data with one class per sample; the task of {} is {}",
        split.run.folder.string(), inputs.task));
  }
  Recipe recipe = split.run.recipe.recipe;
  // Each sample is read once.
  recipe.data.in_memory = "no";
  split.data = open_data_for(own, recipe, inputs);
  split.part = chosen_part(*split.data, part, split.run.folder);
  if (split.data->split(split.part) == nullptr) {
    throw UsageError(fmt::format("the data of {} have no {} split", split.run.folder.string(),
                                 data::kPartNames[static_cast<size_t>(split.part)]));
  }
  return split;
}

std::vector<fs::path> other_folds(const Registries& registries, const fs::path& run) {
  ResolvedRecipe own = recipe_of(registries, run);
  if (own.recipe.data.folds == 0) return {};
  std::map<std::pair<int64_t, int64_t>, fs::path> by_seed_and_fold;
  std::vector<fs::path> folders;
  for (const auto& entry :
       fs::directory_iterator(fs::absolute(run).lexically_normal().parent_path())) {
    if (track::RunFolder::is_run(entry.path())) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  for (const fs::path& folder : folders) {
    std::optional<ResolvedRecipe> other;
    try {
      other.emplace(recipe_of(registries, folder));
    } catch (const UsageError&) {
      continue;  // A run of another version, or with plug-ins that are missing.
    }
    if (!is_other_fold(own, *other) || !is_finished(folder)) continue;
    const auto place = std::pair(other->recipe.train.seed, other->recipe.data.fold);
    by_seed_and_fold.emplace(place, folder);
  }
  std::vector<fs::path> found;
  for (const auto& [place, folder] : by_seed_and_fold) found.push_back(folder);
  return found;
}

std::optional<SplitPredictions> predict_splits(std::vector<PredictedSplit>& splits,
                                               const StopRequest& stop) {
  SplitPredictions all;
  const auto classes = static_cast<int64_t>(splits.front().run.inputs.classes.size());
  Sums sums(classes, all);
  const Hardware hardware = read_hardware();
  for (PredictedSplit& split : splits) {
    check_fits(splits.front().run.inputs, split.run.inputs);
    const Recipe& recipe = split.run.recipe.recipe;
    const Registries& own = *recipe.registries;
    set_compute_threads(recipe, hardware);
    const c10::Device device =
        choose_device(recipe.train.device, recipe.train.deterministic).device;
    split.run.model->to(device, recipe.train.channels_last == "true");
    const auto see = [&](const data::Batch& batch, const at::Tensor& logits) {
      const at::Tensor shares = at::softmax(logits.to(at::kFloat), -1).cpu().contiguous();
      const at::Tensor labels = batch.target().to(at::kLong).cpu().contiguous();
      for (int64_t i = 0; i < batch.size(); ++i) {
        if (labels.const_data_ptr<int64_t>()[i] == data::kIgnoredTarget) continue;
        sums.add({.split = &split, .index = batch.position_of(i)},
                 labels.const_data_ptr<int64_t>()[i], shares.const_data_ptr<float>() + i * classes);
      }
    };
    const auto evaluation = train::evaluate(
        *split.run.model, split.samples(),
        {.loader = data::evaluation_loader(recipe.data, hardware.cores),
         .precision = split.run.precision(),
         .device = device,
         .views = train::test_views(recipe.evaluate, model_task(split.run.inputs, own.tasks)),
         .see = see},
        stop);
    if (!evaluation) return std::nullopt;
    all.skipped += evaluation->skipped;
  }
  sums.divide();
  return all;
}

}  // namespace gallop::app
