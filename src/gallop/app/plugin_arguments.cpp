#include "gallop/app/plugin_arguments.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/app/launch_words.h"
#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/base/text.h"

namespace gallop::app {

namespace {

constexpr const char* kVariable = "GALLOP_PLUGINS";
constexpr std::string_view kOption = "--plugin";

void add(const std::string& file, std::vector<std::string>& files) {
  std::string path = fs::absolute(file).lexically_normal().string();
  if (std::find(files.begin(), files.end(), path) == files.end()) files.push_back(std::move(path));
}

std::vector<std::string> files_of_environment() {
  std::vector<std::string> files;
  const char* const value = std::getenv(kVariable);
  const std::string text = value != nullptr ? value : "";
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(':', at), text.size());
    if (end > at) add(text.substr(at, end - at), files);
    at = end + 1;
  }
  return files;
}

// Behind a program that `gallop launch` starts, all arguments are the program's.
size_t count_own(const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front() != "launch") return arguments.size();
  for (size_t i = 1; i < arguments.size(); ++i) {
    if (!arguments[i].starts_with('-')) return is_program(arguments[i]) ? i : arguments.size();
    if (takes_next(arguments[i])) ++i;
  }
  return arguments.size();
}

}  // namespace

std::vector<std::string> take_plugin_files(std::vector<std::string>& arguments) {
  std::vector<std::string> files = files_of_environment();
  std::vector<std::string> rest;
  const size_t own = count_own(arguments);
  for (size_t i = 0; i < own; ++i) {
    const std::string& argument = arguments[i];
    const bool has_value = argument.starts_with("--plugin=");
    if (!has_value && argument != kOption) {
      rest.push_back(argument);
      continue;
    }
    std::string file;
    if (has_value) {
      file = argument.substr(kOption.size() + 1);
    } else if (i + 1 < own) {
      file = arguments[++i];
    }
    if (file.empty()) throw UsageError("--plugin needs a file, as in --plugin ./libmine.so");
    add(file, files);
  }
  rest.insert(rest.end(), arguments.begin() + static_cast<std::ptrdiff_t>(own), arguments.end());
  arguments = std::move(rest);
  return files;
}

void pass_on_plugin_files(const std::vector<std::string>& files) {
  if (files.empty()) return;
  for (const std::string& file : files) {
    if (file.find(':') == std::string::npos) continue;
    throw UsageError(fmt::format(
        "--plugin {}: other processes learn of plug-ins by {}, in which ':' separates files; "
        "rename the file or its folder",
        printable(file), kVariable));
  }
  setenv(kVariable, fmt::format("{}", fmt::join(files, ":")).c_str(), /*replace=*/1);
}

}  // namespace gallop::app
