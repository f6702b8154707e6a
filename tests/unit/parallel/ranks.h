#pragma once

#include <cstdlib>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "gallop/parallel/collectives.h"
#include "gallop/parallel/store.h"

namespace gallop::parallel {

// LibTorch's flight recorder, one for all groups of a process, is not thread-safe.
[[maybe_unused]] inline const int kNoRecord = setenv("TORCH_FR_BUFFER_SIZE", "0", 1);

/// Runs the function in so many threads, each with collectives of its own, as processes would.
/// Throws what the first of them threw.
inline void run_ranks(int size, const std::function<void(Collectives&)>& function,
                      const RendezvousOptions& like = {}) {
  const StoreServer server("127.0.0.1", 0);
  std::vector<std::exception_ptr> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      RendezvousOptions rendezvous = like;
      rendezvous.rank = rank;
      rendezvous.size = size;
      rendezvous.port = server.port();
      rendezvous.store_is_there = true;
      try {
        const auto collectives = init_process_group(rendezvous);
        function(*collectives);
      } catch (...) {
        errors[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace gallop::parallel
