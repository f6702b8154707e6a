#include "gallop/optim/adafactor.h"
#include "gallop/optim/adagrad.h"
#include "gallop/optim/adam.h"
#include "gallop/optim/large_batch.h"
#include "gallop/optim/lion.h"
#include "gallop/optim/muon.h"
#include "gallop/optim/optimizer.h"
#include "gallop/optim/schedule_free.h"
#include "gallop/optim/sgd.h"

namespace gallop::optim {

OptimizerRegistry built_in_optimizers() {
  OptimizerRegistry registry("optimizer");
  registry.add("sgd", "stochastic gradient descent with momentum", make_sgd)
      .add("sgdw", "SGD with decoupled weight decay", make_sgdw)
      .add("adagrad", "rates that fall with the sum of squared gradients", make_adagrad)
      .add("adadelta", "rates from the sizes of gradients and updates", make_adadelta)
      .add("rmsprop", "gradients over the root of their mean square", make_rmsprop)
      .add("adam", "mean gradients over the root of their mean square", make_adam)
      .add("adamw", "Adam with decoupled weight decay", make_adamw)
      .add("nadam", "Adam with Nesterov's momentum", make_nadam)
      .add("radam", "Adam that warms up by itself", make_radam)
      .add("adamax", "Adam by the largest gradient", make_adamax)
      .add("lion", "steps of one size, by the sign of the mean gradient", make_lion)
      .add("lars", "momentum that follows each parameter's norm, for large batches", make_lars)
      .add("lamb", "AdamW that follows each parameter's norm, for large batches", make_lamb)
      .add("adafactor", "mean squares of rows and columns alone, for little memory", make_adafactor)
      .add("muon", "orthogonal updates of matrices, and AdamW or SGD for the rest", make_muon)
      .add("schedule-free-sgd", "SGD that averages weights instead of lowering its rate",
           make_schedule_free_sgd)
      .add("schedule-free-adamw", "AdamW that averages weights instead of lowering its rate",
           make_schedule_free_adamw);
  return registry;
}

}  // namespace gallop::optim
