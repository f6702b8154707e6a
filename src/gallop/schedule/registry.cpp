#include "gallop/schedule/combined.h"
#include "gallop/schedule/cycles.h"
#include "gallop/schedule/decays.h"
#include "gallop/schedule/plateau.h"
#include "gallop/schedule/schedule.h"

namespace gallop::schedule {

ScheduleRegistry built_in_schedules() {
  ScheduleRegistry registry("schedule");
  registry.add("constant", "the base learning rate throughout", make_constant)
      .add("warmup", "warm-up, then constant", make_rise)
      .add("step", "decays by gamma at regular intervals", make_step)
      .add("multi-step", "decays by gamma at milestones", make_multi_step)
      .add("exponential", "exponential decay by gamma", make_exponential)
      .add("polynomial", "polynomial decay", make_polynomial)
      .add("linear", "linear decay", make_linear)
      .add("cosine", "cosine decay", make_cosine)
      .add("cosine-restarts", "cosine annealing with warm restarts", make_cosine_restarts)
      .add("cyclic", "triangular cycles", make_cyclic)
      .add("one-cycle", "one-cycle policy: up to the base learning rate, then down", make_one_cycle)
      .add("inverse-sqrt", "warm-up, then the inverse square root", make_inverse_sqrt)
      .add("wsd", "warm-up, stable, decay", make_wsd)
      .add("reduce-on-plateau", "decays when a metric stops improving", make_plateau)
      .add("chained", "the product of other schedules", make_chained)
      .add("sequence", "other schedules in sequence", make_sequence);
  return registry;
}

}  // namespace gallop::schedule
