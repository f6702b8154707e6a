#include "gallop/optim/adamw.h"
#include "gallop/optim/optimizer.h"
#include "gallop/optim/sgd.h"

namespace gallop::optim {

OptimizerRegistry built_in_optimizers() {
  OptimizerRegistry registry("optimizer");
  registry.add("sgd", "stochastic gradient descent with momentum", make_sgd)
      .add("adamw", "Adam with decoupled weight decay", make_adamw);
  return registry;
}

}  // namespace gallop::optim
