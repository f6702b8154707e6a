#include "gallop/base/process_counters.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "gallop/base/text.h"

namespace gallop {

namespace {

struct HardwareEvent {
  const char* name;
  uint32_t type;
  uint64_t config;
};

constexpr uint64_t kReadMisses =
    (PERF_COUNT_HW_CACHE_OP_READ << 8) | (PERF_COUNT_HW_CACHE_RESULT_MISS << 16);

// The first decides whether there are hardware counters.
constexpr std::array<HardwareEvent, 6> kEvents = {{
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {"cache_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    {"llc_misses", PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_LL | kReadMisses},
    {"stalled_cycles_frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
    {"stalled_cycles_backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
}};

// The greatest value of kernel.perf_event_paranoid that permits counting in user mode.
constexpr int64_t kMostParanoid = 2;

int open_counter(perf_event_attr& event, pid_t thread) {
  return static_cast<int>(
      syscall(SYS_perf_event_open, &event, thread, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  return names;
}

std::string why_not_open(int error, const fs::path& proc) {
  switch (error) {
    case EACCES:
    case EPERM: {
      int64_t paranoid = kMostParanoid;
      std::ifstream(proc / "sys/kernel/perf_event_paranoid") >> paranoid;
      if (paranoid > kMostParanoid) {
        return fmt::format("kernel.perf_event_paranoid is {}; {} permits them", paranoid,
                           kMostParanoid);
      }
      return "perf_event_open is not permitted, as in containers without CAP_PERFMON";
    }
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP: return "the kernel provides none, as in most virtual machines";
    case ENOSYS: return "the kernel has no perf_event_open";
    default: return std::generic_category().message(error);
  }
}

// The migrations of a thread since its start; nothing if it has ended or the kernel does not say.
std::optional<int64_t> migrations_of(const fs::path& thread) {
  std::ifstream file(thread / "sched");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("se.nr_migrations")) continue;
    return parse_number<int64_t>(std::string_view(line).substr(line.find_last_of(" :") + 1));
  }
  return std::nullopt;
}

std::map<std::string, int64_t> migrations(const fs::path& proc) {
  std::map<std::string, int64_t> by_thread;
  for (const std::string& thread : names_in(proc / "self/task")) {
    const auto count = migrations_of(proc / "self/task" / thread);
    if (count) by_thread[thread] = *count;
  }
  return by_thread;
}

// Half of the file descriptors that this process may still open.
size_t usable_files(const fs::path& proc) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const size_t open = names_in(proc / "self/fd").size();
  return limit.rlim_cur > open ? (limit.rlim_cur - open) / 2 : 0;
}

}  // namespace

CounterPlaces::CounterPlaces() : open(&open_counter) {}

ProcessCounters::ProcessCounters(const CounterPlaces& places)
    : proc_(places.proc), usage_(usage()), migrations_(migrations(places.proc)) {
  open_hardware(places);
}

ProcessCounters::~ProcessCounters() {
  for (const Counter& counter : counters_) close(counter.file);
}

// Threads that exist have counters of their own; those that they start later inherit them. One that
// starts while the counters are opened may be missed.
void ProcessCounters::open_hardware(const CounterPlaces& places) {
  const std::vector<std::string> threads = names_in(places.proc / "self/task");
  const size_t files = threads.size() * kEvents.size();
  if (files > usable_files(places.proc)) {
    why_no_hardware_ =
        fmt::format("those of {} threads need {} open files; raise the limit (ulimit -n)",
                    threads.size(), files);
    return;
  }
  for (const HardwareEvent& event : kEvents) {
    std::vector<Counter> of_event;
    int error = 0;
    for (const std::string& thread : threads) {
      perf_event_attr attributes{};
      attributes.size = sizeof attributes;
      attributes.type = event.type;
      attributes.config = event.config;
      attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
      attributes.inherit = 1;
      // What every user may count where perf_event_paranoid is 2, the default.
      attributes.exclude_kernel = 1;
      attributes.exclude_hv = 1;
      const int file = places.open(attributes, parse_number<pid_t>(thread).value_or(0));
      if (file >= 0) of_event.push_back({.name = event.name, .file = file});
      if (file >= 0 || errno == ESRCH) continue;  // A thread may have ended.
      error = errno;
      break;
    }
    if (error == 0) {
      counters_.insert(counters_.end(), of_event.begin(), of_event.end());
      continue;
    }
    // The counts of some threads alone would mislead.
    for (const Counter& counter : of_event) close(counter.file);
    if (event.name != kEvents.front().name) continue;
    why_no_hardware_ = why_not_open(error, places.proc);
    return;
  }
}

ProcessCounters::Usage ProcessCounters::usage() {
  rusage now{};
  getrusage(RUSAGE_SELF, &now);
  return {.minor_faults = now.ru_minflt,
          .major_faults = now.ru_majflt,
          .voluntary_switches = now.ru_nvcsw,
          .involuntary_switches = now.ru_nivcsw};
}

void ProcessCounters::read_hardware(std::map<std::string, double>& values) const {
  struct Value {
    uint64_t count = 0, enabled_ns = 0, running_ns = 0;
  };
  std::map<std::string, Value> sums;
  for (const Counter& counter : counters_) {
    Value value;
    if (::read(counter.file, &value, sizeof value) != sizeof value) continue;
    Value& sum = sums[counter.name];
    sum.count += value.count;
    sum.enabled_ns += value.enabled_ns;
    sum.running_ns += value.running_ns;
  }
  for (const auto& [name, sum] : sums) {
    if (sum.running_ns == 0) continue;
    // Events that take turns in a counter are extrapolated to the whole time, as perf does.
    values[name] = static_cast<double>(sum.count) * static_cast<double>(sum.enabled_ns) /
                   static_cast<double>(sum.running_ns);
  }
}

ProcessCounts ProcessCounters::read() const {
  ProcessCounts counts{.values = {}, .why_no_hardware = why_no_hardware_};
  read_hardware(counts.values);
  if (counts.values.empty() && why_no_hardware_.empty()) {
    counts.why_no_hardware = "all of the processor's counters are in use";
  }
  const Usage now = usage();
  const auto add = [&](const char* name, int64_t count) {
    counts.values[name] = static_cast<double>(count);
  };
  const int64_t involuntary = now.involuntary_switches - usage_.involuntary_switches;
  add("page_faults",
      now.minor_faults - usage_.minor_faults + now.major_faults - usage_.major_faults);
  add("major_page_faults", now.major_faults - usage_.major_faults);
  add("context_switches", now.voluntary_switches - usage_.voluntary_switches + involuntary);
  add("involuntary_context_switches", involuntary);
  const auto migrations_now = migrations(proc_);
  if (migrations_now.empty()) return counts;
  int64_t migrated = 0;
  for (const auto& [thread, count] : migrations_now) {
    const auto before = migrations_.find(thread);
    migrated += count - (before == migrations_.end() ? 0 : before->second);
  }
  add("cpu_migrations", migrated);
  return counts;
}

}  // namespace gallop
