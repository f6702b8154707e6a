// Writes a run's log as fast as it can, for the test that kills it.
//
//   log_program write PATH   appends records; prints the number of records after every hundred
//   log_program check PATH   prints "RECORDS DAMAGED", or the first error in their order
#include <cstdio>
#include <cstdlib>
#include <string>

#include <fmt/format.h>

#include "gallop/track/log.h"

namespace {

using namespace gallop::track;

constexpr const char* kKind = "step";

// The records are numbered from 1.
int64_t count(const Log& log) {
  int64_t last = 0;
  for (const Record& record : log.current()) {
    if (record.kind != kKind) continue;
    if (record.step != last + 1) {
      fmt::print("record {} comes after {}\n", record.step, last);
      std::exit(EXIT_FAILURE);
    }
    last = record.step;
  }
  return last;
}

void write(const std::string& path) {
  int64_t step = std::filesystem::exists(path) ? count(read_log(path)) : 0;
  LogWriter writer(path, step, {});
  for (;;) {
    writer.append(
        {.step = ++step, .kind = kKind, .values = {{"loss", 1.0 / static_cast<double>(step)}}});
    if (step % 100 != 0) continue;
    fmt::print("{}\n", step);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return EXIT_FAILURE;
  if (std::string(argv[1]) == "write") write(argv[2]);
  const Log log = read_log(argv[2]);
  fmt::print("{} {}\n", count(log), log.damaged_lines);
  return EXIT_SUCCESS;
}
