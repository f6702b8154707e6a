#include "gallop/base/hardware.h"

#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "gallop/base/affinity.h"

namespace gallop {

namespace {

// cgroup v2 "cpu.max": "QUOTA PERIOD" in microseconds, or "max PERIOD".
int quota_cores(int cores) {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  double quota = 0, period = 0;
  if (file >> quota >> period && quota > 0 && period > 0) {
    cores = std::min(cores, std::max(1, static_cast<int>(std::ceil(quota / period))));
  }
  return cores;
}

// OMP_NUM_THREADS is a list with one number per level of nested parallelism; OpenMP ignores an
// invalid one.
int limited_threads(int cores) {
  const char* value = std::getenv("OMP_NUM_THREADS");
  const int64_t limit = value == nullptr ? 0 : std::strtoll(value, nullptr, 10);
  return limit > 0 ? static_cast<int>(std::min<int64_t>(limit, cores)) : cores;
}

int64_t memory_limit() {
  struct sysinfo info = {};
  int64_t bytes = 0;
  if (sysinfo(&info) == 0) bytes = static_cast<int64_t>(info.totalram) * info.mem_unit;
  std::ifstream file("/sys/fs/cgroup/memory.max");
  int64_t limit = 0;
  if (file >> limit && limit > 0) bytes = std::min(bytes, limit);
  return bytes;
}

void read_cpuinfo(Hardware& hardware) {
  std::ifstream file("/proc/cpuinfo");
  std::string line, flags;
  while (std::getline(file, line) && (hardware.cpu_model.empty() || flags.empty())) {
    const auto colon = line.find(": ");
    if (colon == std::string::npos) continue;
    if (line.starts_with("model name")) hardware.cpu_model = line.substr(colon + 2);
    if (line.starts_with("flags")) flags = line.substr(colon + 2) + " ";
  }
  for (const auto& [flag, name] :
       {std::pair{"avx2", "avx2"}, std::pair{"avx512bw", "avx512"},
        std::pair{"avx512_bf16", "avx512_bf16"}, std::pair{"amx_bf16", "amx_bf16"}}) {
    if (flags.find(std::string(" ") + flag + " ") == std::string::npos) continue;
    if (!hardware.instruction_sets.empty()) hardware.instruction_sets += ' ';
    hardware.instruction_sets += name;
  }
}

}  // namespace

Hardware read_hardware() {
  Hardware hardware;
  hardware.cores = quota_cores(static_cast<int>(cores_given().size()));
  hardware.threads = limited_threads(hardware.cores);
  hardware.memory_bytes = memory_limit();
  read_cpuinfo(hardware);
  hardware.host = host_name();
  return hardware;
}

std::string host_name() {
  char host[256] = {};
  return gethostname(host, sizeof(host) - 1) == 0 ? host : "";
}

std::vector<std::string> read_command_line() {
  std::ifstream file("/proc/self/cmdline");
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

}  // namespace gallop
