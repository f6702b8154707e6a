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
      .add("adagrad", "Adagrad: learning rates adapted by the sum of squared gradients",
           make_adagrad)
      .add("adadelta",
           "Adadelta: learning rates adapted by averages of squared gradients and updates",
           make_adadelta)
      .add("rmsprop", "gradients divided by their root mean square", make_rmsprop)
      .add("adam", "adaptive moment estimation", make_adam)
      .add("adamw", "Adam with decoupled weight decay", make_adamw)
      .add("nadam", "Adam with Nesterov's momentum", make_nadam)
      .add("radam", "Adam with a rectified adaptive learning rate", make_radam)
      .add("adamax", "Adam with the infinity norm", make_adamax)
      .add("lion", "sign of the momentum (evolved sign momentum)", make_lion)
      .add("lars", "SGD with layer-wise adaptive rates, for large batches", make_lars)
      .add("lamb", "AdamW with layer-wise adaptive rates, for large batches", make_lamb)
      .add("adafactor", "Adam with factored second moments, to save memory", make_adafactor)
      .add("muon", "orthogonalized updates of matrices, and AdamW or SGD for the rest", make_muon)
      .add("schedule-free-sgd", "SGD that averages weights instead of lowering its rate",
           make_schedule_free_sgd)
      .add("schedule-free-adamw", "AdamW that averages weights instead of lowering its rate",
           make_schedule_free_adamw);
  return registry;
}

}  // namespace gallop::optim
