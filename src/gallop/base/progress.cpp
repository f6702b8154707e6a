#include "gallop/base/progress.h"

#include <utility>

namespace gallop {

namespace {

thread_local ProgressScope* current_scope = nullptr;

}  // namespace

ProgressScope::ProgressScope(std::function<void()> heard)
    : heard_(std::move(heard)), outer_(std::exchange(current_scope, this)) {}

ProgressScope::~ProgressScope() { current_scope = outer_; }

void note_progress() {
  if (current_scope != nullptr) current_scope->heard_();
}

}  // namespace gallop
