#pragma once

#include "gallop/base/file.h"

namespace gallop::app {

// Gallop is two programs. Users start bin/gallop, the front: it links no LibTorch, whose start
// alone takes a quarter of a second, and has all commands that need none. For the others it becomes
// libexec/gallop/gallop, the full program, which has every command.

/// The full program of the front that this process runs: in libexec/gallop/ beside the front, or
/// beside the front's folder. Throws DeviceError where it is not there.
fs::path full_program();

/// Goes on as the full program: the same process, with the same words and environment. Throws
/// DeviceError where it is not there or cannot be started.
[[noreturn]] void exec_full_program();

/// What others are to start, as a job of Slurm: the front, if it is where the full program would be
/// found by it, or this program.
fs::path program_path();

}  // namespace gallop::app
