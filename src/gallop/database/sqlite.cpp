#include "gallop/database/sqlite.h"

#include <sqlite3.h>
#include <unistd.h>

#include <limits>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::database {

namespace {

// Other processes hold a lock for the duration of a transaction.
constexpr int kBusyMilliseconds = 60'000;

// Percent-encodes a path for a URI: everything but ASCII letters, digits and a few characters.
std::string percent_encoded(const std::string& text) {
  std::string encoded;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '/' || c == '.' || c == '-' || c == '_';
    encoded += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return encoded;
}

}  // namespace

SqliteDatabase::SqliteDatabase(const fs::path& path, bool create)
    : SqliteDatabase(path, path.string(),
                     SQLITE_OPEN_READWRITE | (create ? SQLITE_OPEN_CREATE : 0)) {}

SqliteDatabase SqliteDatabase::to_read(const fs::path& path) {
  const fs::path folder = fs::absolute(path).parent_path();
  // A write-ahead log exists while a process writes; otherwise SQLite would try to create one.
  const bool is_fixed = !fs::exists(path.string() + "-wal") && access(folder.c_str(), W_OK) != 0;
  if (!is_fixed) return {path, /*create=*/false};
  std::string name = "file:" + percent_encoded(fs::absolute(path).string()) + "?immutable=1";
  return {path, name, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI};
}

SqliteDatabase::SqliteDatabase(fs::path path, const std::string& name, int flags)
    : path_(std::move(path)), handle_(nullptr, sqlite3_close) {
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(name.c_str(), &handle, flags, nullptr);
  handle_.reset(handle);
  if (code != SQLITE_OK) fail("open");
  sqlite3_busy_timeout(handle, kBusyMilliseconds);
}

void SqliteDatabase::fail(const char* action) const {
  const std::string path = printable(path_.string());
  const int code = sqlite3_errcode(handle_.get()) & 0xff;
  if (code == SQLITE_NOTADB) throw DataError(fmt::format("{}: not an SQLite database", path));
  if (code == SQLITE_CORRUPT) {
    throw DataError(fmt::format("{}: damaged: {}", path, sqlite3_errmsg(handle_.get())));
  }
  if (code == SQLITE_BUSY || code == SQLITE_LOCKED) {
    throw DeviceError(
        fmt::format("{}: cannot {}: another process has it locked for too long", path, action));
  }
  const int reason = sqlite3_system_errno(handle_.get());
  throw DeviceError(
      fmt::format("{}: cannot {}: {}{}", path, action, sqlite3_errmsg(handle_.get()),
                  reason == 0 || code == SQLITE_FULL
                      ? ""
                      : fmt::format(" ({})", std::generic_category().message(reason))));
}

void SqliteDatabase::execute(const char* sql) {
  if (sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail("write");
}

int64_t SqliteDatabase::number(const char* sql) {
  SqliteStatement statement(*this, sql);
  return statement.step() ? statement.integer(0) : 0;
}

SqliteStatement::SqliteStatement(SqliteDatabase& database, const char* sql)
    : database_(database), handle_(nullptr, sqlite3_finalize) {
  sqlite3_stmt* handle = nullptr;
  const int code = sqlite3_prepare_v2(database.handle_.get(), sql, -1, &handle, nullptr);
  handle_.reset(handle);
  check(code);
}

void SqliteStatement::check(int code) {
  if (code != SQLITE_OK) database_.fail("use");
}

SqliteStatement& SqliteStatement::bind(int parameter, int64_t value) {
  check(sqlite3_bind_int64(handle_.get(), parameter + 1, value));
  return *this;
}

SqliteStatement& SqliteStatement::bind(int parameter, double value) {
  check(sqlite3_bind_double(handle_.get(), parameter + 1, value));
  return *this;
}

SqliteStatement& SqliteStatement::bind(int parameter, std::string_view text) {
  check(sqlite3_bind_text64(handle_.get(), parameter + 1, text.data(), text.size(),
                            SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}

SqliteStatement& SqliteStatement::bind_null(int parameter) {
  check(sqlite3_bind_null(handle_.get(), parameter + 1));
  return *this;
}

bool SqliteStatement::step() {
  const int code = sqlite3_step(handle_.get());
  if (code == SQLITE_ROW) return true;
  sqlite3_reset(handle_.get());
  if (code != SQLITE_DONE) database_.fail("read or write");
  return false;
}

void SqliteStatement::run() {
  while (step()) {
  }
}

int64_t SqliteStatement::integer(int column) const {
  return sqlite3_column_int64(handle_.get(), column);
}

double SqliteStatement::real(int column) const {
  return sqlite3_column_type(handle_.get(), column) == SQLITE_NULL
             ? std::numeric_limits<double>::quiet_NaN()
             : sqlite3_column_double(handle_.get(), column);
}

std::string_view SqliteStatement::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(handle_.get(), column));
  return {text, static_cast<size_t>(sqlite3_column_bytes(handle_.get(), column))};
}

SqliteTransaction::SqliteTransaction(SqliteDatabase& database) : database_(database) {
  database_.execute("BEGIN IMMEDIATE");
}

SqliteTransaction::~SqliteTransaction() {
  if (!is_open_) return;
  try {
    database_.execute("ROLLBACK");
  } catch (const Error&) {
    // A full disk may have rolled it back already.
  }
}

void SqliteTransaction::commit() {
  database_.execute("COMMIT");
  is_open_ = false;
}

}  // namespace gallop::database
