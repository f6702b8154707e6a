#pragma once

#include <memory>

#include "gallop/tune/samplers/parzen.h"

namespace gallop::tune {

/// The axis of a parameter with more than one value.
std::unique_ptr<ParzenAxis> make_axis(const Parameter& parameter);

}  // namespace gallop::tune
