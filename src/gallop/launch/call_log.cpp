#include "gallop/launch/call_log.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "gallop/base/clock.h"
#include "gallop/base/device_error.h"
#include "gallop/base/error.h"

namespace gallop::launch {

namespace {

constexpr size_t kBytes = sizeof(Call) * CallLog::kCalls;

fs::path path_of(const fs::path& folder, int rank) { return folder / std::to_string(rank); }

template <size_t kSize>
void copy(const std::string& text, char (&to)[kSize]) {
  const size_t size = std::min(text.size(), kSize - 1);
  std::memcpy(to, text.data(), size);
  to[size] = '\0';
}

}  // namespace

CallLog::CallLog(const fs::path& folder, int rank) {
  const fs::path path = path_of(folder, rank);
  const FileDescriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file || ftruncate(file.get(), kBytes) != 0) throw_device_error(path, "create", errno);
  void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) throw_device_error(path, "create", errno);
  calls_ = static_cast<Call*>(memory);
}

CallLog::~CallLog() { munmap(calls_, kBytes); }

void CallLog::begin(int64_t number, const std::string& place, const std::string& what) {
  Call& call = slot(number);
  call = {.number = number, .began = monotonic_seconds()};
  copy(place, call.place);
  copy(what, call.what);
}

void CallLog::end(int64_t number, Call::State state) {
  Call& call = slot(number);
  if (call.number != number) return;
  call.ended = monotonic_seconds();
  call.state = state;
}

std::vector<Call> read_calls(const fs::path& folder, int rank) {
  std::string bytes;
  try {
    bytes = read_file(path_of(folder, rank), kBytes);
  } catch (const DataError&) {
    return {};
  }
  std::vector<Call> calls;
  for (size_t i = 0; (i + 1) * sizeof(Call) <= bytes.size(); ++i) {
    Call call;
    std::memcpy(&call, bytes.data() + i * sizeof(Call), sizeof(Call));
    call.place[sizeof(call.place) - 1] = call.what[sizeof(call.what) - 1] = '\0';
    if (call.number > 0) calls.push_back(call);
  }
  std::sort(calls.begin(), calls.end(), [](auto& a, auto& b) { return a.number < b.number; });
  return calls;
}

}  // namespace gallop::launch
