#pragma once

#include <string>
#include <vector>

namespace gallop::app {

/// The plug-ins that the environment variable GALLOP_PLUGINS (FILE:FILE) and the option
/// `--plugin FILE` name, by absolute paths, each once. Takes the option out of the arguments, where
/// it may stand anywhere. Throws UsageError where it names no file.
std::vector<std::string> take_plugin_files(std::vector<std::string>& arguments);

/// Sets GALLOP_PLUGINS to these files, so that the processes that this one starts load them as
/// well. Throws UsageError where a path has a ':'.
void pass_on_plugin_files(const std::vector<std::string>& files);

}  // namespace gallop::app
