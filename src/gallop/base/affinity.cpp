#include "gallop/base/affinity.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace gallop {

namespace {

int online() { return static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN))); }

struct Cores {
  cpu_set_t all{};
  bool are_told = sched_getaffinity(0, sizeof(all), &all) == 0;
  std::vector<int> numbers;

  Cores() {
    for (int core = 0; core < (are_told ? CPU_SETSIZE : online()); ++core) {
      if (!are_told || CPU_ISSET(core, &all)) numbers.push_back(core);
    }
  }
};

Cores& cores() {
  static Cores cores;
  return cores;
}

}  // namespace

const std::vector<int>& cores_given() { return cores().numbers; }

int cores_online() { return online(); }

std::vector<int> part_of(const std::vector<int>& all, int part, int parts) {
  const auto count = static_cast<int>(all.size());
  if (count < parts) return {};
  const auto place = [&](int number) {
    return all.begin() + static_cast<int64_t>(count) * number / parts;
  };
  return {place(part), place(part + 1)};
}

void keep_to_cores(const std::vector<int>& numbers) {
  Cores& mine = cores();
  if (!mine.are_told || numbers.empty()) return;
  CPU_ZERO(&mine.all);
  for (const int number : numbers) CPU_SET(number, &mine.all);
  mine.numbers = numbers;
  run_on_all_cores();
}

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
