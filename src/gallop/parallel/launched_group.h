#pragma once

#include <memory>

#include "gallop/launch/world.h"
#include "gallop/parallel/collectives.h"

namespace gallop::parallel {

/// The collectives of the processes that a launcher has started. Binds this process to its cores
/// (launch::pin_to_local_cores()), and waits until all have joined. It records its calls for the
/// launcher if that requests them. Throws DeviceError on a timeout.
std::unique_ptr<Collectives> join_launched_group(const launch::World& world, const Limits& limits);

}  // namespace gallop::parallel
