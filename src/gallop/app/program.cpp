#include "gallop/app/program.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "gallop/app/command.h"
#include "gallop/app/print.h"
#include "gallop/base/error.h"
#include "gallop/base/standard_streams.h"
#include "gallop/base/text.h"
#include "gallop/launch/reported_error.h"

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
         "Every command accepts --plugin FILE: a library with additional models, losses and so "
         "on.\n"
         "Exit codes: 0 done, 1 a bug in Gallop, 2 usage error, 3 bad data, 4 device error,\n"
         "5 stopped but resumable.\n";
}

// A full disk is only detected when the buffered output is flushed. A closed reader needs no
// output, and a stopped run can be resumed regardless of its output.
ExitCode once_written(ExitCode code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  if (code != ExitCode::kDone || is_reader_gone(STDOUT_FILENO)) return code;
  throw DeviceError("cannot write standard output; the output is incomplete");
}

}  // namespace

ExitCode run_program(const std::vector<std::string>& arguments, const CommandContext& context) {
  open_closed_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // Writing beyond a limit of file sizes is an error, EFBIG.
  if (arguments.empty()) {
    std::fputs(help().c_str(), stderr);
    return ExitCode::kUsage;
  }
  const std::string& name = arguments.front();
  if (name == "help" && arguments.size() > 1) {
    return run_program({arguments[1], "--help"}, context);
  }
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
    if (name == command.name) {
      return once_written(command.run(context, {arguments.begin() + 1, arguments.end()}));
    }
    names.emplace_back(command.name);
  }
  const std::string nearest = nearest_name(name, names);
  throw UsageError(fmt::format("unknown command '{}'{} Commands: {}", printable(name),
                               nearest.empty() ? "." : "; did you mean '" + nearest + "'?",
                               join_names(names, "and")));
}

ExitCode report_error(const std::exception& error) {
  std::string text;
  ExitCode code = ExitCode::kDevice;
  if (const auto* const ours = dynamic_cast<const Error*>(&error);
      ours != nullptr && ours->code() != ExitCode::kInternal) {
    text = ours->what();
    code = ours->code();
  } else if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    text = "out of memory";
  } else if (const auto* const system = dynamic_cast<const std::system_error*>(&error)) {
    text = error.what();
    if (system->code() == std::errc::resource_unavailable_try_again) {
      text = "cannot start a thread; raise the limits of memory and processes (ulimit -v, -u)";
    }
  } else {
    text = fmt::format("this is a bug in Gallop, please report it: {}", error.what());
    code = ExitCode::kInternal;
  }
  launch::report_error(text, [&text] { print_error("gallop: {}\n", text); });
  return code;
}

}  // namespace gallop::app
