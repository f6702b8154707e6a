#pragma once

#include "gallop/app/registries.h"

namespace gallop::cli {

/// Gallop's whole command line with the components of `registries`, for a program of its own that
/// has further models, losses or data:
///
///     int main(int argc, char** argv) {
///       gallop::Registries registries;
///       registries.losses.add("mine", "my loss", make_my_loss);
///       return gallop::cli::run(argc, argv, std::move(registries));
///     }
///
/// Returns the exit code, and prints errors. Trials, ranks and probes are processes of the same
/// program with other arguments, so main() must come here with those that it was given. What
/// --plugin and GALLOP_PLUGINS name is added to the registries.
int run(int argc, char** argv, Registries registries = {});

}  // namespace gallop::cli
