#include "gallop/base/affinity.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace gallop {

namespace {

struct Cores {
  cpu_set_t all;
  std::vector<int> numbers;  // Empty where the system does not tell.

  Cores() {
    if (sched_getaffinity(0, sizeof(all), &all) != 0) return;
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &all)) numbers.push_back(core);
    }
  }
};

const Cores& cores() {
  static const Cores cores;
  return cores;
}

}  // namespace

int cores_given() {
  if (!cores().numbers.empty()) return static_cast<int>(cores().numbers.size());
  return std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
}

void run_on_core(int number) {
  if (static_cast<size_t>(number) >= cores().numbers.size()) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cores().numbers[static_cast<size_t>(number)], &one);
  sched_setaffinity(0, sizeof(one), &one);
}

void run_on_all_cores() {
  if (!cores().numbers.empty()) sched_setaffinity(0, sizeof(cores().all), &cores().all);
}

}  // namespace gallop
