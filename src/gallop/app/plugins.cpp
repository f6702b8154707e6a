#include "gallop/app/plugins.h"

#include <dlfcn.h>

#include <algorithm>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "gallop/app/plugin.h"
#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::app {

namespace {

constexpr std::string_view kAbi = GALLOP_PLUGIN_ABI;
constexpr std::string_view kMark = GALLOP_PLUGIN_MARK;

std::string_view without_mark(std::string_view abi) { return abi.substr(kMark.size()); }

// Read from the file, as a library built for another Gallop may not load, and its code must not
// run. Empty if it is not a plug-in.
std::string abi_in(const fs::path& file) {
  const MappedFile mapped(file);
  const std::string_view bytes = mapped.bytes();
  const size_t begin = bytes.find(kMark);
  if (begin == std::string_view::npos) return {};
  return std::string(bytes.substr(begin, bytes.find('\0', begin) - begin));
}

void check_file(const fs::path& file) {
  const std::string name = printable(file.string());
  std::error_code error;
  if (!fs::is_regular_file(file, error)) {
    throw UsageError(fmt::format("plug-in {}: the file does not exist", name));
  }
  const std::string abi = abi_in(file);
  if (abi.empty()) {
    throw UsageError(
        fmt::format("plug-in {}: not a Gallop plug-in; one of its sources must use the macro "
                    "GALLOP_PLUGIN of gallop/app/plugin.h",
                    name));
  }
  if (abi != kAbi) {
    throw UsageError(
        fmt::format("plug-in {} was built for {}, but this program is {}; rebuild it with the "
                    "installed package of this Gallop",
                    name, printable(without_mark(abi)), without_mark(kAbi)));
  }
}

const PluginDescriptor& open_plugin(const fs::path& file) {
  check_file(file);
  const std::string name = printable(file.string());
  // Never unloaded, as its code may be needed until the process ends.
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    throw UsageError(
        fmt::format("plug-in {} cannot be loaded: {}; link it with gallop::plugin, and see "
                    "docs/plugins.md where symbols of Gallop are undefined",
                    name, printable(dlerror())));
  }
  const void* const symbol = dlsym(library, "gallop_plugin");
  const auto* const descriptor = static_cast<const PluginDescriptor*>(symbol);
  if (descriptor == nullptr || descriptor->magic != kPluginMagic || descriptor->abi != kAbi) {
    throw UsageError(fmt::format(
        "plug-in {}: its symbol gallop_plugin was not defined by the macro GALLOP_PLUGIN", name));
  }
  return *descriptor;
}

}  // namespace

bool has_plugin(const Registries& registries, const fs::path& file) {
  const auto& all = registries.plugins;
  return std::any_of(all.begin(), all.end(), [&](const Plugin& one) { return one.is_of(file); });
}

void load_plugin(const fs::path& file, Registries& registries) {
  if (has_plugin(registries, file)) return;
  std::error_code error;
  fs::path path = fs::weakly_canonical(file, error);
  if (error) path = fs::absolute(file);
  const PluginDescriptor& descriptor = open_plugin(path);
  registries.plugins.push_back(
      {.file = fs::absolute(file).lexically_normal(), .path = path, .name = descriptor.name});
  registries.set_origin("the plug-in " + printable(path.string()));
  descriptor.register_components(registries);
  registries.set_origin("the program");
}

std::vector<std::string> plugin_args(const Registries& registries) {
  std::vector<std::string> args;
  for (const Plugin& one : registries.plugins) {
    args.insert(args.end(), {"--plugin", one.file.string()});
  }
  return args;
}

}  // namespace gallop::app
