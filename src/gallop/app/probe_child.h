#pragma once

#include <map>
#include <string>
#include <vector>

#include "gallop/base/error.h"
#include "gallop/base/stop.h"

namespace gallop::app {

/// The result of an experiment in a child process of this program.
struct ProbeResult {
  enum class Kind { kDone, kNoMemory, kStopped };
  Kind kind = Kind::kDone;
  std::string text;  ///< Its result, or why memory ran out.
};

/// Runs this program with other arguments and additional environment variables, and waits for it; a
/// stop request ends it. It reports its result by tell_result(), and that it ran out of memory by
/// tell_no_memory(), or by being killed by the kernel. Throws an Error of its exit code, with its
/// output, if it failed otherwise, and DeviceError if it cannot be started.
ProbeResult run_probe(const std::vector<std::string>& arguments,
                      const std::map<std::string, std::string>& variables, const StopRequest& stop);

/// The last line of a command's output, without the name of the program before an error.
std::string error_line(std::string output);

/// Makes this process the first that the kernel kills when memory runs out.
void become_probe();
void tell_result(const std::string& text);
/// May be called from any thread, and ends the process.
[[noreturn]] void tell_no_memory(const std::string& why);

}  // namespace gallop::app
