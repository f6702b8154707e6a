#pragma once

#include "gallop/config/node.h"

namespace gallop::config {

/// Expands the short form of a family member: `loss: focal` to `loss: {name: focal}`.
Node choice_of(const Node& name);

}  // namespace gallop::config
