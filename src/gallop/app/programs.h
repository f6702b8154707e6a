#pragma once

#include "gallop/base/file.h"

namespace gallop::app {

// Gallop consists of two programs. Users start bin/gallop, the front: it does not link LibTorch,
// which takes a quarter of a second to load, and has all commands that do not need it. For the
// others it execs libexec/gallop/gallop, the full program, which has every command.

/// The full program of this front: in libexec/gallop/ beside the front, or beside the front's
/// folder. Throws DeviceError if it does not exist.
fs::path full_program();

/// What becomes of SIGTERM, SIGINT, SIGUSR1 and SIGHUP while the full program is loaded.
enum class StopSignals {
  kDefault,  ///< They end the process.
  kHeld,     ///< For commands that begin with a SignalGuard, which delivers them.
};

/// Execs the full program: the same process, with the same arguments and environment. Throws
/// DeviceError if it does not exist or cannot be started.
[[noreturn]] void exec_full_program(StopSignals signals = StopSignals::kDefault);

/// Delivers signals that exec_full_program() held back, and later ones as they arrive.
void deliver_held_signals();

/// The program that other programs such as Slurm start: the front, if the full program is at its
/// usual place beside it, or this program.
fs::path program_path();

}  // namespace gallop::app
