#pragma once

#include <memory>
#include <string>

#include "gallop/config/node.h"
#include "gallop/tune/pruner.h"
#include "gallop/tune/sampler.h"

namespace gallop::tune {

/// The sampler and the pruner that a study asks for, by JSON as `{"name": "random"}` with options
/// beside the name. They throw UsageError with a line for each mistake.
std::unique_ptr<Sampler> make_sampler(const StudySettings& settings);
std::unique_ptr<Pruner> make_pruner(const StudySettings& settings);

/// Records what is wrong with the sampler or the pruner (`key`) that a file asks for, at the places
/// that its map of a name and options has.
void check_chosen(const std::string& key, const config::Node& map, config::Problems& problems);

/// Whether it asks for another pruner than none. Throws UsageError where it is none that there is.
bool has_pruner(const StudySettings& settings);

}  // namespace gallop::tune
