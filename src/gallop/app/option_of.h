#pragma once

#include <optional>

#include "gallop/config/component.h"

namespace gallop::app {

/// The number that an option of a component has; nothing where it has no such option, or one that
/// is no number.
std::optional<double> option_of(config::Component component, const char* name);

}  // namespace gallop::app
