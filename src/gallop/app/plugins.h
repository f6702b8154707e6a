#pragma once

#include <string>
#include <vector>

#include "gallop/app/registries.h"
#include "gallop/base/file.h"

namespace gallop::app {

/// Loads a plug-in (a shared library with the macro GALLOP_PLUGIN; app/plugin.h) permanently and
/// adds its components to the registries, unless they have them already. Throws UsageError if the
/// file is not a plug-in, was built for another Gallop, or has a component whose name is taken.
void load_plugin(const fs::path& file, Registries& registries);

/// Whether the registries already have its components.
bool has_plugin(const Registries& registries, const fs::path& file);

/// The `--plugin FILE` options for the plug-ins of the registries, for child processes.
std::vector<std::string> plugin_args(const Registries& registries);

}  // namespace gallop::app
