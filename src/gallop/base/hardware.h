#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gallop {

/// What this process may use of the machine.
struct Hardware {
  std::string cpu_model;
  /// Cores that the process may run on, after affinity and cgroup limits; at least 1.
  int cores = 1;
  /// Bytes of memory, after cgroup limits.
  int64_t memory_bytes = 0;
  /// Widest instruction sets, as words: "avx2", "avx512", "avx512_bf16", "amx_bf16".
  std::string instruction_sets;
  std::string host;
};

/// Looks at the machine; takes well under a millisecond.
Hardware read_hardware();

/// The name of this host; empty where the system does not tell.
std::string host_name();

/// The words that this process was started with; empty where the system does not tell.
std::vector<std::string> read_command_line();

}  // namespace gallop
