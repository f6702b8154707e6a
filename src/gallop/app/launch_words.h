#pragma once

#include <string>

// The words of `gallop launch`: its options, and behind them a command or a program.
namespace gallop::app {

/// As for a shell, a word with a slash is a path.
inline bool is_program(const std::string& word) { return word.find('/') != std::string::npos; }

/// Whether the value of an option is the next word: all options of launchers but --slurm have one.
inline bool takes_next(const std::string& option) {
  if (option == "--slurm") return false;
  return option.starts_with("--") ? option.find('=') == std::string::npos
                                  : option.size() == 2 && option.front() == '-';
}

}  // namespace gallop::app
