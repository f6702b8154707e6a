#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "gallop/app/command.h"
#include "gallop/base/heap.h"
#include "gallop/base/text.h"
#include "gallop/parallel/collectives.h"
#include "gallop/train/out_of_memory.h"

namespace gallop::app {
namespace {

std::string help() {
  std::string text =
      "Gallop trains deep-learning models as fast as the hardware allows.\n\n"
      "Usage: gallop COMMAND [ARGUMENTS]\n\nCommands:\n";
  for (const auto& command : commands()) {
    text += fmt::format("  {:<10} {}\n", command.name, command.summary);
  }
  return text +
         "\nStart with:\n"
         "  gallop train fashion-mnist     train a small network (recipe by name)\n"
         "  gallop recipes                 the recipes that come with Gallop\n"
         "  gallop COMMAND --help          what a command does, with an example\n\n"
         "Exit codes: 0 done, 1 a bug in Gallop, 2 wrong use, 3 bad data, 4 device trouble,\n"
         "5 stopped but resumable.\n";
}

ExitCode run(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    std::fputs(help().c_str(), stderr);
    return ExitCode::kUsage;
  }
  const std::string& name = arguments.front();
  if (name == "--help" || name == "-h" || name == "help") {
    std::fputs(help().c_str(), stdout);
    return ExitCode::kDone;
  }
  if (name == "--version" || name == "-V") {
    std::puts("gallop " GALLOP_VERSION);
    return ExitCode::kDone;
  }
  std::vector<std::string> names;
  for (const auto& command : commands()) {
    if (name == command.name) return command.run({arguments.begin() + 1, arguments.end()});
    names.emplace_back(command.name);
  }
  const std::string nearest = nearest_name(name, names);
  throw UsageError(fmt::format("unknown command '{}'{} Commands: {}", printable(name),
                               nearest.empty() ? "." : "; did you mean '" + nearest + "'?",
                               join_names(names, "and")));
}

}  // namespace
}  // namespace gallop::app

int main(int argc, char** argv) {
  using gallop::ExitCode;
  gallop::keep_freed_memory();
  try {
    return static_cast<int>(gallop::app::run({argv + 1, argv + argc}));
  } catch (const gallop::parallel::ErrorOfFirst& error) {
    return static_cast<int>(error.code());  // Said already.
  } catch (const gallop::InternalError& error) {
    fmt::print(stderr, "gallop: this is a bug in Gallop, please report it: {}\n", error.what());
    return static_cast<int>(error.code());
  } catch (const gallop::Error& error) {
    fmt::print(stderr, "gallop: {}\n", error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    if (const auto full = gallop::train::out_of_memory(std::current_exception())) {
      fmt::print(stderr, "gallop: out of memory; try a smaller data.batch or data.eval_batch. {}\n",
                 *full);
      return static_cast<int>(ExitCode::kDevice);
    }
    fmt::print(stderr, "gallop: this is a bug in Gallop, please report it: {}\n", error.what());
    return static_cast<int>(ExitCode::kInternal);
  }
}
