#pragma once

#include <functional>
#include <vector>

#include "gallop/data/quality/data_quality.h"
#include "gallop/data/quality/duplicates.h"

namespace gallop::data {

/// Adds findings for groups of duplicates: leakage if they are in several splits, conflicting
/// labels, exact duplicates and near-duplicates of one split. `sample(i)` describes member i.
void add_duplicates(const std::vector<DuplicateGroup>& groups,
                    const std::function<FoundSample(int64_t)>& sample, DataQuality& quality);

}  // namespace gallop::data
