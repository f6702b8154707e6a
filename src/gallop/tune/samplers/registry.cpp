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
  registry.add("random", "independent random points", make_random)
      .add("quasi-random", "points of a Sobol sequence, more evenly distributed than random ones",
           make_quasi_random)
      .add("grid", "all combinations of values, each once", make_grid)
      .add("tpe", "tree-structured Parzen estimator: densities of good and bad trials", make_tpe)
      .add("gp", "Bayesian optimization with Gaussian processes", make_gp)
      .add("cma-es", "covariance matrix adaptation evolution strategy", make_cma_es)
      .add("nsga2", "genetic algorithm for several objectives (NSGA-II)", make_nsga2)
      .add("pbt", "population-based training", make_pbt)
      .add("pb2", "population-based bandits: PBT with a Gaussian process", make_pb2);
  return registry;
}

}  // namespace gallop::tune
