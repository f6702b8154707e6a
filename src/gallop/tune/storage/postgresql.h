#pragma once

#include <memory>
#include <string>

#include "gallop/tune/store.h"

namespace gallop::tune {

/// Studies in a PostgreSQL database, in tables whose names begin with "gallop_". Any number of
/// processes may open a study: each change is a transaction under the study's advisory lock. Where
/// the server restarts, calls wait for it; a change whose end was not heard is looked for before it
/// is made again. Signs of life are kept by the server's clock, and those from before it started
/// count from its start; whoever could not reach it does not judge others by theirs until they had
/// time to give one. Calls of what open() gives wait for minutes whatever `patience` says. Throws
/// what PostgresqlConnection does.
std::unique_ptr<StudyStore> open_postgresql(const std::string& url, const Patience& patience);

}  // namespace gallop::tune
