#pragma once

#include <linux/perf_event.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop {

/// Counts of all threads of this process in an interval.
struct ProcessCounts {
  /// "page_faults", "major_page_faults", "context_switches", "involuntary_context_switches" and
  /// "cpu_migrations"; of the processor's counters, in user mode: "cycles", "instructions",
  /// "cache_misses" (the generic event of perf), "llc_misses" (reads that miss the last-level
  /// cache), "stalled_cycles_frontend" and "stalled_cycles_backend". Unavailable ones are omitted.
  std::map<std::string, double> values;
  /// Why none of the processor's counters could be read, and the remedy if there is one; empty if
  /// some could.
  std::string why_no_hardware;
};

/// What the counters are read from; replaceable for tests.
struct CounterPlaces {
  fs::path proc = "/proc";
  /// Opens a counter of a thread: a file descriptor, or -1 with errno.
  std::function<int(perf_event_attr& event, pid_t thread)> open;

  CounterPlaces();
};

/// Counts page faults, context switches and migrations (getrusage, /proc), and by the processor's
/// performance counters (perf_event_open, multiplexed if there are more events than counters) from
/// its construction on. Does not throw: what cannot be counted is omitted. Each event of each
/// thread takes a file descriptor, of which half of the free ones are left to others.
class ProcessCounters {
 public:
  explicit ProcessCounters(const CounterPlaces& places = {});
  ~ProcessCounters();
  ProcessCounters(const ProcessCounters&) = delete;
  ProcessCounters& operator=(const ProcessCounters&) = delete;

  /// The counts since the construction, of threads that have ended as well. Migrations are those of
  /// the threads that are still there.
  ProcessCounts read() const;

 private:
  struct Counter {
    const char* name;
    int file;
  };
  struct Usage {
    int64_t minor_faults = 0, major_faults = 0, voluntary_switches = 0, involuntary_switches = 0;
  };
  void open_hardware(const CounterPlaces& places);
  void read_hardware(std::map<std::string, double>& values) const;
  static Usage usage();

  fs::path proc_;
  std::vector<Counter> counters_;
  std::string why_no_hardware_;
  Usage usage_;
  std::map<std::string, int64_t> migrations_;  // By thread.
};

}  // namespace gallop
