#pragma once

#include <string>
#include <vector>

#include "gallop/config/component.h"
#include "gallop/config/resolve.h"

namespace gallop::app {

/// The options of a member of a plug-in family, with keys prefixed by `section`.
std::vector<config::FieldHelp> options_of(const std::string& section,
                                          const config::Catalog& catalog,
                                          const config::Catalog::Member& member);

/// Prints one line of help for an option: key, help, type and default.
void print_option(const config::FieldHelp& line);

/// Prints a member of a plug-in family with its options.
void print_member(const std::string& section, const config::Catalog& catalog,
                  const config::Catalog::Member& member);

/// Prints the members of a plug-in family with the options of each, whose keys begin with
/// `section`.
void print_members(const std::string& section, const config::Catalog& catalog);

}  // namespace gallop::app
