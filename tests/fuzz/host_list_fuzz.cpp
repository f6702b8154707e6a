#include <string_view>

#include "fuzz/fuzz.h"
#include "gallop/base/error.h"
#include "gallop/launch/host_list.h"

using namespace gallop;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    for (const std::string& host : launch::parse_host_list(text)) {
      require(!host.empty() && host.size() <= 255);
      require(host.find_first_of(",[]") == std::string::npos);
    }
  } catch (const UsageError&) {
  }
  try {
    for (const int tasks : launch::parse_tasks_per_node(text)) require(tasks >= 0);
  } catch (const UsageError&) {
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {"login,gpu[07-09,12],x", "r[1-2]n[1-2]-ib", "a[0-9999]", "4(x3),2", "2"};
}
