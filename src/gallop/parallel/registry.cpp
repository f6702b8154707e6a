#include "gallop/parallel/ddp.h"
#include "gallop/parallel/deterministic.h"
#include "gallop/parallel/strategy.h"

namespace gallop::parallel {

StrategyRegistry built_in_strategies() {
  StrategyRegistry registry("strategy");
  registry.add("ddp", "each process has the whole model and its part of each batch", make_ddp);
  registry.add("deterministic", "the same bits for 1, 2, 3, 4, 6 or 12 processes, at a cost",
               make_deterministic);
  return registry;
}

}  // namespace gallop::parallel
