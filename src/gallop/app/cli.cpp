#include "gallop/app/cli.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gallop/app/plugin_arguments.h"
#include "gallop/app/plugins.h"
#include "gallop/app/program.h"
#include "gallop/app/registries.h"
#include "gallop/app/report_errors.h"
#include "gallop/base/heap.h"

namespace gallop::cli {

namespace {

ExitCode run_command(int argc, char** argv, Registries& registries) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const std::vector<std::string> plugins = app::take_plugin_files(arguments);
  app::pass_on_plugin_files(plugins);
  for (const std::string& file : plugins) {
    try {
      app::load_plugin(file, registries);
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("{} (named by --plugin or GALLOP_PLUGINS)", error.what()));
    }
  }
  return app::run_program(arguments, app::CommandContext(registries));
}

}  // namespace

int run(int argc, char** argv, Registries registries) {
  retain_freed_memory();
  return static_cast<int>(app::report_errors([&] { return run_command(argc, argv, registries); }));
}

int run(int argc, char** argv) { return run(argc, argv, Registries()); }

}  // namespace gallop::cli
