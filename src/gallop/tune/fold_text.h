#pragma once

#include <string>

#include "gallop/tune/study.h"

namespace gallop::tune {

/// For a study with the parameter data.fold: mean and sample standard deviation of the first metric
/// over the folds, a line for each point of the other parameters of which two or more folds are
/// complete, the best ones first. Otherwise empty.
std::string folds_text(const Study& study);

}  // namespace gallop::tune
