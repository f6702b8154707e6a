#pragma once

#include <cstdint>
#include <optional>

#include "gallop/parallel/sums.h"

namespace gallop::parallel {
class BlockGathers;
class Strategy;
}  // namespace gallop::parallel

namespace gallop::train {

/// While it lives, evaluations on this thread are of a model that this strategy divides, so that
/// its parameters are gathered block by block. Null, or a strategy whose processes have all
/// parameters: without effect.
class InferenceScope {
 public:
  explicit InferenceScope(parallel::Strategy* strategy);
  ~InferenceScope();
  InferenceScope(const InferenceScope&) = delete;
  InferenceScope& operator=(const InferenceScope&) = delete;

 private:
  parallel::Strategy* before_;
};

/// The forward passes of an evaluation. In an InferenceScope, processes take part in the gathers
/// for each other's passes.
class InferencePasses {
 public:
  /// `most`: the passes of the process that has the most, if their numbers differ.
  explicit InferencePasses(int64_t most = 0);

  /// Must precede each pass.
  void begin();
  /// Must follow the last pass, also if there were fewer than planned.
  void finish();

 private:
  parallel::BlockGathers* gathers_ = nullptr;
  std::optional<parallel::CollectivesScope> scope_;
  int64_t left_;
};

}  // namespace gallop::train
