#include "gallop/train/inference_passes.h"

#include <utility>

#include "gallop/parallel/block_gathers.h"
#include "gallop/parallel/strategy.h"

namespace gallop::train {

namespace {

thread_local parallel::Strategy* current_strategy = nullptr;

}  // namespace

InferenceScope::InferenceScope(parallel::Strategy* strategy)
    : before_(std::exchange(current_strategy, strategy)) {}

InferenceScope::~InferenceScope() { current_strategy = before_; }

InferencePasses::InferencePasses(int64_t most) : left_(most) {
  if (current_strategy == nullptr) return;
  gathers_ = parallel::block_gathers_of(*current_strategy);
  if (gathers_ != nullptr) scope_.emplace(current_strategy->collectives());
}

void InferencePasses::begin() {
  if (gathers_ == nullptr) return;
  gathers_->begin_inference();
  left_ -= 1;
}

void InferencePasses::finish() {
  if (gathers_ == nullptr) return;
  while (left_ > 0) begin();
  gathers_->end_inference();
}

}  // namespace gallop::train
