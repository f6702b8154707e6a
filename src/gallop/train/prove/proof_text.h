#pragma once

#include <string>

#include "gallop/train/prove/comparison.h"

namespace gallop::train {

/// A table of the quantities with the worst error of each.
std::string proof_text(const Proof& proof);

/// The first difference in one line: "gradients: the first that differs, from the loss to the
/// input, is ...". Empty if there is none.
std::string difference_text(const Proof& proof);

/// {"proven", "steps", "samples", "difference", "quantities": [...]}, with every tensor's errors.
std::string proof_json(const Proof& proof);

}  // namespace gallop::train
