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

/// The connection went, or the server ends or begins: a new connection may do.
class PostgresqlLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What a statement gave. Rows and columns are counted from 0.
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

/// How long a server is waited for, in seconds.
struct PostgresqlPatience {
  double first = 5;    ///< Until a first connection is given up.
  double again = 180;  ///< Until one that was lost is, or the server does not begin.
  /// For an answer. Longer than the server lets anyone sit on a study's lock.
  double answer = 90;
  int handshake = 10;               ///< For one try to connect; libpq takes 1 for 2.
  std::function<bool()> goes_on{};  ///< As in Patience.
};

/// A connection to a PostgreSQL server that is made again where it goes.
class PostgresqlConnection {
 public:
  /// Throws UsageError where the address cannot be read, StudyUnreachable with the server's reason
  /// where the server cannot be reached within seconds.
  explicit PostgresqlConnection(const std::string& url, const PostgresqlPatience& patience = {});

  /// The address without a password, as "postgresql://host:5432/database".
  const std::string& place() const { return place_; }
  /// Runs statements in one message and returns what the last one gave. Throws PostgresqlLost;
  /// UsageError where there are no studies or this one is gone; DeviceError with the server's
  /// reason.
  PostgresqlRows run(const std::string& sql);
  /// As SQL.
  std::string literal(std::string_view text) const;

  /// Runs `work` and, each time it throws PostgresqlLost, connects and runs it again. Throws
  /// StudyUnreachable where there is no connection for too long.
  void keep_trying(const std::function<void()>& work);
  /// Since a connection that was lost was made again; infinite where none was.
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
