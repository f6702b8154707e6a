#include "gallop/tune/sampler.h"
#include "gallop/tune/samplers/random.h"

namespace gallop::tune {

SamplerRegistry built_in_samplers() {
  SamplerRegistry registry("sampler");
  registry.add("random", "points that know nothing of each other", make_random);
  return registry;
}

}  // namespace gallop::tune
