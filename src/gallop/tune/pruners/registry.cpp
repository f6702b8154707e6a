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
  registry.add("none", "every trial runs to its end", make_none)
      .add("median", "prunes what is worse than half of the trials at the same step", make_median)
      .add("percentile", "the same with another share than half", make_percentile)
      .add("patience", "prunes what has not become better for long", make_patience)
      .add("threshold", "prunes what is NaN or beyond a bound", make_threshold)
      .add("successive-halving", "lets one of several go on at steps that rise by a factor",
           make_successive_halving)
      .add("asha", "successive halving that can also take trials up again", make_asha)
      .add("hyperband", "successive halving from several first steps on", make_hyperband)
      .add("wilcoxon", "prunes what a signed-rank test finds worse than the best", make_wilcoxon);
  return registry;
}

}  // namespace gallop::tune
