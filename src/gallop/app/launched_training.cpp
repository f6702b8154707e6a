#include "gallop/app/launched_training.h"

#include <algorithm>
#include <cstdio>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/base/text.h"

namespace gallop::app {

std::vector<std::string> parse_to_command(CLI::App& parser, const std::vector<std::string>& args,
                                          const std::vector<std::string>& commands,
                                          const std::string& example) {
  std::vector<std::string> others, quoted;
  for (const std::string& command : commands) quoted.push_back("'" + command + "'");
  parser.add_option("COMMAND", others, join_names(commands, "or") + ", with what belongs to it");
  const auto begin = std::find_first_of(args.begin(), args.end(), commands.begin(), commands.end());
  if (!parse_arguments(parser, {args.begin(), begin})) return {};
  if (!others.empty()) {
    throw UsageError(fmt::format("expected {1}, got '{0}'; for example: {2}",
                                 printable(others.front()), join_names(quoted, "or"), example));
  }
  if (begin == args.end()) {
    throw UsageError(fmt::format("missing command to launch; for example: {}", example));
  }
  return {begin, args.end()};
}

std::vector<std::string> resumed(const std::vector<std::string>& command, const std::string& run) {
  if (run.empty()) return command;
  std::vector<std::string> again = {"train", "--resume", run};
  for (const char* style : {"--quiet", "--json"}) {
    if (std::find(command.begin(), command.end(), style) != command.end())
      again.emplace_back(style);
  }
  return again;
}

std::string kept_calls(const std::string& run, const std::string& suffix,
                       const std::string& calls) {
  if (run.empty() || calls.empty()) return {};
  try {
    const fs::path folder = fs::path(run) / "failures";
    make_folders(folder);
    const auto file_of = [&](int number) {
      return folder / fmt::format("{}{}.txt", number, suffix);
    };
    int number = 1;
    while (fs::exists(file_of(number))) ++number;
    write_file_atomically(file_of(number), calls);
    return fmt::format("; the last calls of all processes are in {}",
                       printable(file_of(number).string()));
  } catch (const Error& error) {
    return fmt::format("; the last calls of all processes could not be saved: {}", error.what());
  }
}

void print_line(const std::string& line) {
  const std::string text = line + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void say_launcher(const std::string& line) { print_line("gallop: " + line); }

}  // namespace gallop::app
