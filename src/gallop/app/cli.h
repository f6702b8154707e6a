#pragma once

namespace gallop {
struct Registries;
}

namespace gallop::cli {

/// Gallop's command line with the components of `registries`, for a custom program with additional
/// models, losses or data:
///
///     #include "gallop/app/registries.h"
///
///     int main(int argc, char** argv) {
///       gallop::Registries registries;
///       registries.losses.add("mine", "my loss", make_my_loss);
///       return gallop::cli::run(argc, argv, std::move(registries));
///     }
///
/// Returns the exit code, and prints errors. Trials, ranks and probes are child processes of the
/// same program, so that main() must call this with its original arguments. Plug-ins named by
/// --plugin and GALLOP_PLUGINS are added to the registries.
int run(int argc, char** argv, Registries registries);
/// The same with the components of Gallop alone.
int run(int argc, char** argv);

}  // namespace gallop::cli
