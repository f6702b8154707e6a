#pragma once

#include <string>

#include <CLI/App.hpp>

#include "gallop/app/print.h"

namespace gallop::app {

/// Adds `--split` to a command, and its deprecated spelling `--part`, which sets the same value
/// with a warning.
inline void add_split_option(CLI::App& parser, std::string& split, const std::string& help) {
  auto* const option = parser.add_option("--split", split, help);
  const auto set_with_warning = [&split](const std::string& value) {
    print_warning("--part is deprecated; write --split");
    split = value;
  };
  parser.add_option_function<std::string>("--part", set_with_warning)->excludes(option)->group("");
}

}  // namespace gallop::app
