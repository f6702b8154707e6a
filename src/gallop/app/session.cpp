#include "gallop/app/session.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/base/text.h"

namespace gallop::app {

data::TrainingData open_data(const Families& families, const Recipe& recipe) {
  const Hardware hardware = read_hardware();
  return data::open_data(recipe.data, families.readers, families.augmentations,
                         {.seed = static_cast<uint64_t>(recipe.train.seed),
                          .cores = hardware.cores,
                          .memory_bytes = hardware.memory_bytes,
                          .cache_folder = user_cache_folder()});
}

data::TrainingData open_data_for(const Families& families, Recipe recipe, const RunInputs& inputs) {
  recipe.data.mean = inputs.mean;
  recipe.data.deviation = inputs.deviation;
  data::TrainingData data = open_data(families, recipe);
  const RunInputs found = inputs_of(data, recipe);
  if (found.kind != inputs.kind || found.channels != inputs.channels ||
      found.height != inputs.height || found.width != inputs.width ||
      found.context != inputs.context) {
    throw DataError(fmt::format(
        "the model was trained on {} of {}x{}x{}, the data are {} of {}x{}x{}; set data.image_size",
        inputs.kind, inputs.channels, inputs.height, inputs.width, found.kind, found.channels,
        found.height, found.width));
  }
  if (found.classes != inputs.classes || found.vocabulary != inputs.vocabulary) {
    throw DataError(fmt::format(
        "the data have other {} than those that the model was trained on",
        inputs.kind == "text" ? "characters" : "classes"));
  }
  return data;
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
  return fmt::format("train.threads is {}, but only {} cores are here: expect it to be slower", wanted,
                     hardware.cores);
}

}  // namespace gallop::app
