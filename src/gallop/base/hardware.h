#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gallop {

/// The resources of the machine that this process may use.
struct Hardware {
  std::string cpu_model;
  /// Cores that the process may run on, after affinity and cgroup limits; at least 1.
  int cores = 1;
  /// Compute threads unless train.threads sets them: one per core, or fewer by OMP_NUM_THREADS.
  int threads = 1;
  /// Bytes of memory, after cgroup limits.
  int64_t memory_bytes = 0;
  /// The widest instruction sets: "avx2", "avx512", "avx512_bf16", "amx_bf16".
  std::string instruction_sets;
  std::string host;
};

/// Detects the hardware; takes well under a millisecond.
Hardware read_hardware();

/// The name of this host; empty if unknown.
std::string host_name();

/// The arguments of this process; empty if unknown.
std::vector<std::string> read_command_line();

}  // namespace gallop
