#include "gallop/app/recipe_components.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "gallop/app/data_sharing.h"
#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/base/text.h"
#include "gallop/config/option_error.h"
#include "gallop/data/sampling.h"
#include "gallop/data/view_names.h"
#include "gallop/model/frozen.h"

namespace gallop::app {

namespace {

data::OpenOptions open_options(const Recipe& recipe) {
  const Hardware hardware = read_hardware();
  return {.seed = static_cast<uint64_t>(recipe.train.seed),
          .cores = hardware.cores,
          .memory_bytes = hardware.memory_bytes,
          .cache_folder = user_cache_folder()};
}

std::unique_ptr<data::DataModule> open_data(const Registries& registries, const Recipe& recipe,
                                            const data::Signature* trained) {
  data::OpenOptions options = open_options(recipe);
  options.trained = trained;
  set_sharing(options);
  return data::open_data(recipe.data, registries.data_modules, registries.augmentations, options);
}

}  // namespace

std::unique_ptr<data::DataModule> open_data(const Registries& registries, const Recipe& recipe) {
  return open_data(registries, recipe, /*trained=*/nullptr);
}

std::unique_ptr<data::DataModule> read_data(const Registries& registries, const Recipe& recipe) {
  return data::read_data(recipe.data, registries.data_modules, registries.augmentations,
                         open_options(recipe));
}

std::unique_ptr<data::DataModule> open_data_for(const Registries& registries, Recipe recipe,
                                                const data::Signature& trained) {
  recipe.data.mean = trained.mean;
  recipe.data.deviation = trained.deviation;
  // Other data may be grayscale only, or unlike the training data have color.
  if (recipe.data.channels == 0) recipe.data.channels = trained.channels;
  auto data = open_data(registries, recipe, &trained);
  check_fits(data->signature, trained);
  return data;
}

std::unique_ptr<model::Model> build_model(const Registries& registries,
                                          const ResolvedRecipe& resolved, const model::Task& task,
                                          model::InitialWeights weights) {
  try {
    auto model = registries.models.build(resolved.recipe.model, task, weights);
    const std::vector<std::string>& patterns = resolved.recipe.train.freeze;
    return patterns.empty() ? std::move(model) : model::freeze(std::move(model), patterns);
  } catch (const config::OptionError& error) {
    config::throw_with_origin(error, resolved.written);
  }
}

namespace {

const char* texts_of(const data::Signature& signature) {
  return signature.views > 1 ? "pairs of texts" : "texts";
}

// "pairs of "; empty if samples have one view.
std::string views_text(const data::Signature& signature) {
  if (signature.views == 1) return {};
  return fmt::format("{} of ", data::name_of_views(signature.views));
}

// "rows of ", or "sequences of 28 steps of "
std::string rows_text(const data::Signature& signature) {
  if (signature.context == 0) return "rows of ";
  return fmt::format("sequences of {} steps of ", signature.context);
}

std::string describe(const data::Signature& signature) {
  const std::string task =
      signature.task == "classification" ? std::string() : " for " + signature.task;
  if (signature.separate_texts) {
    return fmt::format("{} of {} for {}", texts_of(signature), signature.unit, signature.task);
  }
  if (signature.is_text()) {
    return fmt::format("text in windows of {} with {} different tokens{}", signature.context,
                       signature.vocabulary.size(),
                       signature.task == "causal-lm" ? std::string() : task);
  }
  if (signature.views > 1) {
    const std::string views = fmt::format("{} views", signature.views);
    if (signature.is_images()) {
      return fmt::format("{} of images of {}x{}x{}{}", views, signature.channels, signature.height,
                         signature.width, task);
    }
    return fmt::format("{} of {}{} numbers{}", views, rows_text(signature),
                       signature.columns.size(), task);
  }
  if (signature.is_numbers()) {
    const size_t targets = std::max(signature.classes.size(), signature.targets.size());
    return fmt::format("{}{} numbers with {} {} for {}", rows_text(signature),
                       signature.columns.size(), targets,
                       signature.classes.empty() ? "targets" : "classes", signature.task);
  }
  return fmt::format("images of {}x{}x{} in {} classes{}", signature.channels, signature.height,
                     signature.width, signature.classes.size(), task);
}

using Names = std::vector<std::string>;

// Those of `names` that are not among `others`, shortened.
std::string without(const Names& names, const Names& others) {
  constexpr size_t kMostNamed = 5;
  Names rest;
  for (const std::string& name : names) {
    if (std::find(others.begin(), others.end(), name) == others.end()) {
      rest.push_back("'" + printable(name) + "'");
    }
  }
  if (rest.size() > kMostNamed) {
    const size_t more = rest.size() - kMostNamed;
    rest.resize(kMostNamed);
    rest.push_back(fmt::format("{} more", more));
  }
  return join_names(rest, "and");
}

std::string difference_of(const Names& found, const Names& wanted) {
  const std::string unknown = without(found, wanted), missing = without(wanted, found);
  if (unknown.empty() && missing.empty()) return "the same ones in another order";
  std::string text;
  if (!unknown.empty()) text = unknown + (missing.empty() ? " is new" : " in place of ");
  return missing.empty() ? text : text + missing + (unknown.empty() ? " is missing" : "");
}

}  // namespace

void check_fits(const data::Signature& found, const data::Signature& wanted) {
  data::Signature given = found;
  // Runs of versions without sequences of numbers do not know their sizes.
  if (wanted.is_numbers() && wanted.columns.empty()) {
    given.columns.clear();
    given.context = 0;
  }
  if (describe(given) != describe(wanted)) {
    throw DataError(fmt::format("the model was trained on {}, but the data contain {}",
                                describe(wanted), describe(given)));
  }
  if (given.vocabulary != wanted.vocabulary) {
    throw DataError(
        "the data have different characters than the data that the model was trained on");
  }
  const auto require_same = [](const Names& one, const Names& other, const char* what) {
    if (one == other) return;
    throw DataError(
        fmt::format("the data have different {} than the data that the model was trained on: {}",
                    what, difference_of(one, other)));
  };
  require_same(given.classes, wanted.classes, "classes");
  require_same(given.columns, wanted.columns, "columns");
  require_same(given.targets, wanted.targets, "targets");
}

bool normalize_alike(const data::Signature& one, const data::Signature& other) {
  constexpr double kShare = 0.01;
  if (one.mean.size() != other.mean.size()) return false;
  for (size_t i = 0; i < one.mean.size(); ++i) {
    const double most = kShare * one.deviation[i];
    if (std::abs(one.mean[i] - other.mean[i]) > most) return false;
    if (std::abs(one.deviation[i] - other.deviation[i]) > most) return false;
  }
  return true;
}

bool has_weights(const data::Samples& samples) {
  return std::any_of(samples.fields().begin(), samples.fields().end(),
                     [](const data::Field& field) { return field.name == "weight"; });
}

const char* samples_of(const data::Signature& signature) {
  if (signature.separate_texts) return signature.text_samples();
  if (signature.is_text()) return "windows";
  if (signature.views > 1) return data::name_of_views(signature.views);
  return signature.is_numbers() ? "rows" : "images";
}

std::string samples_text(const data::Signature& signature, int64_t samples) {
  std::string text = fmt::format("{} {}", samples, samples_of(signature));
  if (signature.is_text() && !signature.separate_texts) {
    text += fmt::format(" of {} tokens", signature.context);
  }
  return text;
}

namespace {

// "1 target"
std::string counted(int64_t count, const char* one, const char* several) {
  return fmt::format("{} {}", format_count(count), count == 1 ? one : several);
}

// "10 classes"; empty if outputs are tokens or embeddings.
std::string outputs_text(const data::Signature& signature, const train::Task& task) {
  const auto classes = static_cast<int64_t>(signature.classes.size());
  const auto targets = static_cast<int64_t>(signature.targets.size());
  if (classes > 0 && task.has_labels()) return counted(classes, "label", "labels");
  if (classes > 0) return counted(classes, "class", "classes");
  return targets > 0 ? counted(targets, "target", "targets") : "";
}

// Targets that a loss checks: enough to find a loss that does not suit the data. Images are decoded
// for it.
constexpr int64_t kCheckedTargets = 4096, kCheckedImages = 64;

// What a loss requires of the data besides the sizes and types of targets.
void check_loss(const std::string& name, const train::Loss& loss, const data::Signature& signature,
                const data::Samples& samples, const train::Task& task) {
  const train::LossTraits traits = loss.traits();
  if (!signature.target_mean.empty() && !traits.is_of_units) {
    throw UsageError(
        fmt::format("train.loss: {} is not for targets of mean 0 and deviation 1; set "
                    "data.standardize_targets=false",
                    name));
  }
  if (has_weights(samples) && !traits.takes_weights) {
    throw UsageError(
        fmt::format("train.loss: {} does not use sample weights, but the data have them in the "
                    "field 'weight'; omit data.weight, or choose a different loss",
                    name));
  }
  if (traits.predicts_numbers && task.is_binary()) {
    throw UsageError(
        fmt::format("train.loss: {} is for numbers, but the task of these data is {}, in which "
                    "outputs are logits; its loss is {}",
                    name, task.name, task.loss));
  }
  const bool is_image = samples.fields().input().shape.sizes.size() > 2;
  loss.check_targets(
      [&] { return data::some_targets(samples, is_image ? kCheckedImages : kCheckedTargets); });
}

// Which losses the views of a sample are for.
std::string views_remedy(const data::DataConfig& config, const data::Signature& signature) {
  constexpr int64_t kPair = 2, kTriplet = 3;
  std::string losses = "info-nce with negatives: given";
  if (signature.views == kPair) losses = "info-nce and cosine-embedding";
  if (signature.views == kTriplet) losses = "triplet-margin, and info-nce with negatives: given";
  return fmt::format("data.path={} has {} views per sample, for which there are {}",
                     printable(config.path), signature.views, losses);
}

std::shared_ptr<const train::Loss> build_chosen(const Registries& registries, const Recipe& recipe,
                                                const config::Component& chosen,
                                                const data::Signature& signature,
                                                const data::Samples& samples, c10::Device device,
                                                std::vector<int64_t>* counted = nullptr) {
  const data::RowShape& target = samples.fields().target().shape;
  const train::Task& task = registries.tasks.find(signature.task);
  const int64_t classes = task.has_classes() ? signature.outputs() : 0;
  train::LossContext context{.output_sizes = target.sizes,
                             .target_sizes = target.sizes,
                             .target_type = target.dtype,
                             .classes = classes,
                             .device = device,
                             .label_smoothing = recipe.train.label_smoothing};
  if (classes > 0 && target.sizes.empty()) {
    context.class_counts = [&] {
      std::vector<int64_t> counts = signature.class_counts;
      if (counts.empty()) counts = data::count_classes(samples, classes);
      if (counted != nullptr) *counted = counts;
      return counts;
    };
  }
  if (signature.views > 1) context.output_sizes = {signature.views, 0};
  if (task.has_sequences()) {
    context.output_sizes = {0, signature.outputs()};
    context.blank = signature.blank;
  }
  // One prediction per target: logits of images have the class dimension first, as in PyTorch.
  // Class probabilities have that dimension.
  if (task.has_classes() && !c10::isFloatingType(target.dtype)) {
    auto& sizes = context.output_sizes;
    sizes.insert(sizes.size() >= 2 ? sizes.begin() : sizes.end(), classes);
  }
  std::shared_ptr<const train::Loss> loss;
  try {
    loss = train::build_loss(registries.losses, chosen, context);
  } catch (const UsageError& error) {
    if (signature.views == 1) throw;
    throw UsageError(fmt::format("{}; {}", error.what(), views_remedy(recipe.data, signature)));
  }
  check_loss(chosen.name(), *loss, signature, samples, task);
  if (loss->traits().predicts_classes && !task.has_classes()) {
    throw UsageError(fmt::format(
        "train.loss: {} requires class targets, but the task of these data is {}; its loss "
        "is {}",
        chosen.name(), signature.task, task.loss));
  }
  return loss;
}

}  // namespace

std::string describe_training_data(const data::Signature& signature, const train::Task& task,
                                   int64_t samples) {
  const std::string count = format_count(samples);
  std::string outputs = outputs_text(signature, task);
  if (!outputs.empty()) outputs = ", " + outputs;
  if (signature.separate_texts) {
    return fmt::format("{} training {} of up to {} {}, {} different tokens{}", count,
                       texts_of(signature), signature.context, signature.unit,
                       signature.vocabulary.size(), outputs);
  }
  if (signature.is_text()) {
    return fmt::format("{} training windows of {} tokens, {} different tokens", count,
                       signature.context, signature.vocabulary.size());
  }
  const std::string views = views_text(signature);
  if (signature.is_numbers()) {
    if (signature.columns.empty()) {
      const char* const name =
          signature.views > 1 ? data::name_of_views(signature.views) : "samples";
      return fmt::format("{} training {}{}", count, name, outputs);
    }
    const auto columns = static_cast<int64_t>(signature.columns.size());
    const bool has_others =
        std::any_of(signature.features.begin(), signature.features.end(),
                    [](const data::TableFeature& feature) { return feature.kind != "number"; });
    return fmt::format(
        "{} training {}{}{}{}", count, views, rows_text(signature),
        has_others ? counted(columns, "column", "columns") : counted(columns, "number", "numbers"),
        outputs);
  }
  return fmt::format("{} training {}images of {}x{}x{}{}", count, views, signature.channels,
                     signature.height, signature.width, outputs);
}

std::shared_ptr<const train::Loss> build_loss(const Registries& registries, const Recipe& recipe,
                                              const data::Signature& signature,
                                              const data::Samples& samples, c10::Device device,
                                              std::vector<int64_t>* counted) {
  return build_chosen(registries, recipe, recipe.loss, signature, samples, device, counted);
}

std::shared_ptr<const train::Loss> evaluation_loss(
    std::shared_ptr<const train::Loss> loss, const Registries& registries, const Recipe& recipe,
    const data::Signature& signature, const data::Samples& samples, c10::Device device) {
  std::string name = recipe.loss.name();
  if (name == "model") {
    name = registries.tasks.find(signature.task).loss;
    loss = build_chosen(registries, recipe, config::Component(registries.losses, name), signature,
                        samples, device);
  }
  if (name != "cross-entropy") return loss;
  return has_weights(samples) ? train::cross_entropy_loss() : nullptr;
}

std::string evaluation_part(const data::DataModule& data) {
  if (data.validation) return "validation";
  return data.test ? "test" : "";
}

std::string why_not_any_size(const std::string& option, const Recipe& recipe,
                             const model::Model& model) {
  if (model.takes_any_size()) return {};
  return fmt::format(
      "{} needs a model for images of any size, as 'resnet' is; model '{}' has weights for one "
      "size: omit it",
      option, recipe.model.name());
}

void require_rectangles(const Recipe& recipe, const data::Samples* samples,
                        const model::Model& model) {
  if (!recipe.data.rectangular_validation) return;
  const char* const option = "data.rectangular_validation";
  if (samples == nullptr) {
    throw UsageError(fmt::format("{}: the data have no split to evaluate on; omit it", option));
  }
  if (samples->input_sizes(0).empty()) {
    throw UsageError(fmt::format(
        "{} is for image files with a class or numbers as targets, and not for data set '{}'; "
        "omit it",
        option, recipe.data.module.name()));
  }
  if (const std::string why = why_not_any_size(option, recipe, model); !why.empty()) {
    throw UsageError(why);
  }
}

std::string set_compute_threads(const Recipe& recipe, const Hardware& hardware) {
  const auto wanted = static_cast<int>(recipe.train.threads);
  at::set_num_threads(wanted > 0 ? wanted : hardware.threads);
  if (wanted <= hardware.cores) return {};
  return fmt::format("train.threads is {}, but only {} cores are available: expect slower training",
                     wanted, hardware.cores);
}

}  // namespace gallop::app
