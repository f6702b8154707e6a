#include "gallop/app/registries.h"

#include "gallop/app/command.h"

namespace gallop::app {

CommandContext::CommandContext(const Registries& registries)
    : tune_(&registries.tune), registries_(&registries) {}

}  // namespace gallop::app
