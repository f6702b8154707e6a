#include "gallop/data/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>

#include "gallop/base/thread_pool.h"

namespace gallop::data {

void run_parallel(int threads, int64_t count, const std::function<void(int64_t)>& work) {
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  int64_t failed = count;
  std::exception_ptr error;
  const auto loop = [&] {
    for (int64_t i; (i = next.fetch_add(1)) < count;) {
      try {
        work(i);
      } catch (...) {
        next.store(count);
        const std::lock_guard lock(mutex);
        if (i < failed) {
          failed = i;
          error = std::current_exception();
        }
      }
    }
  };
  const int helpers = static_cast<int>(std::min<int64_t>(threads, count)) - 1;
  if (helpers > 0) {
    ThreadPool pool(helpers, "gallop-scan");
    for (int i = 0; i < helpers; ++i) pool.submit(loop);
    loop();
  } else {
    loop();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace gallop::data
