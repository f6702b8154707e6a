#include "gallop/tune/sampler.h"
#include "gallop/tune/samplers/cma_es.h"
#include "gallop/tune/samplers/gp.h"
#include "gallop/tune/samplers/nsga2.h"
#include "gallop/tune/samplers/random.h"

namespace gallop::tune {

SamplerRegistry built_in_samplers() {
  SamplerRegistry registry("sampler");
  registry.add("random", "points that know nothing of each other", make_random);
  registry.add("cma-es", "a normal distribution that moves to where losses are small", make_cma_es);
  registry.add("nsga2", "a population that mates and mutates, for several objectives", make_nsga2);
  registry.add("gp", "the most improvement that a Gaussian process expects", make_gp);
  return registry;
}

}  // namespace gallop::tune
