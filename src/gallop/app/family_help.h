#pragma once

#include <string>

#include "gallop/config/component.h"

namespace gallop::app {

/// Prints the members of a plug-in family with the options of each, whose keys begin with
/// `section`.
void print_members(const std::string& section, const config::Catalog& catalog);

}  // namespace gallop::app
