#include "gallop/schedule/combined.h"
#include "gallop/schedule/cycles.h"
#include "gallop/schedule/decays.h"
#include "gallop/schedule/plateau.h"
#include "gallop/schedule/schedule.h"

namespace gallop::schedule {

ScheduleRegistry built_in_schedules() {
  ScheduleRegistry registry("schedule");
  registry.add("constant", "the base learning rate throughout", make_constant)
      .add("warmup", "a rise to the base learning rate, which then stays", make_rise)
      .add("step", "decays by gamma at regular intervals", make_step)
      .add("multi-step", "decays by gamma at milestones", make_multi_step)
      .add("exponential", "decays by gamma along an exponential", make_exponential)
      .add("polynomial", "down to the end along a power", make_polynomial)
      .add("linear", "down to the end along a line", make_linear)
      .add("cosine", "down to the end along half a cosine", make_cosine)
      .add("cosine-restarts", "half cosines one after the other", make_cosine_restarts)
      .add("cyclic", "up and down in triangles", make_cyclic)
      .add("one-cycle", "up to the base learning rate, then down to the end", make_one_cycle)
      .add("inverse-sqrt", "warm-up, then the inverse square root", make_inverse_sqrt)
      .add("wsd", "warm-up, stable, then a decay in the end", make_wsd)
      .add("reduce-on-plateau", "decays when evaluations stop getting better", make_plateau)
      .add("chained", "the product of other schedules", make_chained)
      .add("sequence", "other schedules one after the other", make_sequence);
  return registry;
}

}  // namespace gallop::schedule
