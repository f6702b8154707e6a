#include "gallop/app/launched_training.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <limits>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/app/launch_words.h"
#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/base/text.h"

namespace gallop::app {

namespace {

void require_executable(const std::string& path, const std::string& others) {
  if (fs::is_regular_file(path) && access(path.c_str(), X_OK) == 0) return;
  throw UsageError(fmt::format("{} {}; launch {}", printable(path),
                               fs::exists(path) ? "is not an executable program" : "does not exist",
                               others));
}

// Arguments that resume the training that `command` has begun in the folder `run`, which has its
// recipe.
std::vector<std::string> resumed(const std::vector<std::string>& command, const std::string& run) {
  std::vector<std::string> again = {"train", "--resume", run};
  for (const char* flag : {"--quiet", "--json", "--allow-changed-data"}) {
    if (std::find(command.begin(), command.end(), flag) != command.end()) again.emplace_back(flag);
  }
  // The recipe does not have them.
  for (const std::string option : {"--until", "--mlflow", "--experiment"}) {
    for (auto word = command.begin(); word != command.end(); ++word) {
      if (word->starts_with(option + "=")) again.push_back(*word);
      if (*word == option && word + 1 != command.end()) again.insert(again.end(), {*word, word[1]});
    }
  }
  return again;
}

}  // namespace

std::vector<std::string>::const_iterator find_command(const std::vector<std::string>& args,
                                                      const std::vector<std::string>& commands,
                                                      bool takes_programs) {
  for (auto word = args.begin(); word != args.end(); ++word) {
    if (std::find(commands.begin(), commands.end(), *word) != commands.end()) return word;
    const bool is_value = word != args.begin() && takes_next(*(word - 1));
    if (takes_programs && is_program(*word) && !word->starts_with('-') && !is_value) return word;
  }
  return args.end();
}

std::vector<std::string> parse_to_command(CLI::App& parser, const std::vector<std::string>& args,
                                          const std::vector<std::string>& commands,
                                          bool takes_programs, const std::string& example) {
  std::vector<std::string> others, wanted;
  for (const std::string& command : commands) wanted.push_back("'" + command + "'");
  if (takes_programs) wanted.emplace_back("a program by its path");
  const std::string one_of = join_names(wanted, "or");
  parser.add_option("COMMAND", others, one_of + ", with its arguments");
  const auto begin = find_command(args, commands, takes_programs);
  if (!parse_arguments(parser, {args.begin(), begin})) return {};
  if (!others.empty()) {
    throw UsageError(fmt::format("expected {1}, got '{0}'; for example: {2}",
                                 printable(others.front()), one_of, example));
  }
  if (begin == args.end()) {
    throw UsageError(fmt::format("missing command to launch; for example: {}", example));
  }
  if (is_program(*begin)) require_executable(*begin, one_of);
  return {begin, args.end()};
}

void set_command(launch::GroupCommand& group, const std::vector<std::string>& command,
                 const std::string& run) {
  if (!is_program(command.front())) {
    group.arguments = run.empty() ? command : resumed(command, run);
    return;
  }
  group.program = command.front();
  group.arguments.assign(command.begin() + 1, command.end());
  // Its processes need not end together.
  group.end_seconds = std::numeric_limits<double>::infinity();
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
