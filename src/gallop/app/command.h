#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gallop/base/error.h"
#include "gallop/config/node.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace gallop {
struct Registries;
}
namespace gallop::tune {
struct TuneRegistries;
}

namespace gallop::app {

/// The components that a command can use.
class CommandContext {
 public:
  /// For the front program, which has no LibTorch and only the components of sweeps.
  explicit CommandContext(const tune::TuneRegistries& tune) : tune_(&tune) {}
  /// For the full program.
  explicit CommandContext(const Registries& registries);

  /// Only in the full program; front commands that need them exec the full program.
  const Registries& registries() const;
  const tune::TuneRegistries& tune() const { return *tune_; }

 private:
  const tune::TuneRegistries* tune_;
  const Registries* registries_ = nullptr;
};

/// One subcommand. Its file under app/ is named after it.
struct Command {
  const char* name;
  const char* summary;  ///< One line, for `gallop --help`.
  /// Runs with the arguments after the command's name.
  ExitCode (*run)(const CommandContext& command, const std::vector<std::string>& arguments);
};

/// The commands in the order of `gallop --help`.
const std::vector<Command>& commands();

/// `optimizer.lr=0.1`, as given on the command line.
struct Override {
  std::string path;  ///< With the current names of options.
  std::string value;
  std::string old_path{};  ///< As written, if the name is deprecated; otherwise empty.

  static Override parse(const std::string& path, const std::string& value);
};

/// Overrides as they are given on the command line.
std::vector<std::string> options_of(const std::vector<Override>& overrides);

/// Removes overrides from the arguments: `optimizer.lr=0.1`, `--optimizer.lr 0.1` (or `=0.1`), and
/// a whole section as a map or list, `schedule={name: cosine}`, which replaces it. Throws
/// UsageError for a missing value.
std::vector<Override> take_overrides(std::vector<std::string>& arguments);

/// Parses the remaining arguments with CLI11. False if help was requested and printed. Throws
/// UsageError for invalid usage.
bool parse_arguments(CLI::App& parser, const std::vector<std::string>& arguments);

ExitCode run_train(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode run_evaluate(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode run_predict(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode run_recipes(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode run_find_lr(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode run_find_batch(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode run_graph(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode run_profile(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode run_optimize(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode run_prove(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode run_model(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode run_launch(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode run_pipeline(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode run_convert(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode run_tune(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode run_runs(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode run_ui(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode run_env(const CommandContext& command, const std::vector<std::string>& arguments);

}  // namespace gallop::app
