#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gallop/config/resolve.h"
#include "gallop/optim/wrapper.h"
#include "unit/config/component_of.h"

namespace gallop::optim {

/// An optimizer from a text such as "adamw state_bits=8".
inline std::unique_ptr<Optimizer> built(const OptimizerRegistry& registry, const std::string& text,
                                        const NamedTensors& parameters) {
  return registry.build(config::component_of(registry, text), parameters);
}

/// An optimizer from such a text, in the wrappers of a YAML list.
inline std::unique_ptr<Optimizer> make_wrapped(const std::string& optimizer,
                                               const std::string& wrappers,
                                               const NamedTensors& parameters,
                                               const NamedTensors& buffers,
                                               const schedule::RunLength& length) {
  const OptimizerRegistry optimizers = built_in_optimizers();
  const WrapperRegistry registry = built_in_wrappers();
  config::ComponentList list(registry);
  config::Problems problems;
  config::read_fields(
      config::parse_yaml("{wrap: " + wrappers + "}", "recipe"),
      [&](config::Visitor& visitor) { visitor.field({.name = "wrap", .help = ""}, list); },
      problems);
  problems.throw_if_any();
  return wrap(registry, list,
              {.optimizer = built(optimizers, optimizer, parameters),
               .parameters = parameters,
               .buffers = buffers,
               .length = length});
}

/// 10 epochs of 10 steps.
inline const schedule::RunLength kHundredSteps{
    .samples = 100, .samples_per_epoch = 10, .batch = 1, .batches_per_epoch = 10};

/// Every wrapper, alone and in valid combinations, by name; the first entry has none.
inline const std::vector<std::pair<std::string, std::string>>& every_wrapping() {
  static const std::vector<std::pair<std::string, std::string>> kAll = {
      {"", "[]"},
      {"Lookahead", "[{lookahead: {k: 2}}]"},
      {"LookaheadPower", "[{lookahead: {k: 2, power: 3}}]"},
      {"Ema", "[{ema: {decay: 0.9}}]"},
      {"Swa", "[{swa: {start: 2 steps, every: 1 step}}]"},
      {"LookaheadEma", "[{lookahead: {k: 2}}, {ema: {every: 2}}]"}};
  return kAll;
}

/// Whether the optimizer supports the wrappers.
inline bool can_wrap(const std::string& optimizer, const std::string& wrappers) {
  return wrappers == "[]" || optimizer.rfind("schedule-free", 0) != 0;
}

}  // namespace gallop::optim
