#include "gallop/schedule/schedule.h"
#include "gallop/schedule/schedules.h"

namespace gallop::schedule {

ScheduleRegistry built_in_schedules() {
  ScheduleRegistry registry("schedule");
  registry.add("constant", "the base learning rate throughout", make_constant)
      .add("one-cycle", "warm-up to the base learning rate, then down to the end", make_one_cycle)
      .add("cosine", "linear warm-up, then half a cosine", make_cosine);
  return registry;
}

}  // namespace gallop::schedule
