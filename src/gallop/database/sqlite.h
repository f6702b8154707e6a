#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "gallop/base/file.h"

struct sqlite3;
struct sqlite3_stmt;

namespace gallop::database {

/// A connection to an SQLite file. All calls throw DataError where the file is no such file or
/// damaged, and DeviceError with the system's reason where it cannot be read or written; both name
/// the file.
class SqliteDatabase {
 public:
  /// `create`: a file that is not there is made.
  SqliteDatabase(const fs::path& path, bool create);
  /// To read it, also in a folder that cannot be written that no process writes to.
  static SqliteDatabase to_read(const fs::path& path);

  const fs::path& path() const { return path_; }
  /// Statements without results.
  void execute(const char* sql);
  /// The number that a statement without parameters gives.
  int64_t number(const char* sql);

 private:
  friend class SqliteStatement;
  SqliteDatabase(fs::path path, const std::string& name, int flags);
  [[noreturn]] void fail(const char* action) const;

  fs::path path_;
  std::unique_ptr<sqlite3, int (*)(sqlite3*)> handle_;
};

/// A statement that may be run many times: bind all its parameters, step() until there is no more
/// row. Parameters and columns are counted from 0.
class SqliteStatement {
 public:
  SqliteStatement(SqliteDatabase& database, const char* sql);

  SqliteStatement& bind(int parameter, int64_t value);
  SqliteStatement& bind(int parameter, double value);
  SqliteStatement& bind(int parameter, std::string_view text);
  SqliteStatement& bind(int parameter, const char* text) {
    return bind(parameter, std::string_view(text));
  }
  SqliteStatement& bind(int parameter, const std::string& text) {
    return bind(parameter, std::string_view(text));
  }
  SqliteStatement& bind_null(int parameter);
  /// Whether there is a row; where there is none, the statement can be run again.
  bool step();
  /// Runs a statement that gives no rows.
  void run();

  int64_t integer(int column) const;
  double real(int column) const;            ///< NaN for null, as which NaN is stored.
  std::string_view text(int column) const;  ///< Up to the next step.

 private:
  void check(int code);

  SqliteDatabase& database_;
  std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> handle_;
};

/// What is written is kept only if it is committed.
class SqliteTransaction {
 public:
  explicit SqliteTransaction(SqliteDatabase& database);
  ~SqliteTransaction();
  SqliteTransaction(const SqliteTransaction&) = delete;
  SqliteTransaction& operator=(const SqliteTransaction&) = delete;

  void commit();

 private:
  SqliteDatabase& database_;
  bool is_open_ = true;
};

}  // namespace gallop::database
