#pragma once

#include <sys/types.h>

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/base/process_group_reaper.h"

namespace gallop {

/// What to start, and how.
struct ChildCommand {
  /// A path, or a name looked for in PATH; by default this program.
  std::string program = "/proc/self/exe";
  std::vector<std::string> arguments;
  /// Environment variables besides those of this process, or in their place.
  std::map<std::string, std::string> variables{};
  /// Environment variables of this process that it does not get.
  std::vector<std::string> without{};
  /// What it reads; without it, what this process would.
  std::optional<std::string> input{};
  /// Numbers of the cores to run on; empty: all that this program was given.
  std::vector<int> cores{};
  /// Whether what it prints comes to this process, and not where this process prints.
  bool keep_output = false;
  /// So many bytes it can print, where the system allows it, while they are not read; 0: as many as
  /// is usual.
  int unread_bytes = 0;
  /// Whether it has a process group of its own, so that what a terminal sends on Ctrl-C comes to
  /// this process alone, and so that its own children can be ended with it.
  bool own_group = false;
  /// Whether that group is killed, too, where this process is (ProcessGroupReaper).
  bool with_warden = false;
  /// Whether the constructor waits until the program runs. If not, poll() and wait() throw where it
  /// could not be started; a child that is stopped before its exec does not hold up this process.
  bool awaits_start = true;
};

/// How a process ended.
struct ChildEnd {
  int exit_code = 0;
  int signal = 0;  ///< That killed it; then it has no exit code.

  bool is_good() const { return exit_code == 0 && signal == 0; }
  /// "ended with exit code 3" or "was killed by SIGSEGV".
  std::string describe() const;
};

/// A process that this one has started, which does not outlive the thread that did.
class ChildProcess {
 public:
  /// Throws DeviceError where it cannot be started, with the system's reason (see awaits_start).
  explicit ChildProcess(const ChildCommand& command);
  /// Kills it as kill_all() does.
  ~ChildProcess();
  ChildProcess(ChildProcess&&) noexcept;
  ChildProcess& operator=(ChildProcess&&) noexcept;

  pid_t id() const { return id_; }
  /// Where what it prints can be read, and its end when it has closed it; -1 where that is not
  /// kept.
  int output() const { return output_.get(); }
  /// Sends a signal; does nothing once it has ended.
  void send(int signal);
  /// Kills it, and what else is in its group where that is its own; does nothing once poll() or
  /// wait() has told its end.
  void kill_all();
  /// Whether it has ended; what it left behind in its group can still be killed.
  bool has_ended() const;
  /// Whether it has ended, and how. Throws DeviceError where it was not awaited and could not be
  /// started.
  std::optional<ChildEnd> poll();
  ChildEnd wait();

 private:
  void start_warden();
  void reap();
  void check_start();

  pid_t id_ = -1;
  bool own_group_ = false;
  FileDescriptor output_;
  std::string program_;
  FileDescriptor failure_;  ///< Where the reason comes from until its exec; then it is closed.
  std::unique_ptr<ProcessGroupReaper> reaper_;
  std::optional<ChildEnd> end_;
};

/// Kills the groups of all processes that this one has started with one of their own and that still
/// run. For the handler of a signal that ends this process, with which its children end, but not
/// theirs: async-signal-safe.
void kill_groups();

/// What ends a process before it does so itself, and how much of its output is kept.
struct RunLimits {
  double seconds = std::numeric_limits<double>::infinity();
  std::function<bool()> stop{};  ///< Asked every 50 ms.
  size_t output_bytes = std::numeric_limits<size_t>::max();
};

/// How a process that was waited for ended.
struct ChildRun {
  enum class Cause : uint8_t { kItself, kTimedOut, kStopped };
  Cause cause = Cause::kItself;
  ChildEnd end;
  std::string output;  ///< What it wrote, both streams.

  bool is_good() const { return cause == Cause::kItself && end.is_good(); }
};

/// Starts a process, whose output is kept, and waits until it, and whoever else has that open,
/// closes it. At a limit it is killed as by kill_all(). Throws as ChildProcess does. May be called
/// by several threads.
ChildRun run_to_end(ChildCommand command, const RunLimits& limits = {});

}  // namespace gallop
