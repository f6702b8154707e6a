#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/data/split.h"

namespace gallop::data {

/// The value of Holdout::group for files of one folder.
inline constexpr const char* kByFolder = "folder";

/// The fold of each group, which has these counts of samples of each class, as scikit-learn's
/// StratifiedGroupKFold assigns them: in descending order of the counts' standard deviation, each
/// to the fold with which the shares of the classes vary least. With one class as by GroupKFold: in
/// descending order of size, each to the smallest fold.
std::vector<int64_t> assign_groups(const std::vector<std::vector<int64_t>>& groups, int64_t folds);

/// As cut_fold(), but keeps the samples of a group together: cuts a fold of assign_groups(), or
/// draws groups at random up to the fraction. `groups` has the name of each sample's group;
/// `labels` may be empty. Throws DataError if there are fewer groups than folds, or if either part
/// would be empty.
IndexCut cut_groups(const std::vector<std::string>& groups, const std::vector<int64_t>& labels,
                    const Holdout& holdout);

/// cut_images() by groups that are not in the images' names, one for each training image.
void cut_images(ImageParts& parts, const Holdout& holdout, const std::vector<std::string>& groups);

}  // namespace gallop::data
