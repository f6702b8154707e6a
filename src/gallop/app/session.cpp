#include "gallop/app/session.h"

#include <cmath>

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "gallop/app/data_sharing.h"
#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/base/text.h"
#include "gallop/config/option_error.h"

namespace gallop::app {

data::TrainingData open_data(const Registries& registries, const Recipe& recipe) {
  const Hardware hardware = read_hardware();
  data::OpenOptions options{.seed = static_cast<uint64_t>(recipe.train.seed),
                            .cores = hardware.cores,
                            .memory_bytes = hardware.memory_bytes,
                            .cache_folder = user_cache_folder()};
  set_sharing(options);
  return data::open_data(recipe.data, registries.readers, registries.augmentations, options);
}

data::TrainingData open_data_for(const Registries& registries, Recipe recipe,
                                 const RunInputs& inputs) {
  recipe.data.mean = inputs.mean;
  recipe.data.deviation = inputs.deviation;
  // Other data may be all gray, or the first to have color.
  if (recipe.data.channels == 0) recipe.data.channels = inputs.channels;
  data::TrainingData data = open_data(registries, recipe);
  check_fits(inputs_of(data, recipe), inputs);
  return data;
}

std::unique_ptr<model::Model> build_model(const Registries& registries,
                                          const ResolvedRecipe& resolved, const model::Task& task,
                                          model::InitialWeights weights) {
  try {
    return registries.models.build(resolved.recipe.model, task, weights);
  } catch (const config::OptionError& error) {
    config::throw_with_origin(error, resolved.written);
  }
}

namespace {

std::string describe(const RunInputs& inputs) {
  if (inputs.kind == "text") {
    return fmt::format("text in windows of {} with {} different tokens", inputs.context,
                       inputs.vocabulary.size());
  }
  return fmt::format("images of {}x{}x{} in {} classes", inputs.channels, inputs.height,
                     inputs.width, inputs.classes.size());
}

}  // namespace

void check_fits(const RunInputs& found, const RunInputs& wanted) {
  if (describe(found) != describe(wanted)) {
    throw DataError(fmt::format("the model was trained on {}, but the data are {}",
                                describe(wanted), describe(found)));
  }
  if (found.classes != wanted.classes || found.vocabulary != wanted.vocabulary) {
    throw DataError(fmt::format("the data have other {} than those that the model was trained on",
                                wanted.kind == "text" ? "characters" : "classes"));
  }
}

bool normalize_alike(const RunInputs& one, const RunInputs& other) {
  constexpr double kShare = 0.01;
  if (one.mean.size() != other.mean.size()) return false;
  for (size_t i = 0; i < one.mean.size(); ++i) {
    const double most = kShare * one.deviation[i];
    if (std::abs(one.mean[i] - other.mean[i]) > most) return false;
    if (std::abs(one.deviation[i] - other.deviation[i]) > most) return false;
  }
  return true;
}

RunInputs inputs_of(const data::TrainingData& data, const Recipe& recipe) {
  RunInputs inputs;
  if (data.is_text()) {
    inputs.kind = "text";
    inputs.context = recipe.data.context;
    for (const auto& token : data.names) inputs.vocabulary.push_back(to_hex(token));
    return inputs;
  }
  inputs.channels = data.image_shape.channels;
  inputs.height = data.image_shape.height;
  inputs.width = data.image_shape.width;
  inputs.mean = data.mean;
  inputs.deviation = data.deviation;
  inputs.classes = data.names;
  return inputs;
}

std::string evaluation_part(const data::TrainingData& data) {
  if (data.validation) return "validation";
  return data.test ? "test" : "";
}

std::string set_compute_threads(const Recipe& recipe, const Hardware& hardware) {
  const auto wanted = static_cast<int>(recipe.train.threads);
  at::set_num_threads(wanted > 0 ? wanted : hardware.cores);
  if (wanted <= hardware.cores) return {};
  return fmt::format("train.threads is {}, but only {} cores are here: expect it to be slower",
                     wanted, hardware.cores);
}

}  // namespace gallop::app
