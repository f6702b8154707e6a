#pragma once

#include <memory>
#include <string>

#include "gallop/base/child_process.h"
#include "gallop/base/temporary_folder.h"

namespace gallop::tune {

/// A PostgreSQL server for a test, on a socket in a temporary folder.
class PostgresqlServer {
 public:
  static bool is_installed();

  /// Makes a database and starts the server.
  PostgresqlServer();
  ~PostgresqlServer();

  /// Kills the server at once, and starts it again.
  void kill_and_start();
  /// The address of its socket, or of another one connected to it.
  std::string url(const fs::path& socket_folder) const;
  std::string url() const { return url(folder_.path()); }
  fs::path socket() const { return folder_.path() / ".s.PGSQL.5432"; }

 private:
  ChildCommand command(const char* program, std::vector<std::string> arguments) const;
  void start();

  TemporaryFolder folder_{fs::temp_directory_path(), "gallop-pg-"};
  fs::path data_ = folder_.path() / "data";
  std::unique_ptr<ChildProcess> server_;
};

}  // namespace gallop::tune
