#include "gallop/compile/kept_generators.h"

#include <algorithm>

#include <ATen/Context.h>

namespace gallop::compile {

void KeptGenerators::keep(const at::Generator& generator) {
  const bool known = std::any_of(kept_.begin(), kept_.end(),
                                 [&](const auto& kept) { return kept.first == generator; });
  if (!known) kept_.emplace_back(generator, generator.get_state());
}

void KeptGenerators::keep_default(c10::Device device) {
  if (device.is_cpu() || (device.is_cuda() && at::hasCUDA()))
    keep(at::globalContext().defaultGenerator(device));
}

void KeptGenerators::restore() {
  for (auto& [generator, state] : kept_) generator.set_state(state);
}

}  // namespace gallop::compile
