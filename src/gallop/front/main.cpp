// The program that users start; see app/programs.h.
#include <exception>

#include "gallop/app/program.h"
#include "gallop/tune/registries.h"

int main(int argc, char** argv) {
  try {
    const gallop::tune::TuneRegistries registries;
    return static_cast<int>(
        gallop::app::run_program(argc, argv, gallop::app::CommandContext(registries)));
  } catch (const std::exception& error) {
    return static_cast<int>(gallop::app::report_error(error));
  }
}
