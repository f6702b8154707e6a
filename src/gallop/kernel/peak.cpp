#include "gallop/kernel/peak.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <ATen/Parallel.h>

#include "gallop/base/clock.h"
#include "gallop/base/error.h"
#include "gallop/kernel/cpu/peak.h"

namespace gallop::kernel {

namespace {

// One run may be disturbed by another program; the best of these is not.
constexpr int kRuns = 7;
constexpr int64_t kRepeats = 200000;   // A few milliseconds.
constexpr double kCopiedBytes = 64e6;  // In a run, at least.

// Memory that the system takes back at once, unlike that of a heap that retains what is freed.
class Pages {
 public:
  explicit Pages(size_t bytes)
      : bytes_(bytes),
        data_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (data_ == MAP_FAILED) throw DeviceError("out of memory while measuring this machine");
  }
  ~Pages() { munmap(data_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  char* data() const { return static_cast<char*>(data_); }

 private:
  size_t bytes_;
  void* data_;
};

template <typename Function>
double best_rate(double work, const Function& run) {
  double least = 1e9;
  for (int i = 0; i < kRuns; ++i) {
    const double begin = monotonic_seconds();
    run();
    least = std::min(least, monotonic_seconds() - begin);
  }
  return work / least;
}

}  // namespace

double peak_flops_per_second(c10::ScalarType format) {
  const auto& kernels = best_kernels<PeakKernels>();
  const bool is_bf16 = format == c10::kBFloat16 && kernels.bf16 != nullptr;
  const auto run = is_bf16 ? kernels.bf16 : kernels.fp32;
  const auto threads = static_cast<int64_t>(at::get_num_threads());
  const double flops = run(1) * static_cast<double>(kRepeats * threads);
  return best_rate(flops, [&] {
    at::parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) run(kRepeats);
    });
  });
}

double peak_bytes_per_second(double bytes) {
  const auto threads = static_cast<int64_t>(at::get_num_threads());
  const auto half = std::max<int64_t>(4096, static_cast<int64_t>(bytes) / 2);
  const Pages from(static_cast<size_t>(half)), to(static_cast<size_t>(half));
  std::memset(from.data(), 1, static_cast<size_t>(half));  // Else all its pages are one of zeros.
  const auto repeats = std::max<int64_t>(1, static_cast<int64_t>(kCopiedBytes) / (2 * half));
  const auto copy = [&] {
    at::parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = half * i / threads, last = half * (i + 1) / threads;
        for (int64_t repeat = 0; repeat < repeats; ++repeat) {
          std::memcpy(to.data() + first, from.data() + first, static_cast<size_t>(last - first));
          asm volatile("" : : "r"(to.data()) : "memory");
        }
      }
    });
  };
  copy();
  return best_rate(2.0 * static_cast<double>(half * repeats), copy);
}

}  // namespace gallop::kernel
