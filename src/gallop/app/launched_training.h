#pragma once

#include <string>
#include <vector>

#include "gallop/app/command.h"
#include "gallop/launch/group.h"

namespace gallop::app {

/// The first of these commands among the launcher's arguments or, if `takes_programs`, the path of
/// another program; the end if there is neither.
std::vector<std::string>::const_iterator find_command(const std::vector<std::string>& args,
                                                      const std::vector<std::string>& commands,
                                                      bool takes_programs);

/// Parses the arguments before find_command(), those of the launcher, and returns the rest; empty
/// if help was requested and printed. Throws UsageError for wrong use, with `example` if the
/// command is missing or cannot be launched.
std::vector<std::string> parse_to_command(CLI::App& parser, const std::vector<std::string>& args,
                                          const std::vector<std::string>& commands,
                                          bool takes_programs, const std::string& example);

/// Sets what the processes of a group run: `command`, a command of this program with its arguments,
/// or the path of another program with those of it. With the folder `run` of a training that it has
/// begun, the command resumes that; another program runs again as it did.
void set_command(launch::GroupCommand& group, const std::vector<std::string>& command,
                 const std::string& run);

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
