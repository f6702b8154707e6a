#include "gallop/tune/pruner.h"
#include "gallop/tune/pruners/none.h"

namespace gallop::tune {

PrunerRegistry built_in_pruners() {
  PrunerRegistry registry("pruner");
  registry.add("none", "every trial runs to its end", make_none);
  return registry;
}

}  // namespace gallop::tune
