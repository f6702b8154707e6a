#include "gallop/launch/reported_error.h"

#include <exception>
#include <system_error>

#include <fmt/format.h>

#include "gallop/launch/call_log.h"
#include "gallop/launch/world.h"

namespace gallop::launch {

namespace {

fs::path file_of(const fs::path& folder, const std::string& rank) {
  return folder / fmt::format("{}.error", rank);
}

}  // namespace

void record_error(const std::string& text) {
  const Environment environment = process_environment();
  const auto folder = environment(kCallLogsVariable), rank = environment("RANK");
  if (!folder || folder->empty() || !rank) return;
  try {
    write_file_atomically(file_of(*folder, *rank), text);
  } catch (const std::exception&) {
    // The error is then printed by each process.
  }
}

void report_error(const std::string& text, const std::function<void()>& print) {
  const bool is_rank0 = process_environment()("RANK") == "0";
  if (is_rank0) print();
  record_error(text);
  if (!is_rank0) print();
}

std::string read_error(const fs::path& folder, int rank) {
  const fs::path file = file_of(folder, std::to_string(rank));
  std::error_code ignored;
  return fs::exists(file, ignored) ? read_file(file) : "";
}

}  // namespace gallop::launch
