#pragma once

#include <string>
#include <vector>

#include "gallop/app/command.h"

namespace gallop::app {

/// Parses the arguments before the first of these commands, those of the launcher, and returns the
/// rest; empty if help was requested and printed. Throws UsageError for wrong use, with `example`
/// if the command is missing or cannot be launched.
std::vector<std::string> parse_to_command(CLI::App& parser, const std::vector<std::string>& args,
                                          const std::vector<std::string>& commands,
                                          const std::string& example);

/// Arguments that resume a training that `command`, the arguments from 'train' on, has begun in the
/// folder `run`, which has its recipe. `command` itself if `run` is empty.
std::vector<std::string> resumed(const std::vector<std::string>& command, const std::string& run);

/// Writes the last collectives of all processes when one failed (see launch::GroupEnd) to the run's
/// folder, failures/NUMBER.txt, and returns the end of a message with the path: "; the last calls
/// of ...". On one of several hosts `suffix` follows the number. Empty without a run or calls.
std::string kept_calls(const std::string& run, const std::string& suffix, const std::string& calls);

/// The message if processes_killed_for_memory() has grown.
inline constexpr const char* kKilledForMemory =
    "the system has killed a process because memory ran out; try a smaller data.batch_size or "
    "data.eval_batch, or fewer processes";

/// Prints a line of a process's output; may be called from any thread.
void print_line(const std::string& line);
/// Prints a line of the launcher itself, "gallop: ...".
void say_launcher(const std::string& line);

}  // namespace gallop::app
