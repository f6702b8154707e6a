#include "gallop/base/affinity.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace gallop {

namespace {

struct Cores {
  cpu_set_t all{};
  bool are_told = sched_getaffinity(0, sizeof(all), &all) == 0;
  std::vector<int> numbers;

  Cores() {
    const int count = static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
    for (int core = 0; core < (are_told ? CPU_SETSIZE : count); ++core) {
      if (!are_told || CPU_ISSET(core, &all)) numbers.push_back(core);
    }
  }
};

const Cores& cores() {
  static const Cores cores;
  return cores;
}

}  // namespace

const std::vector<int>& cores_given() { return cores().numbers; }

void run_on_core(int number) {
  if (!cores().are_told) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(number, &one);
  sched_setaffinity(0, sizeof(one), &one);
}

void run_on_all_cores() {
  if (cores().are_told) sched_setaffinity(0, sizeof(cores().all), &cores().all);
}

}  // namespace gallop
