// The program that users start; see app/programs.h.
#include <exception>

#include "gallop/app/program.h"

int main(int argc, char** argv) {
  try {
    return static_cast<int>(gallop::app::run_program(argc, argv));
  } catch (const std::exception& error) {
    return static_cast<int>(gallop::app::report_error(error));
  }
}
