#pragma once

#include <string>

#include <CLI/App.hpp>

#include "gallop/app/print.h"
#include "gallop/base/error.h"

namespace gallop::app {

/// Adds `--split` to a command, and its deprecated spelling `--part`, which sets the same value
/// with a warning. Parsing throws UsageError if both are given.
inline void add_split_option(CLI::App& parser, std::string& split, const std::string& help) {
  auto* const option = parser.add_option("--split", split, help);
  const auto set_with_warning = [&split, option](const std::string& value) {
    if (option->count() > 0) {
      throw UsageError("--part is the deprecated spelling of --split; remove --part");
    }
    print_warning("--part is deprecated; write --split");
    split = value;
  };
  parser.add_option_function<std::string>("--part", set_with_warning)->group("");
}

}  // namespace gallop::app
