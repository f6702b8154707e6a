#pragma once

#include <map>
#include <string>
#include <vector>

#include "gallop/config/component.h"
#include "gallop/config/resolve.h"

namespace gallop::app {

/// The options of a member of a plug-in family, with keys prefixed by `section`.
std::vector<config::FieldHelp> options_of(const std::string& section,
                                          const config::Catalog& catalog,
                                          const config::Catalog::Member& member);

/// Prints the help of options, in lines of at most so many columns.
class OptionPrinter {
 public:
  /// For standard output.
  OptionPrinter();

  /// Prints the help of an option: key, help, type and default. Of a long list of values that an
  /// earlier option has as well, only that option's key.
  void print(const config::FieldHelp& line);

  /// Prints a member of a plug-in family with its options.
  void print_member(const std::string& section, const config::Catalog& catalog,
                    const config::Catalog::Member& member);

  /// Prints the members of a plug-in family with the options of each, whose keys begin with
  /// `section`.
  void print_members(const std::string& section, const config::Catalog& catalog);

 private:
  std::string type_of(const config::FieldHelp& line);

  size_t columns_;
  std::map<std::string, std::string> keys_;  // Keys of the lists of values that are printed.
};

}  // namespace gallop::app
