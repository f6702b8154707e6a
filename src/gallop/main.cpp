// The full program, with every command.
#include "gallop/app/cli.h"

int main(int argc, char** argv) { return gallop::cli::run(argc, argv); }
