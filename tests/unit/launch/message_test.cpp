#include "gallop/launch/rendezvous/message.h"

#include <string>

#include <gtest/gtest.h>

namespace gallop::launch {
namespace {

TEST(Message, RoundTrips) {
  const Message all[] = {Ask{},
                         CoordinatorReply{CoordinatorPhase::kReady},
                         Join{.id = "a",
                              .host = "b\n\"",
                              .processes = 8,
                              .command = "train x",
                              .attempt = 3,
                              .restarts = 2,
                              .run = "/runs/ä"},
                         Alive{true},
                         Start{.attempt = 4,
                               .restarts = 1,
                               .first_rank = 8,
                               .world_size = 16,
                               .host_index = 1,
                               .hosts = 2,
                               .address = "::1",
                               .port = 65535,
                               .run = "/r"},
                         RunAt{"/runs/x-1"},
                         Stop{2.5},
                         Ended{.attempt = 1, .code = ExitCode::kData, .failure = "rank 1"},
                         Leave{},
                         Redirect{},
                         Finish{ExitCode::kStopped, "why"}};
  for (const Message& message : all) {
    const std::string line = to_line(message);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    const auto parsed = parse_message(line);
    ASSERT_TRUE(parsed) << line;
    EXPECT_EQ(to_line(*parsed), line);
    EXPECT_EQ(parsed->index(), message.index());
  }
  EXPECT_EQ(to_line(Ended{.attempt = 1, .code = ExitCode::kData, .failure = "x"}),
            R"({"kind":"ended","attempt":1,"code":3,"failure":"x"})");
}

TEST(Message, RejectsOtherLines) {
  for (const char* line :
       {"", "GET / HTTP/1.1", "{}", "[]", R"({"kind":"unknown"})", R"({"kind":7})",
        R"({"kind":"here"})", R"({"kind":"here","standing":3})", R"({"kind":"here","standing":-1})",
        R"({"kind":"here","standing":1.5})", R"({"kind":"here","standing":"1"})",
        R"({"kind":"here","standing":4294967296})", R"({"kind":"stop","grace":-1})",
        R"({"kind":"run","folder":7})", R"({"kind":"alive","running":1})",
        R"({"kind":"ended","attempt":0,"code":6,"failure":""})"}) {
    EXPECT_FALSE(parse_message(line)) << line;
  }
}

}  // namespace
}  // namespace gallop::launch
