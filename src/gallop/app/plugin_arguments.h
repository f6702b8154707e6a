#pragma once

#include <string>
#include <vector>

namespace gallop::app {

/// The plug-ins in the environment variable GALLOP_PLUGINS (FILE:FILE) and in `--plugin FILE`
/// options, as absolute paths without duplicates. Removes the options from the arguments, except
/// for those behind a program that `gallop launch` starts. Throws UsageError for a missing file
/// name.
std::vector<std::string> take_plugin_files(std::vector<std::string>& arguments);

/// Sets GALLOP_PLUGINS to these files, so that child processes load them as well. Throws UsageError
/// if a path contains ':'.
void pass_on_plugin_files(const std::vector<std::string>& files);

}  // namespace gallop::app
