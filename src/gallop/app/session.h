#pragma once

#include <memory>
#include <string>

#include "gallop/app/recipe.h"
#include "gallop/app/run_inputs.h"
#include "gallop/base/hardware.h"
#include "gallop/data/training_data.h"

namespace gallop::app {

/// Reads the data of a recipe and prepares its samples.
data::TrainingData open_data(const Registries& registries, const Recipe& recipe);

/// The same for a trained model, whose normalization is kept. Throws DataError where the data do
/// not have the shape and the classes that the model was trained on.
data::TrainingData open_data_for(const Registries& registries, Recipe recipe,
                                 const RunInputs& inputs);

/// Throws DataError where data that need `found` are not what a model trained on `wanted` takes.
void check_fits(const RunInputs& found, const RunInputs& wanted);

/// Whether images that were made ready for the one model are as good for the other: means and
/// deviations differ by a hundredth of a deviation at most, as two parts of one set may.
bool normalize_alike(const RunInputs& one, const RunInputs& other);

/// Builds the recipe's model. Throws UsageError, with the place in the recipe, where it cannot take
/// such data.
std::unique_ptr<model::Model> build_model(const Registries& registries,
                                          const ResolvedRecipe& resolved, const model::Task& task,
                                          model::InitialWeights weights);

/// What a model trained on the data expects.
RunInputs inputs_of(const data::TrainingData& data, const Recipe& recipe);

/// Name of TrainingData::evaluation(): "validation", "test", or empty.
std::string evaluation_part(const data::TrainingData& data);

/// Gives LibTorch the threads of `train.threads`. Returns a warning, or nothing.
std::string set_compute_threads(const Recipe& recipe, const Hardware& hardware);

}  // namespace gallop::app
