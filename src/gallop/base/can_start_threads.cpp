#include "gallop/base/can_start_threads.h"

#include <latch>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

namespace gallop {

bool can_start_threads(int count) {
  std::latch tried(1);
  std::vector<std::thread> threads;
  bool can = true;
  try {
    threads.reserve(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) threads.emplace_back([&tried] { tried.wait(); });
  } catch (const std::system_error&) {
    can = false;
  } catch (const std::bad_alloc&) {
    can = false;
  }
  tried.count_down();
  for (std::thread& thread : threads) thread.join();
  return can;
}

}  // namespace gallop
