#pragma once

#include <barrier>
#include <functional>

#include "unit/parallel/ranks.h"

namespace gallop::parallel {

/// As run_ranks(), for functions that end with a collective: a rank that is done before others
/// keeps its connections, from which they may still read, until all are done. A rank that throws
/// leaves at once.
inline void run_ranks_together(int size, const std::function<void(Collectives&)>& function) {
  std::barrier<> all_are_done(size);
  run_ranks(size, [&](Collectives& collectives) {
    try {
      function(collectives);
    } catch (...) {
      all_are_done.arrive_and_drop();
      throw;
    }
    all_are_done.arrive_and_wait();
  });
}

}  // namespace gallop::parallel
