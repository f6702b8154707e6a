#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gallop/base/error.h"
#include "gallop/config/node.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace gallop::app {

/// One subcommand. Its file under app/ is named after it.
struct Command {
  const char* name;
  const char* summary;  ///< One line, for `gallop --help`.
  /// Runs with the arguments after the command's name.
  ExitCode (*run)(const std::vector<std::string>& arguments);
};

/// The commands in the order of `gallop --help`.
const std::vector<Command>& commands();

/// `optimizer.lr=0.1`, as given on the command line.
struct Override {
  std::string path;  ///< With the current names of options.
  std::string value;
  std::string old_path{};  ///< As written, where it has a deprecated name; else empty.

  static Override parse(const std::string& path, const std::string& value);
};

/// Takes overrides in either spelling, `optimizer.lr=0.1` and `--optimizer.lr 0.1` (or
/// `--optimizer.lr=0.1`), out of the arguments: a name with a dot in it is one. Throws UsageError
/// where a value is missing.
std::vector<Override> take_overrides(std::vector<std::string>& arguments);

/// Parses the rest with CLI11. False where help was asked for and has been printed. Throws
/// UsageError for wrong use.
bool parse_arguments(CLI::App& parser, const std::vector<std::string>& arguments);

ExitCode run_train(const std::vector<std::string>& arguments);
ExitCode run_evaluate(const std::vector<std::string>& arguments);
ExitCode run_predict(const std::vector<std::string>& arguments);
ExitCode run_recipes(const std::vector<std::string>& arguments);
ExitCode run_find_lr(const std::vector<std::string>& arguments);
ExitCode run_find_batch(const std::vector<std::string>& arguments);
ExitCode run_graph(const std::vector<std::string>& arguments);
ExitCode run_launch(const std::vector<std::string>& arguments);
ExitCode run_convert(const std::vector<std::string>& arguments);
ExitCode run_tune(const std::vector<std::string>& arguments);
ExitCode run_runs(const std::vector<std::string>& arguments);
ExitCode run_ui(const std::vector<std::string>& arguments);
ExitCode run_env(const std::vector<std::string>& arguments);

}  // namespace gallop::app
