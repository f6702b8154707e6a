#include "gallop/base/blocked_signals.h"

#include <pthread.h>

namespace gallop {

namespace {

sigset_t set_of(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

}  // namespace

BlockedSignals::BlockedSignals(const sigset_t& signals) {
  pthread_sigmask(SIG_BLOCK, &signals, &previous_);
}

BlockedSignals::BlockedSignals(std::initializer_list<int> signals)
    : BlockedSignals(set_of(signals)) {}

BlockedSignals BlockedSignals::all() {
  sigset_t set;
  sigfillset(&set);
  return BlockedSignals(set);
}

BlockedSignals::~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &previous_, nullptr); }

}  // namespace gallop
