#include "unit/tune/postgresql_server.h"

#include <pwd.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include "gallop/base/clock.h"
#include "gallop/base/error.h"
#include "gallop/tune/store.h"

namespace gallop::tune {

namespace {

constexpr double kHangsSeconds = 120;

// The folder with the programs of the newest server; empty if there is none.
fs::path programs() {
  fs::path found;
  const fs::path all = "/usr/lib/postgresql";
  if (!fs::exists(all)) return found;
  for (const auto& entry : fs::directory_iterator(all)) {
    if (fs::exists(entry.path() / "bin" / "initdb")) {
      found = std::max(found, entry.path() / "bin");
    }
  }
  return found;
}

// The server refuses to run as root.
const passwd* other_user() {
  if (geteuid() != 0) return nullptr;
  const passwd* const user = getpwnam("postgres");
  return user != nullptr ? user : getpwnam("nobody");
}

}  // namespace

bool PostgresqlServer::is_installed() { return !programs().empty(); }

PostgresqlServer::PostgresqlServer() {
  if (const passwd* const user = other_user()) {
    if (chown(folder_.path().c_str(), user->pw_uid, user->pw_gid) != 0) {
      throw std::runtime_error("cannot hand the folder over");
    }
  }
  const ChildRun made = run_to_end(command(
      "initdb", {"--pgdata", data_, "--auth", "trust", "--username", "gallop", "--no-sync"}));
  if (!made.is_good()) throw std::runtime_error("initdb: " + made.output);
  start();
}

PostgresqlServer::~PostgresqlServer() {
  server_->send(SIGQUIT);
  server_->wait();
}

ChildCommand PostgresqlServer::command(const char* program,
                                       std::vector<std::string> arguments) const {
  const std::string path = programs() / program;
  const passwd* const user = other_user();
  if (user == nullptr) return {.program = path, .arguments = std::move(arguments)};
  std::vector<std::string> words = {fmt::format("--reuid={}", user->pw_uid),
                                    fmt::format("--regid={}", user->pw_gid), "--clear-groups",
                                    path};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return {.program = "setpriv", .arguments = std::move(words)};
}

// The shared memory of a killed server is in use until its processes have ended.
void PostgresqlServer::start() {
  const double until = monotonic_seconds() + kHangsSeconds;
  while (monotonic_seconds() < until) {
    ChildCommand command =
        this->command("postgres", {"-D", data_, "-k", folder_.path(), "-c",
                                   "listen_addresses=", "-c", "log_min_messages=fatal", "-F"});
    command.keep_output = true;
    server_ = std::make_unique<ChildProcess>(command);
    while (!server_->poll() && monotonic_seconds() < until) {
      try {
        open_store(url());
        return;
      } catch (const DeviceError&) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    }
  }
  throw std::runtime_error("the server does not start");
}

void PostgresqlServer::kill_and_start() {
  server_->send(SIGKILL);
  server_->wait();
  start();
}

std::string PostgresqlServer::url(const fs::path& socket_folder) const {
  return fmt::format("postgresql:///postgres?user=gallop&host={}", socket_folder.string());
}

}  // namespace gallop::tune
