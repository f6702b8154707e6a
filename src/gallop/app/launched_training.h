#pragma once

#include <string>
#include <vector>

#include "gallop/app/command.h"

namespace gallop::app {

/// Parses the words before the first of these commands, a launcher's own, and returns those from
/// there on; empty where help was asked for and has been printed. Throws UsageError for wrong use,
/// with `example` where there is nothing or something else to launch.
std::vector<std::string> parse_to_command(CLI::App& parser, const std::vector<std::string>& args,
                                          const std::vector<std::string>& commands,
                                          const std::string& example);

/// Words that go on with a training which `command`, the words from 'train' on, has begun in the
/// folder `run`: what it is has been kept there. The command itself where `run` is empty.
std::vector<std::string> resumed(const std::vector<std::string>& command, const std::string& run);

/// Keeps what all processes were at when one failed (see launch::GroupEnd) in the run's folder,
/// failures/NUMBER.txt, and says where, behind the words on the failure: "; the last calls of ...".
/// On one of several hosts `suffix` comes behind the number. Empty without a run or calls.
std::string kept_calls(const std::string& run, const std::string& suffix, const std::string& calls);

/// What to say where processes_killed_for_memory() has grown.
inline constexpr const char* kKilledForMemory =
    "the system has killed a process because memory ran out; try a smaller data.batch_size or "
    "data.eval_batch, or fewer processes";

/// Prints a line that a process has printed; any thread may.
void print_line(const std::string& line);
/// Prints a line of the launcher itself, "gallop: ...".
void say_launcher(const std::string& line);

}  // namespace gallop::app
