#include "gallop/tune/sampler.h"
#include "gallop/tune/samplers/cma_es.h"
#include "gallop/tune/samplers/gp.h"
#include "gallop/tune/samplers/grid.h"
#include "gallop/tune/samplers/nsga2.h"
#include "gallop/tune/samplers/pb2.h"
#include "gallop/tune/samplers/pbt.h"
#include "gallop/tune/samplers/quasi_random.h"
#include "gallop/tune/samplers/random.h"
#include "gallop/tune/samplers/tpe.h"

namespace gallop::tune {

SamplerRegistry built_in_samplers() {
  SamplerRegistry registry("sampler");
  registry.add("random", "points that know nothing of each other", make_random)
      .add("quasi-random", "points of a Sobol sequence, more even than random ones",
           make_quasi_random)
      .add("grid", "all combinations of values, each once", make_grid)
      .add("tpe", "points like the best and unlike the rest, by densities of both", make_tpe)
      .add("gp", "the most improvement that a Gaussian process expects", make_gp)
      .add("cma-es", "a normal distribution that moves to where losses are small", make_cma_es)
      .add("nsga2", "a population that mates and mutates, for several objectives", make_nsga2)
      .add("pbt", "a population whose worst members go on from the best ones", make_pbt)
      .add("pb2", "the same, with points that a Gaussian process chooses", make_pb2);
  return registry;
}

}  // namespace gallop::tune
