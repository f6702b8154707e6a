#include "gallop/parallel/ddp.h"
#include "gallop/parallel/strategy.h"

namespace gallop::parallel {

StrategyRegistry built_in_strategies() {
  StrategyRegistry registry("strategy");
  registry.add("ddp", "each process has the whole model and its part of each batch", make_ddp);
  return registry;
}

}  // namespace gallop::parallel
