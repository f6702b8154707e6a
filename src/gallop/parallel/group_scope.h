#pragma once

#include <memory>

#include "gallop/parallel/sums.h"

namespace gallop::parallel {

/// While it lives, the operators of sums.h start their collectives in `group`: as a part of the
/// scope around it, or, outside of steps, of one of its own.
class GroupScope {
 public:
  explicit GroupScope(Collectives& group)
      : own_(CollectivesScope::current() == nullptr ? std::make_unique<CollectivesScope>(group)
                                                    : nullptr),
        subgroup_(group) {}

 private:
  std::unique_ptr<CollectivesScope> own_;
  SubgroupScope subgroup_;
};

}  // namespace gallop::parallel
