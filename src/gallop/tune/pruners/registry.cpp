#include "gallop/tune/pruner.h"
#include "gallop/tune/pruners/asha.h"
#include "gallop/tune/pruners/hyperband.h"
#include "gallop/tune/pruners/none.h"
#include "gallop/tune/pruners/patience.h"
#include "gallop/tune/pruners/percentile.h"
#include "gallop/tune/pruners/successive_halving.h"
#include "gallop/tune/pruners/threshold.h"
#include "gallop/tune/pruners/wilcoxon.h"

namespace gallop::tune {

PrunerRegistry built_in_pruners() {
  PrunerRegistry registry("pruner");
  registry.add("none", "no pruning", make_none)
      .add("median", "prunes trials worse than the median at the same step", make_median)
      .add("percentile", "prunes trials worse than a percentile at the same step", make_percentile)
      .add("patience", "prunes trials whose last reports are all worse than the best before",
           make_patience)
      .add("threshold", "prunes trials whose metric is NaN or out of bounds", make_threshold)
      .add("successive-halving", "asynchronous successive halving", make_successive_halving)
      .add("asha", "successive halving that can also resume trials", make_asha)
      .add("hyperband", "brackets of successive halving with different first rungs", make_hyperband)
      .add("wilcoxon", "prunes trials worse than the best by a signed-rank test", make_wilcoxon);
  return registry;
}

}  // namespace gallop::tune
