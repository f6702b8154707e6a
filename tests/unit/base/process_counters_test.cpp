#include "gallop/base/process_counters.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <fstream>
#include <latch>
#include <thread>

#include <gtest/gtest.h>

#include "gallop/base/temporary_folder.h"

namespace gallop {
namespace {

// A counter as the kernel presents it: the count, and the nanoseconds that it was enabled and ran.
int counter_with(uint64_t count, uint64_t enabled, uint64_t running) {
  const std::array<uint64_t, 3> values = {count, enabled, running};
  const int file = memfd_create("counter", MFD_CLOEXEC);
  EXPECT_EQ(write(file, values.data(), sizeof values), static_cast<ssize_t>(sizeof values));
  EXPECT_EQ(lseek(file, 0, SEEK_SET), 0);
  return file;
}

bool is(const perf_event_attr& event, uint32_t type, uint64_t config) {
  return event.type == type && event.config == config;
}

constexpr double kSeconds = 0.02;

void use_cpu() {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double end = now() + kSeconds;
  while (now() < end) {
  }
}

class ProcessCountersTest : public testing::Test {
 protected:
  // A process with these threads.
  void make_threads(const std::vector<std::string>& threads) {
    for (const std::string& thread : threads) fs::create_directories(proc / "self/task" / thread);
    fs::create_directories(proc / "self/fd");
    fs::create_directories(proc / "sys/kernel");
    places.proc = proc;
  }
  void set_migrations(const std::string& thread, int64_t times) const {
    std::ofstream(proc / "self/task" / thread / "sched")
        << "gallop (7, #threads: 1)\nse.vruntime        :  3.5\nse.nr_migrations    :      "
        << times << "\nnr_switches : 9\n";
  }

  TemporaryFolder folder{fs::temp_directory_path(), "gallop-counters-"};
  fs::path proc = folder.path();
  CounterPlaces places;
};

TEST_F(ProcessCountersTest, SumsTheEventsOfAllThreads) {
  make_threads({"7", "8"});
  std::map<pid_t, int> opened;
  places.open = [&](const perf_event_attr& event, pid_t thread) {
    EXPECT_TRUE(event.exclude_kernel && event.inherit);
    opened[thread] += 1;
    if (is(event, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES)) {
      return counter_with(thread == 7 ? 3000 : 1000, 50, 50);
    }
    if (is(event, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS)) {
      return counter_with(1500, 80, 20);  // It shared the counter.
    }
    if (event.type == PERF_TYPE_HW_CACHE) return counter_with(0, 50, 0);  // It never had one.
    errno = ENOENT;
    return -1;
  };
  const ProcessCounts counts = ProcessCounters(places).read();
  EXPECT_EQ(counts.why_no_hardware, "");
  EXPECT_EQ(counts.values.at("cycles"), 4000);
  EXPECT_EQ(counts.values.at("instructions"), 12000);
  EXPECT_FALSE(counts.values.contains("llc_misses"));
  EXPECT_FALSE(counts.values.contains("cache_misses"));
  EXPECT_EQ(opened.size(), 2U);
}

TEST_F(ProcessCountersTest, LeavesOutEventsThatSomeThreadsLack) {
  make_threads({"7", "8", "9"});
  pid_t denied = 0;
  places.open = [&](const perf_event_attr& event, pid_t thread) {
    if (thread == 9) {
      errno = ESRCH;  // It has ended.
      return -1;
    }
    if (!is(event, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES)) {
      if (denied == 0) denied = thread;
      if (thread != denied) {
        errno = EMFILE;
        return -1;
      }
    }
    return counter_with(5, 1, 1);
  };
  const ProcessCounts counts = ProcessCounters(places).read();
  EXPECT_EQ(counts.values.at("cycles"), 10);
  EXPECT_FALSE(counts.values.contains("instructions"));
  EXPECT_EQ(counts.why_no_hardware, "");
}

TEST_F(ProcessCountersTest, TellsWhyThereIsNoHardwareCounter) {
  make_threads({"7"});
  const auto why = [&](int error) {
    places.open = [error](const perf_event_attr& /*event*/, pid_t /*thread*/) {
      errno = error;
      return -1;
    };
    const ProcessCounts counts = ProcessCounters(places).read();
    EXPECT_FALSE(counts.values.contains("cycles"));
    EXPECT_TRUE(counts.values.contains("page_faults"));
    return counts.why_no_hardware;
  };
  EXPECT_EQ(why(ENOENT), "the kernel provides none, as in most virtual machines");
  EXPECT_EQ(why(ENOSYS), "the kernel has no perf_event_open");
  EXPECT_NE(why(EPERM).find("CAP_PERFMON"), std::string::npos);
  std::ofstream(proc / "sys/kernel/perf_event_paranoid") << "4\n";
  EXPECT_EQ(why(EACCES), "kernel.perf_event_paranoid is 4; 2 permits them");
  places.open = [](const perf_event_attr& /*event*/, pid_t /*thread*/) {
    return counter_with(0, 9, 0);
  };
  EXPECT_EQ(ProcessCounters(places).read().why_no_hardware,
            "all of the processor's counters are in use");
}

TEST_F(ProcessCountersTest, LeavesFileDescriptorsToOthers) {
  make_threads({"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"});
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit low = {.rlim_cur = 119, .rlim_max = limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  places.open = [](const perf_event_attr& /*event*/, pid_t /*thread*/) -> int {
    ADD_FAILURE() << "opened";
    return -1;
  };
  EXPECT_EQ(ProcessCounters(places).read().why_no_hardware,
            "those of 10 threads need 60 open files; raise the limit (ulimit -n)");
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST_F(ProcessCountersTest, CountsMigrationsOfThreads) {
  make_threads({"7", "8"});
  places.open = [](const perf_event_attr& /*event*/, pid_t /*thread*/) {
    errno = ENOENT;
    return -1;
  };
  EXPECT_FALSE(ProcessCounters(places).read().values.contains("cpu_migrations"));
  set_migrations("7", 100);
  set_migrations("8", 20);
  const ProcessCounters counters(places);
  set_migrations("7", 103);
  make_threads({"9"});
  set_migrations("9", 2);
  fs::remove_all(proc / "self/task/8");
  EXPECT_EQ(counters.read().values.at("cpu_migrations"), 5);
}

TEST(ProcessCounters, CountPageFaults) {
  const ProcessCounters counters;
  constexpr size_t kPages = 64;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* memory =
      mmap(nullptr, kPages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(madvise(memory, kPages * page, MADV_NOHUGEPAGE), 0);
  for (size_t i = 0; i < kPages; ++i) static_cast<volatile char*>(memory)[i * page] = 1;
  const ProcessCounts counts = counters.read();
  munmap(memory, kPages * page);
  EXPECT_GE(counts.values.at("page_faults"), kPages);
  EXPECT_GE(counts.values.at("context_switches"), 0);
  // Either kind of machine.
  EXPECT_EQ(counts.values.contains("cycles"), counts.why_no_hardware.empty());
}

// The kernel's own counters behave as the ones above; CPU time needs no processor that counts.
TEST(ProcessCounters, FollowThreadsThatExistAndThoseThatStartLater) {
  CounterPlaces places;
  const auto open = places.open;
  places.open = [open](perf_event_attr& event, pid_t thread) {
    if (!is(event, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES)) {
      errno = ENOENT;
      return -1;
    }
    event.type = PERF_TYPE_SOFTWARE;
    event.config = PERF_COUNT_SW_TASK_CLOCK;
    return open(event, thread);
  };
  std::latch counting(1), done(1);
  std::thread other([&] {
    counting.wait();
    use_cpu();
    done.count_down();
    std::thread(use_cpu).join();
  });
  const ProcessCounters counters(places);
  counting.count_down();
  done.wait();
  other.join();
  std::thread(use_cpu).join();
  const ProcessCounts counts = counters.read();
  if (!counts.why_no_hardware.empty()) GTEST_SKIP() << counts.why_no_hardware;
  EXPECT_GE(counts.values.at("cycles"), 3 * 1e9 * kSeconds * 0.99);
}

}  // namespace
}  // namespace gallop
