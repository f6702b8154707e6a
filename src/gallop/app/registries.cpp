#include "gallop/app/registries.h"

#include <system_error>

#include "gallop/app/command.h"
#include "gallop/parallel/strategy.h"

namespace gallop {

bool Plugin::is_of(const std::filesystem::path& other) const {
  std::error_code error;
  return other == file || std::filesystem::weakly_canonical(other, error) == path;
}

Registries::Registries() : strategies(parallel::built_in_strategies()) {
  set_origin("the program");
}

void Registries::set_origin(const std::string& origin) {
  const auto set = [&](auto&... registries) { (registries.set_origin(origin), ...); };
  set(data_modules, augmentations, batch_transforms, models, models.layers, optimizers, wrappers,
      losses, schedules, strategies, metrics, tune.samplers, tune.pruners);
}

namespace app {

CommandContext::CommandContext(const Registries& registries)
    : tune_(&registries.tune), registries_(&registries) {}

}  // namespace app

}  // namespace gallop
