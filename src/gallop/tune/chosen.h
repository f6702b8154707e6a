#pragma once

#include <memory>
#include <string>

#include "gallop/config/node.h"
#include "gallop/tune/registries.h"

namespace gallop::tune {

/// Creates the sampler and the pruner of a study from JSON: `{"name": "random"}`, options beside
/// the name. Both throw UsageError with one line per mistake.
std::unique_ptr<Sampler> make_sampler(const TuneRegistries& registries,
                                      const StudySettings& settings);
std::unique_ptr<Pruner> make_pruner(const TuneRegistries& registries,
                                    const StudySettings& settings);

/// Records mistakes in the sampler or pruner section (`key`) of a sweep, at their positions in the
/// map with its name and options.
void check_chosen(const TuneRegistries& registries, const std::string& key, const config::Node& map,
                  config::Problems& problems);

/// Whether the study has a pruner other than `none`.
bool has_pruner(const StudySettings& settings);

}  // namespace gallop::tune
