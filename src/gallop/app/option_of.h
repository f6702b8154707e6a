#pragma once

#include <optional>

#include "gallop/config/component.h"

namespace gallop::app {

/// The numeric value of a component's option; nothing if it has no such option, or the value is not
/// a number.
std::optional<double> option_of(config::Component component, const char* name);

}  // namespace gallop::app
