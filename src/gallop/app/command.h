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

/// The components that a command can choose from, of the program that runs it.
class CommandContext {
 public:
  /// Of the front, which has no LibTorch and no other components.
  explicit CommandContext(const tune::TuneRegistries& tune) : tune_(&tune) {}
  /// Of the full program.
  explicit CommandContext(const Registries& registries);

  /// Of the full program; the front's commands that need them go on there.
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
  std::string old_path{};  ///< As written, where it has a deprecated name; else empty.

  static Override parse(const std::string& path, const std::string& value);
};

/// Takes overrides out of the arguments: `optimizer.lr=0.1`, `--optimizer.lr 0.1` (or `=0.1`), and
/// a section as a map or list, `schedule={name: cosine}`, which is replaced by it. Throws
/// UsageError where a value is missing.
std::vector<Override> take_overrides(std::vector<std::string>& arguments);

/// Parses the rest with CLI11. False where help was asked for and has been printed. Throws
/// UsageError for wrong use.
bool parse_arguments(CLI::App& parser, const std::vector<std::string>& arguments);

ExitCode run_train(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode run_evaluate(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode run_predict(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode run_recipes(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode run_find_lr(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode run_find_batch(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode run_graph(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode run_launch(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode run_convert(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode run_tune(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode run_runs(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode run_ui(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode run_env(const CommandContext& command, const std::vector<std::string>& arguments);

}  // namespace gallop::app
