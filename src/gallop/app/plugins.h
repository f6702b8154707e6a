#pragma once

#include <string>
#include <vector>

#include "gallop/app/registries.h"
#include "gallop/base/file.h"

namespace gallop::app {

/// Loads a plug-in (a shared library with the macro GALLOP_PLUGIN; app/plugin.h), which stays
/// loaded, and adds its components to the registries, unless they have them already. Throws
/// UsageError where the file is none, was built for another Gallop, or has a component of a name
/// that is taken.
void load_plugin(const fs::path& file, Registries& registries);

/// Whether the registries have its components already.
bool has_plugin(const Registries& registries, const fs::path& file);

/// `--plugin FILE` for each plug-in of the registries, for a program that is started by others.
std::vector<std::string> plugin_args(const Registries& registries);

}  // namespace gallop::app
