#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "gallop/base/file.h"

struct sqlite3;
struct sqlite3_stmt;

namespace gallop::database {

/// A connection to an SQLite file. All calls throw DataError if it is not an SQLite file or
/// damaged, and DeviceError with the system's reason if it cannot be read or written; both with the
/// file's name.
class SqliteDatabase {
 public:
  /// `create`: creates a missing file.
  SqliteDatabase(const fs::path& path, bool create);
  /// Opens it for reading, even in a read-only folder if no process is writing to it.
  static SqliteDatabase to_read(const fs::path& path);

  const fs::path& path() const { return path_; }
  /// Runs statements without results.
  void execute(const char* sql);
  /// The numeric result of a statement without parameters.
  int64_t number(const char* sql);

 private:
  friend class SqliteStatement;
  SqliteDatabase(fs::path path, const std::string& name, int flags);
  [[noreturn]] void fail(const char* action) const;

  fs::path path_;
  std::unique_ptr<sqlite3, int (*)(sqlite3*)> handle_;
};

/// A statement that can be run repeatedly: bind all its parameters, then call step() until there
/// are no more rows. Parameters and columns are indexed from 0.
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
  /// Whether there is another row; after the last one, the statement can be run again.
  bool step();
  /// Runs a statement without result rows.
  void run();

  int64_t integer(int column) const;
  double real(int column) const;            ///< NaN for null, which represents NaN.
  std::string_view text(int column) const;  ///< Valid until the next step.

 private:
  void check(int code);

  SqliteDatabase& database_;
  std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> handle_;
};

/// A transaction that is rolled back unless committed.
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
