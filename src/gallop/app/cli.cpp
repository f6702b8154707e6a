#include "gallop/app/cli.h"

#include <exception>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "gallop/app/plugin_arguments.h"
#include "gallop/app/plugins.h"
#include "gallop/app/print.h"
#include "gallop/app/program.h"
#include "gallop/base/heap.h"
#include "gallop/launch/reported_error.h"
#include "gallop/parallel/collectives.h"
#include "gallop/train/out_of_memory.h"

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
  try {
    return static_cast<int>(run_command(argc, argv, registries));
  } catch (const parallel::Rank0Error& error) {
    launch::record_error(error.what());  // Rank 0 prints it.
    return static_cast<int>(error.code());
  } catch (const Error& error) {
    return static_cast<int>(app::report_error(error));
  } catch (const std::exception& error) {
    if (const auto full = train::out_of_memory(std::current_exception())) {
      app::print_error(
          "gallop: out of memory; try a smaller data.batch_size or data.eval_batch. {}\n", *full);
      return static_cast<int>(ExitCode::kDevice);
    }
    return static_cast<int>(app::report_error(error));
  }
}

}  // namespace gallop::cli
