#include "gallop/launch/rendezvous/tcp_wire.h"

#include <sys/socket.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "gallop/base/clock.h"

namespace gallop::launch {
namespace {

constexpr double kHangsSeconds = 300;

// A port on which no process listens.
Candidate free_place() {
  int reason = 0;
  const FileDescriptor socket = listen_at(resolve("127.0.0.1", 0).front(), reason);
  return {"127.0.0.1", address_of(socket).port()};
}

class TcpWires : public testing::Test {
 protected:
  using Events = std::vector<Event>;

  // The messages received until there is the expected number.
  Events hear(TcpWire& wire, size_t wanted) {
    Events events;
    for (const double end = monotonic_seconds() + kHangsSeconds;
         events.size() < wanted && monotonic_seconds() < end;) {
      for (TcpWire* one : {&server, &client}) {
        for (Event& event : one->wait(1)) {
          if (one == &wire) events.push_back(std::move(event));
        }
      }
    }
    EXPECT_EQ(events.size(), wanted);
    return events;
  }

  // A program with another protocol.
  FileDescriptor stranger() {
    int reason = 0;
    return start_to_connect(server.address(), std::nullopt, reason);
  }

  const Candidate place = free_place();
  TcpWire server{{place}, ""}, client{{place}, ""};
};

TEST_F(TcpWires, CarryMessagesBothWays) {
  ASSERT_TRUE(server.listen(0));
  const Link link = client.connect(0);
  client.send(link, Ask{});
  client.send(link, RunAt{std::string(60000, 'x')});
  const Events heard = hear(server, 2);
  EXPECT_TRUE(heard[0].incoming);
  EXPECT_TRUE(std::holds_alternative<Ask>(*heard[0].message));
  EXPECT_EQ(std::get<RunAt>(*heard[1].message).folder.size(), 60000);
  EXPECT_EQ(server.address_of(heard[0].link), "127.0.0.1");
  // All sent messages arrive before the end.
  server.send(heard[0].link, CoordinatorReply{CoordinatorPhase::kRunning});
  server.close(heard[0].link);
  const Events answer = hear(client, 2);
  EXPECT_FALSE(answer[0].incoming);
  EXPECT_EQ(std::get<CoordinatorReply>(*answer[0].message).coordinator_phase,
            CoordinatorPhase::kRunning);
  EXPECT_FALSE(answer[1].message);
}

TEST_F(TcpWires, CloseIfNoProcessListens) {
  const Link link = client.connect(0);
  client.send(link, Ask{});
  const Events heard = hear(client, 1);
  EXPECT_EQ(heard[0].link, link);
  EXPECT_FALSE(heard[0].message);
  EXPECT_NE(client.describe(0).find("Connection refused"), std::string::npos);
}

TEST_F(TcpWires, OnlyOneListensAtAnAddress) {
  ASSERT_TRUE(server.listen(0));
  EXPECT_FALSE(client.listen(0));
  server.stop_listening();
  EXPECT_TRUE(client.listen(0));
}

TEST_F(TcpWires, DoNotListenForAnotherHost) {
  TcpWire wire({{"192.0.2.1", 29400}}, "");  // An address that no host has.
  EXPECT_FALSE(wire.listen(0));
}

TEST_F(TcpWires, CloseOnInvalidMessages) {
  ASSERT_TRUE(server.listen(0));
  for (const std::string& text :
       {std::string("GET / HTTP/1.1\r\n"), std::string(200000, 'x'), std::string(1000, '\0')}) {
    const FileDescriptor other = stranger();
    const Link link = client.connect(0);
    client.send(link, Ask{});
    hear(server, 1);
    ASSERT_GT(send(other.get(), text.data(), text.size(), MSG_NOSIGNAL), 0);
    shutdown(other.get(), SHUT_WR);
    // The connection of the unknown program, which has sent no valid message.
    EXPECT_FALSE(hear(server, 1)[0].message);
    client.send(link, Leave{});
    EXPECT_TRUE(hear(server, 1)[0].message);
    client.close(link);
    hear(server, 1);
  }
}

TEST_F(TcpWires, UseTheGivenInterface) {
  TcpWire wire({place}, "lo");
  EXPECT_TRUE(wire.listen(0));
  EXPECT_THROW(TcpWire({place}, "nosuch0"), UsageError);
}

TEST(Candidates, AreReadFromText) {
  const auto all = parse_candidates("node1,10.0.0.2:29500,[fd00::1]:7,fd00::2,[::1]");
  ASSERT_EQ(all.size(), 5);
  const std::pair<const char*, int> wanted[] = {
      {"node1", 29400}, {"10.0.0.2", 29500}, {"fd00::1", 7}, {"fd00::2", 29400}, {"::1", 29400}};
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].host, wanted[i].first);
    EXPECT_EQ(all[i].port, wanted[i].second);
  }
  for (const char* text : {"", "a,", ":29400", "a:", "a:0", "a:65536", "a:x", "[::1", "[::1]7"}) {
    EXPECT_THROW(parse_candidates(text), UsageError) << text;
  }
}

}  // namespace
}  // namespace gallop::launch
