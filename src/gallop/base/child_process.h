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

/// The program to start, and its environment.
struct ChildCommand {
  /// A path, or a name looked for in PATH; by default this program.
  std::string program = "/proc/self/exe";
  std::vector<std::string> arguments;
  /// Environment variables besides those of this process, or in their place.
  std::map<std::string, std::string> variables{};
  /// Environment variables of this process to remove.
  std::vector<std::string> without{};
  /// Standard input; by default that of this process.
  std::optional<std::string> input{};
  /// Cores to run on; empty: all cores of this program.
  std::vector<int> cores{};
  /// Whether output is captured instead of inherited.
  bool keep_output = false;
  /// Capacity of the output pipe in bytes, if the system allows it; 0: the default.
  int unread_bytes = 0;
  /// Whether it gets its own process group, so that Ctrl-C in a terminal only reaches this process,
  /// and its own children can be killed with it.
  bool own_group = false;
  /// Whether that group is also killed when this process dies (ProcessGroupReaper).
  bool with_warden = false;
  /// Whether the constructor waits until the program runs. If not, poll() and wait() throw if it
  /// could not be started; a child that is stopped before its exec does not block this process.
  bool awaits_start = true;
};

/// How a process ended.
struct ChildEnd {
  int exit_code = 0;
  int signal = 0;  ///< Signal that killed it; then there is no exit code.

  bool is_good() const { return exit_code == 0 && signal == 0; }
  /// "ended with exit code 3" or "was killed by SIGSEGV".
  std::string describe() const;
};

/// A child process, which does not outlive the thread that started it.
class ChildProcess {
 public:
  /// Throws DeviceError with the system's reason if it cannot be started (see awaits_start).
  explicit ChildProcess(const ChildCommand& command);
  /// Kills the process as kill_all() does.
  ~ChildProcess();
  ChildProcess(ChildProcess&&) noexcept;
  ChildProcess& operator=(ChildProcess&&) noexcept;

  pid_t id() const { return id_; }
  /// The descriptor of captured output, which is at its end once the child has closed it; -1 if
  /// output is not captured.
  int output() const { return output_.get(); }
  /// Sends a signal; does nothing after the process has ended.
  void send(int signal);
  /// Kills the process, and its process group if it has its own; does nothing once poll() or wait()
  /// has returned its end.
  void kill_all();
  /// Whether it has ended; its process group can still be killed.
  bool has_ended() const;
  /// How it ended; nothing while it runs. Throws DeviceError if it was not awaited and could not be
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
  FileDescriptor failure_;  ///< Receives the error until its exec; then it is closed.
  std::unique_ptr<ProcessGroupReaper> reaper_;
  std::optional<ChildEnd> end_;
};

/// Kills the process groups of all running children that have their own. For the handler of a
/// signal that ends this process, as grandchildren would survive it: async-signal-safe.
void kill_groups();

/// Limits on a process and its captured output.
struct RunLimits {
  double seconds = std::numeric_limits<double>::infinity();
  std::function<bool()> stop{};  ///< Polled every 50 ms.
  size_t output_bytes = std::numeric_limits<size_t>::max();
};

/// The result of a completed process.
struct ChildRun {
  enum class Cause : uint8_t { kItself, kTimedOut, kStopped };
  Cause cause = Cause::kItself;
  ChildEnd end;
  std::string output;  ///< Output of both streams.

  bool is_good() const { return cause == Cause::kItself && end.is_good(); }
};

/// Runs a process with captured output until its output is closed by it and all processes that
/// inherited it. At a limit it is killed as by kill_all(). Throws the errors of ChildProcess.
/// Thread-safe.
ChildRun run_to_end(ChildCommand command, const RunLimits& limits = {});

}  // namespace gallop
