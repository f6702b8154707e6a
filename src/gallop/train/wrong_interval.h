#pragma once

#include <string>

namespace gallop::train {

/// Why a text is no interval of steps or epochs, for an action that all processes do at the same
/// step; empty if it is one.
std::string wrong_interval_of_steps(const std::string& text);

}  // namespace gallop::train
