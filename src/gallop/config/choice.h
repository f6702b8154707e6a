#pragma once

#include "gallop/config/node.h"

namespace gallop::config {

/// What the name of a member of a family is short for: `loss: focal` for `loss: {name: focal}`.
Node choice_of(const Node& name);

}  // namespace gallop::config
