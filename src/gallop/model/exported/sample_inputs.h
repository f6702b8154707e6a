#pragma once

#include <vector>

#include <ATen/core/ivalue.h>

#include "gallop/model/exported/archive.h"

namespace gallop::model::exported {

/// The inputs of the archive's sample, in the order of the program's inputs and constants of the
/// user; empty if there is none. Throws DataError for a damaged one.
std::vector<c10::IValue> sample_inputs(Archive& archive);

}  // namespace gallop::model::exported
