#pragma once

#include "gallop/tune/pruner.h"
#include "gallop/tune/sampler.h"

namespace gallop::tune {

/// The samplers and pruners that a study can select by name; initially the built-in ones.
struct TuneRegistries {
  SamplerRegistry samplers = built_in_samplers();
  PrunerRegistry pruners = built_in_pruners();
};

}  // namespace gallop::tune
