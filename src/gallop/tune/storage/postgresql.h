#pragma once

#include <memory>
#include <string>

#include "gallop/tune/store.h"

namespace gallop::tune {

/// Studies in a PostgreSQL database, in tables prefixed with "gallop_". Any number of processes may
/// open a study: each change is a transaction under the study's advisory lock. If the server
/// restarts, calls wait for it; a change whose reply was lost is looked up before it is retried.
/// Heartbeats use the server's clock, and those before its start count from its start; after an
/// outage of its own, a process gives others time for a heartbeat before it considers them silent.
/// Calls of the storages that open() returns wait for minutes regardless of `patience`. Throws the
/// errors of PostgresqlConnection.
std::unique_ptr<StudyStore> open_postgresql(const std::string& url, const Patience& patience);

}  // namespace gallop::tune
