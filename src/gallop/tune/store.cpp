#include "gallop/tune/store.h"

#include <algorithm>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/tune/storage/postgresql.h"
#include "gallop/tune/storage/sqlite.h"

namespace gallop::tune {

namespace {

constexpr size_t kMostLetters = 100;

}  // namespace

std::unique_ptr<StudyStore> open_store(const std::string& where,
                                       [[maybe_unused]] const Patience& patience) {
  if (!is_database(where)) return open_sqlite(where);
#if GALLOP_POSTGRESQL
  return open_postgresql(where, patience);
#else
  throw UsageError("postgresql:// is not supported: Gallop was built without libpq");
#endif
}

bool is_database(const std::string& where) {
  return where.starts_with("postgresql://") || where.starts_with("postgres://");
}

bool is_study_name(const std::string& name) {
  const auto is_allowed = [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') || letter == '.' || letter == '_' || letter == '-';
  };
  return !name.empty() && name.size() <= kMostLetters && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), is_allowed);
}

void check_study_name(const std::string& name) {
  if (is_study_name(name)) return;
  throw UsageError(
      fmt::format("'{}' is not a valid study name: use at most {} letters, digits, '.', '_' and "
                  "'-', and no leading '.'",
                  printable(name), kMostLetters));
}

}  // namespace gallop::tune
