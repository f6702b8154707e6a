// The full program, with every command.
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "gallop/app/cli.h"

int main(int argc, char** argv) {
  const int code = gallop::cli::run(argc, argv);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // These report in destructors.
  // Without static destructors: those of LibTorch remove each operator from its tables, which takes
  // a quarter of the CPU time of a short command.
  std::cout.flush();
  std::fflush(nullptr);
  std::quick_exit(code);
#endif
  return code;
}
