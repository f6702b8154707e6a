#include <cerrno>
#include <csignal>
#include <cstdio>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/app/command.h"
#include "gallop/app/print.h"
#include "gallop/app/runs/cost_options.h"
#include "gallop/base/blocked_signals.h"
#include "gallop/base/socket.h"
#include "gallop/base/text.h"
#include "gallop/ui/http/server.h"
#include "gallop/ui/site.h"

namespace gallop::app {

namespace {

// The addresses and names of the page.
struct UiOptions {
  std::string runs = "runs", studies = "studies", searches = "optimize", host = "127.0.0.1";
  int port = 6006;
  std::vector<std::string> open_to;
  CostOptions cost;
};

FileDescriptor listen_as_asked(const UiOptions& options) {
  int reason = 0;
  FileDescriptor socket = listen_at(resolve(options.host, options.port).front(), reason);
  if (socket) return socket;
  const std::string place = fmt::format("{}:{}", printable(options.host), options.port);
  if (reason == EADDRINUSE) {
    throw DeviceError(
        fmt::format("{} is in use by another program; choose another port with --port", place));
  }
  throw DeviceError(fmt::format("{}: {}", place, std::generic_category().message(reason)));
}

// The host as part of a URL.
std::string in_address(const std::string& host) {
  return host.find(':') != std::string::npos ? "[" + host + "]" : host;
}

// A wildcard address adds no name.
std::vector<std::string> names_of(const UiOptions& options, const SocketAddress& address) {
  std::vector<std::string> names = options.open_to;
  if (address.host() == "0.0.0.0" || address.host() == "::") return names;
  names.push_back(in_address(options.host));
  names.push_back(in_address(address.host()));
  return names;
}

void wait_for_signal() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  int signal = 0;
  sigwait(&signals, &signal);
}

}  // namespace

ExitCode run_ui(const CommandContext& /*command*/, const std::vector<std::string>& arguments) {
  CLI::App parser(
      "Show runs in a browser: a table of all runs, curves of several, and the details of one;\n"
      "sweeps: status, best trials and parameter importance; and searches of 'gallop optimize'.\n"
      "The page is accessible from this machine only, unless --host is given. Ctrl-C stops it.\n\n"
      "Example: gallop ui runs --port 6007",
      "gallop ui");
  UiOptions options;
  parser.add_option("RUNS", options.runs, "folder of the runs; by default runs");
  parser.add_option("--studies", options.studies,
                    "folder of the sweeps; by default studies, if it exists");
  parser.add_option(
      "--searches", options.searches,
      "folder of the searches of 'gallop optimize'; by default optimize, if it exists");
  parser.add_option("--host", options.host, "address to listen on; 127.0.0.1 by default");
  parser.add_option("--port", options.port, "port; 6006 by default, 0: a free one")
      ->check(CLI::Range(0, 65535));
  parser
      .add_option("--open-to", options.open_to,
                  "additional host names that browsers may use; NAME:PORT for the port of a tunnel")
      ->take_all();
  options.cost.add_to(parser);
  if (!parse_arguments(parser, arguments)) return ExitCode::kDone;
  // Threads created from here on leave these signals to this one.
  const BlockedSignals blocked({SIGINT, SIGTERM, SIGHUP});
  FileDescriptor socket = listen_as_asked(options);
  const SocketAddress address = address_of(socket);
  ui::Site site({.runs = options.runs,
                 .studies = options.studies,
                 .searches = options.searches,
                 .version = GALLOP_VERSION,
                 .port = address.port(),
                 .names = names_of(options, address),
                 .surroundings = options.cost.surroundings()});
  const ui::http::Server server(
      std::move(socket),
      {.refuse = [&](const ui::http::Request& request) { return site.refuse(request); },
       .answer = [&](const ui::http::Request& request) { return site.answer(request); }});
  if (!address.is_loopback()) {
    print_error("gallop: warning: anyone who can reach {} can read and modify these runs\n",
                address.host());
  }
  fmt::print("{} at http://{}:{}/ (Ctrl-C to stop)\n", printable(options.runs),
             in_address(address.host()), address.port());
  std::fflush(stdout);
  wait_for_signal();
  return ExitCode::kDone;
}

}  // namespace gallop::app
