#pragma once

#include <memory>
#include <string>

#include "gallop/app/recipe.h"
#include "gallop/app/run_inputs.h"
#include "gallop/base/hardware.h"
#include "gallop/data/data_module.h"

namespace gallop::app {

/// Reads the data of a recipe and prepares its samples.
std::unique_ptr<data::DataModule> open_data(const Registries& registries, const Recipe& recipe);

/// The same without samples, to inspect it.
std::unique_ptr<data::DataModule> read_data(const Registries& registries, const Recipe& recipe);

/// The same for a trained model, whose normalization is kept. Throws DataError where the data do
/// not have the shape and the classes that the model was trained on.
std::unique_ptr<data::DataModule> open_data_for(const Registries& registries, Recipe recipe,
                                                const data::Signature& trained);

/// Throws DataError where data that need `found` are not what a model trained on `wanted` takes.
void check_fits(const data::Signature& found, const data::Signature& wanted);

/// Whether images that were made ready for the one model are as good for the other: means and
/// deviations differ by a hundredth of a deviation at most, as two parts of one set may.
bool normalize_alike(const data::Signature& one, const data::Signature& other);

/// Builds the recipe's model. Throws UsageError, with the place in the recipe, where it cannot take
/// such data.
std::unique_ptr<model::Model> build_model(const Registries& registries,
                                          const ResolvedRecipe& resolved, const model::Task& task,
                                          model::InitialWeights weights);

/// What is counted: "images", "tokens" or "rows".
const char* item_of(const data::Signature& signature);

/// "50,000 training images of 3x32x32 in 10 classes"
std::string describe_training_data(const data::Signature& signature, int64_t samples);

/// Builds the recipe's loss for such samples.
std::shared_ptr<const train::Loss> build_loss(const Registries& registries, const Recipe& recipe,
                                              const data::Signature& signature,
                                              const data::Samples& samples, c10::Device device);

/// Name of DataModule::evaluation(): "validation", "test", or empty.
std::string evaluation_part(const data::DataModule& data);

/// Gives LibTorch the threads of `train.threads`. Returns a warning, or nothing.
std::string set_compute_threads(const Recipe& recipe, const Hardware& hardware);

}  // namespace gallop::app
