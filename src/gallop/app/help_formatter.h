#pragma once

#include <string>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

namespace gallop::app {

/// The values that an option with this description of a CLI11 validator takes, "1 to 1024" or "a or
/// b"; empty if the description does not tell.
std::string allowed_values(const std::string& validator);

/// Formats the help of a command: beside each option its type, and its allowed values after its
/// description, in place of CLI11's descriptions of validators.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
};

}  // namespace gallop::app
