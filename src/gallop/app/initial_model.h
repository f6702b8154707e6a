#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gallop/app/recipe.h"
#include "gallop/model/model.h"
#include "gallop/optim/optimizer.h"
#include "gallop/parallel/collectives.h"
#include "gallop/parallel/initial_parameters.h"

// Models of processes that share memory limits: first planned without memory, then made as a whole
// or, with zero-3, in parts.
namespace gallop::app {

using MakeModel = std::function<std::unique_ptr<model::Model>(model::InitialWeights)>;

/// The model on the meta device, of which sizes and types are known, and in `created` the order in
/// which it creates its tensors.
std::unique_ptr<model::Model> model_without_memory(const MakeModel& make,
                                                   model::InitialWeights weights,
                                                   parallel::CreationOrder& created,
                                                   const std::string& precision);

/// Why a recipe whose processes have parts of the parameters needs the whole model before the first
/// step; empty if it does not.
std::string why_made_whole(const Recipe& recipe, bool is_images);

/// Whether no process ever has the whole model. `planned` is without memory.
bool divides_parameters_at_once(const Recipe& recipe, const model::Model& planned, bool is_images,
                                const parallel::CreationOrder& created);

/// The model of which this process has its parts alone. Initial values are those of one process.
std::unique_ptr<model::Model> make_in_parts(const MakeModel& make,
                                            const model::InitialWeights& weights,
                                            const parallel::CreationOrder& created,
                                            const parallel::Collectives& collectives,
                                            const Recipe& recipe, const model::Model& planned,
                                            std::vector<optim::UpdateUnit> update_units);

}  // namespace gallop::app
