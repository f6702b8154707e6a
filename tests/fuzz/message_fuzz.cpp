#include <string_view>

#include "fuzz/fuzz.h"
#include "gallop/launch/rendezvous/message.h"

using namespace gallop::launch;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto message = parse_message({reinterpret_cast<const char*>(data), size});
  if (!message) return 0;
  const std::string line = to_line(*message);
  require(line.find('\n') == std::string::npos);
  const auto again = parse_message(line);
  require(again && to_line(*again) == line);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {to_line(Join{.id = "a", .host = "b", .command = "train c"}),
          to_line(Start{.attempt = 1, .world_size = 2, .address = "::1", .run = "/r"}),
          to_line(Ended{.attempt = 1, .code = gallop::ExitCode::kData, .failure = "f"}),
          to_line(CoordinatorReply{CoordinatorPhase::kReady}), to_line(Stop{2.5})};
}
