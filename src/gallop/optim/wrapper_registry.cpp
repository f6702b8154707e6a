#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/optim/average.h"
#include "gallop/optim/lookahead.h"
#include "gallop/optim/wrapper.h"

namespace gallop::optim {

WrapperRegistry built_in_wrappers() {
  WrapperRegistry registry("wrapper");
  registry.add("lookahead", "slow weights that follow the fast ones every k steps", make_lookahead)
      .add("ema", "evaluates and saves an exponential moving average of the weights", make_ema)
      .add("swa", "evaluates and saves the mean of the weights over the last part of the run",
           make_swa);
  return registry;
}

std::unique_ptr<Optimizer> wrap(const WrapperRegistry& registry, const config::ComponentList& list,
                                Wrapped wrapped) {
  for (size_t i = 0; i < list.items.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (list.items[j].name() != list.items[i].name()) continue;
      throw UsageError(fmt::format("optimizer.wrappers: duplicate '{}'", list.items[i].name()));
    }
  }
  for (const config::Component& component : list.items) {
    wrapped.optimizer = registry.build(component, Wrapped{.optimizer = std::move(wrapped.optimizer),
                                                          .parameters = wrapped.parameters,
                                                          .buffers = wrapped.buffers,
                                                          .length = wrapped.length});
  }
  return std::move(wrapped.optimizer);
}

int64_t first_step(const char* wrapper, const std::string& start, int64_t every,
                   const schedule::RunLength& length) {
  const int64_t steps = length.steps_of("1");
  int64_t first = length.steps_of(start);
  if (first >= steps) {
    throw UsageError(
        fmt::format("optimizer.wrappers: {} starts at '{}', which is step {} of a run of {}",
                    wrapper, start, first, steps));
  }
  // Nothing exists at step 0.
  if (first == 0) first = every;
  if (first > steps) {
    throw UsageError(fmt::format("optimizer.wrappers: {} acts every {} steps, but the run has {}",
                                 wrapper, every, steps));
  }
  return first;
}

}  // namespace gallop::optim
