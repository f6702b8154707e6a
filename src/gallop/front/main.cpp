// The program that users start; see app/programs.h.
#include <exception>
#include <string>
#include <vector>

#include "gallop/app/plugin_arguments.h"
#include "gallop/app/program.h"
#include "gallop/app/programs.h"
#include "gallop/tune/registries.h"

int main(int argc, char** argv) {
  namespace app = gallop::app;
  try {
    std::vector<std::string> arguments(argv + 1, argv + argc);
    // Plug-ins need the symbols of the full program.
    if (!app::take_plugin_files(arguments).empty()) app::exec_full_program();
    const gallop::tune::TuneRegistries registries;
    return static_cast<int>(app::run_program(arguments, app::CommandContext(registries)));
  } catch (const std::exception& error) {
    return static_cast<int>(app::report_error(error));
  }
}
