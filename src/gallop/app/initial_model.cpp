#include "gallop/app/initial_model.h"

#include <utility>

#include <fmt/format.h>

#include "gallop/parallel/parameter_buckets.h"
#include "gallop/parallel/zero.h"
#include "gallop/precision/precision.h"
#include "gallop/tensor/tensor_memory.h"
#include "gallop/train/step/format.h"

namespace gallop::app {

using precision::Precision;

std::unique_ptr<model::Model> model_without_memory(const MakeModel& make,
                                                   model::InitialWeights weights,
                                                   parallel::CreationOrder& created,
                                                   const std::string& precision) {
  const TensorMemoryScope scope(created);
  weights.sizes_only = true;
  auto planned = make(weights);
  if (precision == name_of(Precision::kBf16Weights)) {
    precision::keep_in_bf16(planned->parameters());
  }
  return planned;
}

std::string why_made_whole(const Recipe& recipe, bool is_images) {
  if (recipe.strategy.name() != "zero-3") {
    return fmt::format("parallel.name={} makes the whole model in each process first",
                       recipe.strategy.name());
  }
  const train::TrainConfig& config = recipe.train;
  const auto formats =
      train::candidate_formats(config.precision, config.channels_last, is_images, c10::kCPU);
  if (formats.size() > 1) {
    return fmt::format("number formats are measured with the whole model: set train.precision{}",
                       is_images ? " and train.channels_last" : "");
  }
  if (formats.front().channels_last || formats.front().precision == Precision::kBf16Weights) {
    return fmt::format("the whole model is converted to {}", formats.front().describe());
  }
  const std::string& most = config.activation_checkpointing.memory;
  if (most.empty() || most == "none") return {};
  return "train.activation_checkpointing.memory measures the whole model: set "
         "train.activation_checkpointing.every instead";
}

bool divides_parameters_at_once(const Recipe& recipe, const model::Model& planned, bool is_images,
                                const parallel::CreationOrder& created) {
  return recipe.strategy.name() == "zero-3" && why_made_whole(recipe, is_images).empty() &&
         planned.images_to_initialize() == 0 && !created.parameters(planned.parameters()).empty();
}

std::unique_ptr<model::Model> make_in_parts(const MakeModel& make,
                                            const model::InitialWeights& weights,
                                            const parallel::CreationOrder& created,
                                            const parallel::Collectives& collectives,
                                            const Recipe& recipe, const model::Model& planned,
                                            std::vector<optim::UpdateUnit> update_units) {
  const NamedTensors parameters = planned.parameters();
  const auto& options =
      dynamic_cast<const config::OptionsOf<parallel::Zero3Config>&>(recipe.strategy.options());
  const auto places = parallel::make_parameter_buckets(options.config, collectives,
                                                       {.parameters = parameters,
                                                        .update_units = std::move(update_units),
                                                        .blocks = planned.block_parameters()});
  parallel::InitialParameters in_parts(places, created.parameters(parameters));
  const TensorMemoryScope scope(in_parts);
  auto model = make(weights);
  places->release_all();
  return model;
}

}  // namespace gallop::app
