#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

struct pg_conn;
struct pg_result;

namespace gallop::tune {

/// The connection was lost, or the server is starting or stopping: reconnecting may help.
class PostgresqlLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The result of a statement. Rows and columns are indexed from 0.
class PostgresqlRows {
 public:
  explicit PostgresqlRows(pg_result* result);

  const pg_result* get() const { return result_.get(); }

  int size() const;
  std::string_view text(int row, int column) const;
  int64_t integer(int row, int column) const;

 private:
  std::unique_ptr<pg_result, void (*)(pg_result*)> result_;
};

/// Timeouts of a server, in seconds.
struct PostgresqlPatience {
  double first = 5;    ///< For the first connection.
  double again = 180;  ///< For reconnecting, including a restart of the server.
  /// For a reply. Longer than the server lets a session hold a study's lock.
  double answer = 90;
  int handshake = 10;               ///< For one attempt to connect; libpq treats 1 as 2.
  std::function<bool()> goes_on{};  ///< See Patience.
};

/// A connection to a PostgreSQL server that reconnects automatically.
class PostgresqlConnection {
 public:
  /// Throws UsageError if the address is invalid, StudyUnreachable with the server's reason if the
  /// server cannot be reached in time.
  explicit PostgresqlConnection(const std::string& url, const PostgresqlPatience& patience = {});

  /// The address without a password, such as "postgresql://host:5432/database".
  const std::string& place() const { return place_; }
  /// Runs statements in one round trip and returns the result of the last one. Throws
  /// PostgresqlLost; UsageError if there are no studies or this one was deleted; DeviceError with
  /// the server's reason.
  PostgresqlRows run(const std::string& sql);
  /// Quotes a text as an SQL literal.
  std::string literal(std::string_view text) const;

  /// Runs `work`, and reconnects and retries it each time it throws PostgresqlLost. Throws
  /// StudyUnreachable if reconnecting fails for too long.
  void keep_trying(const std::function<void()>& work);
  /// The time since the last reconnection; infinite if there was none.
  double seconds_since_outage() const;

 private:
  bool connect(std::string& reason);
  bool is_starting() const;
  int handshake() const;
  void connect_within(double seconds);
  pg_result* wait_for_result();

  std::string url_, place_;
  PostgresqlPatience patience_;
  std::unique_ptr<pg_conn, void (*)(pg_conn*)> handle_;
  double restored_at_ = -std::numeric_limits<double>::infinity();
};

}  // namespace gallop::tune
