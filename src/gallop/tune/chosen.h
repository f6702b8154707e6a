#pragma once

#include <memory>
#include <string>

#include "gallop/config/node.h"
#include "gallop/tune/registries.h"

namespace gallop::tune {

/// The sampler and the pruner that a study asks for, by JSON as `{"name": "random"}` with options
/// beside the name. They throw UsageError with a line for each mistake.
std::unique_ptr<Sampler> make_sampler(const TuneRegistries& registries,
                                      const StudySettings& settings);
std::unique_ptr<Pruner> make_pruner(const TuneRegistries& registries,
                                    const StudySettings& settings);

/// Records what is wrong with the sampler or the pruner (`key`) that a file asks for, at the places
/// that its map of a name and options has.
void check_chosen(const TuneRegistries& registries, const std::string& key, const config::Node& map,
                  config::Problems& problems);

/// Whether it asks for another pruner than none.
bool has_pruner(const StudySettings& settings);

}  // namespace gallop::tune
