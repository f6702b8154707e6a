#include "gallop/base/memory.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>
#include <string>
#include <utility>

namespace gallop {

namespace {

// 123 for "oom_kill 123"; 0 if there is no such line.
int64_t number_behind(const std::string& key, const char* file_name) {
  std::ifstream file(file_name);
  for (std::string word; file >> word;) {
    int64_t number = 0;
    if (word == key && file >> number) return number;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

// "MemAvailable:   123 kB" in bytes.
int64_t bytes_behind(const std::string& key, const char* file_name) {
  return number_behind(key, file_name) * 1024;
}

int64_t number_in(const char* file_name) {
  std::ifstream file(file_name);
  int64_t number = 0;
  return file >> number ? number : -1;
}

}  // namespace

int64_t available_memory() {
  int64_t bytes = bytes_behind("MemAvailable:", "/proc/meminfo");
  const int64_t limit = number_in("/sys/fs/cgroup/memory.max"),
                used = number_in("/sys/fs/cgroup/memory.current");
  if (limit > 0 && used >= 0) bytes = std::min(bytes, std::max<int64_t>(0, limit - used));
  return bytes;
}

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t size = 0, resident = 0;
  return file >> size >> resident ? resident * sysconf(_SC_PAGESIZE) : 0;
}

int64_t peak_resident_bytes() { return bytes_behind("VmHWM:", "/proc/self/status"); }

int64_t processes_killed_for_memory() { return number_behind("oom_kill", "/proc/vmstat"); }

MemoryWatch::MemoryWatch(int64_t limit_bytes, std::function<void()> exceeded)
    : thread_([this, limit_bytes, exceeded = std::move(exceeded)] {
        std::unique_lock lock(mutex_);
        while (!ended_.wait_for(lock, std::chrono::milliseconds(1), [this] { return end_; })) {
          if (resident_bytes() <= limit_bytes) continue;
          exceeded();
          return;
        }
      }) {}

MemoryWatch::~MemoryWatch() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

}  // namespace gallop
