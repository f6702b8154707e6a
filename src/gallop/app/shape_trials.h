#pragma once

#include <vector>

#include "gallop/advise/facts.h"
#include "gallop/app/session.h"
#include "gallop/profile/profile.h"

namespace gallop::app {

/// Times the linear layers and convolutions that take a large share of the profile and whose inputs
/// or outputs are no multiples of a vector's elements: forward and backward of each alone, in
/// interleaved rounds with the next larger multiples.
std::vector<advise::ShapeTrial> time_layer_shapes(Session& session,
                                                  const profile::Profile& profile);

}  // namespace gallop::app
