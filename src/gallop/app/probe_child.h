#pragma once

#include <map>
#include <string>
#include <vector>

#include "gallop/base/error.h"
#include "gallop/base/stop.h"

namespace gallop::app {

/// What became of a copy of this program that tried something in a process of its own.
struct ProbeResult {
  enum class Kind { kDone, kNoMemory, kStopped };
  Kind kind = Kind::kDone;
  std::string text;  ///< What it told, or why there was no memory.
};

/// Runs this program with other arguments, and such variables in its environment, and waits for it;
/// a stop request ends it. It tells its
/// result by tell_result(), and that it was short of memory by tell_no_memory(), or by being killed
/// as the kernel does. Throws an Error of its exit code, with what it printed, where it failed in
/// another way, and DeviceError where it cannot be started.
ProbeResult run_probe(const std::vector<std::string>& arguments,
                      const std::map<std::string, std::string>& variables, const StopRequest& stop);

/// Makes this process one that the kernel ends before others where memory runs out.
void become_probe();
void tell_result(const std::string& text);
/// May be called from any thread, and ends the process.
[[noreturn]] void tell_no_memory(const std::string& why);

}  // namespace gallop::app
