#pragma once

#include <memory>
#include <string>

#include "gallop/app/recipe.h"
#include "gallop/app/run_inputs.h"
#include "gallop/base/hardware.h"
#include "gallop/data/data_module.h"

namespace gallop::app {

/// Opens the data of a recipe and prepares its samples.
std::unique_ptr<data::DataModule> open_data(const Registries& registries, const Recipe& recipe);

/// The same without samples, for inspection.
std::unique_ptr<data::DataModule> read_data(const Registries& registries, const Recipe& recipe);

/// The same for a trained model, with the normalization of its training. Throws DataError if the
/// data do not have the shape and classes of the training data.
std::unique_ptr<data::DataModule> open_data_for(const Registries& registries, Recipe recipe,
                                                const data::Signature& trained);

/// Throws DataError if data with the signature `found` do not fit a model trained on `wanted`.
void check_fits(const data::Signature& found, const data::Signature& wanted);

/// Whether images normalized for one model are suitable for the other: means and deviations differ
/// by at most 1% of a deviation, as between splits of one data set.
bool normalize_alike(const data::Signature& one, const data::Signature& other);

/// Builds the recipe's model. Throws UsageError, with the position in the recipe, if it does not
/// support the data.
std::unique_ptr<model::Model> build_model(const Registries& registries,
                                          const ResolvedRecipe& resolved, const model::Task& task,
                                          model::InitialWeights weights);

/// Whether samples have the field "weight", which multiplies their losses.
bool has_weights(const data::Samples& samples);

/// "windows", "pairs", "images": the samples of a batch.
const char* samples_of(const data::Signature& signature);
/// "16 windows of 128 tokens", "128 images"
std::string samples_text(const data::Signature& signature, int64_t samples);

/// "50,000 training images of 3x32x32, 10 classes"
std::string describe_training_data(const data::Signature& signature, const train::Task& task,
                                   int64_t samples);

/// Builds the recipe's loss for such samples. If it depends on the training samples of each class,
/// they are those of the signature, or else are counted; `counted` receives them.
std::shared_ptr<const train::Loss> build_loss(const Registries& registries, const Recipe& recipe,
                                              const data::Signature& signature,
                                              const data::Samples& samples, c10::Device device,
                                              std::vector<int64_t>* counted = nullptr);

/// The loss of evaluations: `loss` of build_loss(), or that of the task if the model computes its
/// loss. Cross-entropy is computed without class weights and label smoothing; null if samples have
/// no weights, either.
std::shared_ptr<const train::Loss> evaluation_loss(
    std::shared_ptr<const train::Loss> loss, const Registries& registries, const Recipe& recipe,
    const data::Signature& signature, const data::Samples& samples, c10::Device device);

/// Name of DataModule::evaluation(): "validation", "test", or empty.
std::string evaluation_part(const data::DataModule& data);

/// Why a model cannot take images of other sizes, which an option requires; empty if it can.
std::string why_not_any_size(const std::string& option, const Recipe& recipe,
                             const model::Model& model);

/// Throws UsageError if the recipe has `data.rectangular_validation` and the samples to evaluate on
/// (null if there are none) or the model are not suitable.
void require_rectangles(const Recipe& recipe, const data::Samples* samples,
                        const model::Model& model);

/// Sets LibTorch's number of threads to `train.threads`. Returns a warning, or an empty text.
std::string set_compute_threads(const Recipe& recipe, const Hardware& hardware);

}  // namespace gallop::app
