#include "gallop/tune/storage/postgresql_connection.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <thread>

#include <fmt/format.h>
#include <libpq-fe.h>

#include "gallop/base/clock.h"
#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/tune/patience.h"

namespace gallop::tune {

namespace {

constexpr int kLookMilliseconds = 100;
constexpr const char* kSession =
    "SET client_min_messages = warning; SET idle_in_transaction_session_timeout = '60s'; "
    "SET default_transaction_isolation = 'read committed'";

// The first line without the server's "ERROR: ".
std::string words(const char* message) {
  std::string text = message == nullptr ? "" : message;
  text = printable(text.substr(0, text.find('\n')));
  for (const std::string_view prefix : {"ERROR:  ", "FATAL:  "}) {
    if (text.starts_with(prefix)) text.erase(0, prefix.size());
  }
  return text.empty() ? "no answer" : text;
}

std::string place_of(const std::string& url) {
  char* error = nullptr;
  const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> options(
      PQconninfoParse(url.c_str(), &error), PQconninfoFree);
  if (!options) {
    const std::string why = words(error);
    PQfreemem(error);
    throw UsageError(fmt::format("invalid address of a PostgreSQL server: {}", why));
  }
  std::map<std::string, std::string> values;
  for (const PQconninfoOption* one = options.get(); one->keyword != nullptr; ++one) {
    if (one->val != nullptr) values[one->keyword] = one->val;
  }
  const std::string port = values["port"].empty() ? "" : ":" + values["port"];
  return printable(fmt::format("postgresql://{}{}/{}", values["host"], port, values["dbname"]));
}

// libpq connection parameters.
class Parameters {
 public:
  Parameters(const std::string& url, int handshake_seconds)
      : handshake_(std::to_string(handshake_seconds)),
        values_{handshake_.c_str(), "10", "30000", "gallop", url.c_str(), "UTF8", nullptr} {}
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;

  pg_conn* connect() const {
    return PQconnectdbParams(kKeys.data(), values_.data(), /*expand_dbname=*/1);
  }
  bool is_starting() const {
    return PQpingParams(kKeys.data(), values_.data(), /*expand_dbname=*/1) == PQPING_REJECT;
  }

 private:
  // The address (dbname) comes near the end, as its parameters override those before it.
  static constexpr std::array<const char*, 7> kKeys = {"connect_timeout",
                                                       "keepalives_idle",
                                                       "tcp_user_timeout",
                                                       "application_name",
                                                       "dbname",
                                                       "client_encoding",
                                                       nullptr};

  std::string handshake_;
  std::array<const char*, kKeys.size()> values_;
};

// Transient errors: the server is starting, stopping or out of connections, or resolved a deadlock.
// SQLSTATE classes 08 and 57P, and single codes.
bool is_passing(std::string_view state) {
  constexpr std::array kStates = {"40001", "40P01", "53300", "25P03"};
  return state.starts_with("08") || state.starts_with("57P") ||
         std::find(kStates.begin(), kStates.end(), state) != kStates.end();
}

}  // namespace

PostgresqlRows::PostgresqlRows(pg_result* result) : result_(result, PQclear) {}

int PostgresqlRows::size() const { return PQntuples(result_.get()); }

std::string_view PostgresqlRows::text(int row, int column) const {
  return {PQgetvalue(result_.get(), row, column),
          static_cast<size_t>(PQgetlength(result_.get(), row, column))};
}

int64_t PostgresqlRows::integer(int row, int column) const {
  return parse_number<int64_t>(text(row, column)).value_or(-1);
}

PostgresqlConnection::PostgresqlConnection(const std::string& url,
                                           const PostgresqlPatience& patience)
    : url_(url), place_(place_of(url)), patience_(patience), handle_(nullptr, PQfinish) {
  connect_within(patience_.first);
}

bool PostgresqlConnection::connect(std::string& reason) {
  handle_.reset(Parameters(url_, handshake()).connect());
  if (PQstatus(handle_.get()) != CONNECTION_OK) {
    reason = words(PQerrorMessage(handle_.get()));
    return false;
  }
  try {
    run(kSession);
    return true;
  } catch (const PostgresqlLost& lost) {
    reason = lost.what();
    return false;
  }
}

bool PostgresqlConnection::is_starting() const {
  return Parameters(url_, handshake()).is_starting();
}

// A connection attempt cannot be interrupted; near the deadline, attempts are short.
int PostgresqlConnection::handshake() const {
  const bool ends = patience_.goes_on && !patience_.goes_on();
  return ends ? 1 : patience_.handshake;
}

void PostgresqlConnection::connect_within(double seconds) {
  Wait wait({.seconds = seconds, .goes_on = patience_.goes_on});
  Wait longer({.seconds = seconds + patience_.again, .goes_on = patience_.goes_on});
  std::chrono::milliseconds pause{20};
  for (std::string reason; !connect(reason);) {
    // A restarting server will become available.
    if (wait.is_over() && (longer.is_over() || !is_starting())) {
      throw StudyUnreachable(fmt::format("{} cannot be reached: {}", place_, reason));
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::milliseconds{1000});
  }
}

void PostgresqlConnection::keep_trying(const std::function<void()>& work) {
  Wait wait({.seconds = patience_.again, .goes_on = patience_.goes_on});
  while (true) {
    try {
      return work();
    } catch (const PostgresqlLost& lost) {
      if (wait.is_over()) {
        throw StudyUnreachable(fmt::format("{} does not answer: {}", place_, lost.what()));
      }
    }
    connect_within(wait.seconds_left());
    restored_at_ = monotonic_seconds();
  }
}

double PostgresqlConnection::seconds_since_outage() const {
  return monotonic_seconds() - restored_at_;
}

// The result of the last statement; null if the connection was lost.
pg_result* PostgresqlConnection::wait_for_result() {
  std::unique_ptr<pg_result, void (*)(pg_result*)> last(nullptr, PQclear);
  Wait wait({.seconds = patience_.answer, .goes_on = patience_.goes_on});
  while (true) {
    while (PQisBusy(handle_.get()) != 0) {
      pollfd answer{.fd = PQsocket(handle_.get()), .events = POLLIN, .revents = 0};
      poll(&answer, 1, kLookMilliseconds);
      if (PQconsumeInput(handle_.get()) == 0 || wait.is_over()) return nullptr;
    }
    pg_result* const result = PQgetResult(handle_.get());
    if (result == nullptr) return last.release();
    last.reset(result);
  }
}

PostgresqlRows PostgresqlConnection::run(const std::string& sql) {
  if (PQsendQuery(handle_.get(), sql.c_str()) == 0) {
    throw PostgresqlLost(words(PQerrorMessage(handle_.get())));
  }
  PostgresqlRows rows(wait_for_result());
  const pg_result* const result = rows.get();
  const ExecStatusType status = PQresultStatus(result);
  if (result != nullptr && (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)) return rows;
  const char* const field =
      result == nullptr ? nullptr : PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const std::string_view state = field == nullptr ? "" : field;
  const std::string why =
      words(result == nullptr ? PQerrorMessage(handle_.get()) : PQresultErrorMessage(result));
  if (state.empty() || is_passing(state) || PQstatus(handle_.get()) != CONNECTION_OK) {
    throw PostgresqlLost(why);
  }
  if (state == "42P01") throw UsageError(fmt::format("there are no studies at {}", place_));
  if (state == "23503") throw UsageError(fmt::format("{}: the study was deleted", place_));
  throw DeviceError(fmt::format("{}: {}", place_, why));
}

std::string PostgresqlConnection::literal(std::string_view text) const {
  const std::unique_ptr<char, void (*)(void*)> escaped(
      PQescapeLiteral(handle_.get(), text.data(), text.size()), PQfreemem);
  if (!escaped) throw PostgresqlLost(words(PQerrorMessage(handle_.get())));
  return escaped.get();
}

}  // namespace gallop::tune
