#include <gtest/gtest.h>

#include "gallop/ui/http/event_stream.h"
#include "gallop/ui/http/guard.h"
#include "gallop/ui/http/target.h"
#include "unit/base/error_of.h"

namespace gallop::ui::http {
namespace {

TEST(Target, IsDecodedOnce) {
  const Target target = parse_target("/api/run?name=a%2Fb+c%2B&empty=&word&x=%C3%BC");
  EXPECT_EQ(target.path, "/api/run");
  EXPECT_EQ(target.query.at("name"), "a/b c+");
  EXPECT_EQ(target.query.at("empty"), "");
  EXPECT_EQ(target.query.at("word"), "");
  EXPECT_EQ(target.query.at("x"), "ü");
  EXPECT_EQ(parse_target("/a%2562").path, "/a%62");
  EXPECT_EQ(parse_target("/a+b").path, "/a+b");
  EXPECT_TRUE(parse_target("/?").query.empty());
}

TEST(Target, RejectsMaliciousTargets) {
  for (const char* text : {"",
                           "api",
                           "http://x/",
                           "*",
                           "/a#b",
                           "/a b",
                           "/\\..\\x",
                           "/..",
                           "/../etc/passwd",
                           "/a/../b",
                           "/%2e%2e/etc/passwd",
                           "/..%2fetc",
                           "/a/%2e/b",
                           "/a%00b",
                           "/a%0d%0ab",
                           "/%5c..",
                           "/a?b=%00",
                           "/a?%0a=b",
                           "/a?x=1&x=2",
                           "/a%",
                           "/a%4",
                           "/a%zz",
                           "/\x01",
                           "/\xff"}) {
    EXPECT_NE(error_of([&] { parse_target(text); }), "") << text;
  }
  // A folder of runs may have such a name.
  EXPECT_EQ(parse_target("/a?b=new%0aline%1b").query.at("b"), "new\nline\x1b");
  EXPECT_NE(error_of([] { parse_target("/a?b=" + std::string(8193, 'x')); }), "");
  EXPECT_EQ(parse_target("/a?b=" + std::string(8192, 'x')).query.at("b").size(), 8192);
}

Request get(Headers headers) {
  return {.method = "GET", .path = "/", .headers = std::move(headers)};
}

int status(const Guard& guard, const Request& request) {
  const auto fault = guard.refusal(request);
  return fault ? fault->status : 200;
}

TEST(Guard, AcceptsOnlyItsOwnNames) {
  const Guard guard(6006, {"trainer.example"});
  for (const char* host :
       {"127.0.0.1:6006", "localhost:6006", "[::1]:6006", "trainer.example:6006"}) {
    EXPECT_EQ(status(guard, get({{"host", host}})), 200) << host;
  }
  for (const char* host : {"", "localhost", "localhost:6007", "127.0.0.1:60066", "192.168.0.1:6006",
                           "evil.example:6006", "localhost.:6006", "LOCALHOST:6006 ",
                           "localhost:6006.evil.example", "127.0.0.1:6006, evil.example"}) {
    EXPECT_EQ(status(guard, get({{"host", host}})), 403) << host;
  }
  EXPECT_EQ(status(guard, get({})), 403);
  EXPECT_EQ(status(guard, get({{"host", "localhost:6006"}, {"host", "localhost:6006"}})), 403);
}

TEST(Guard, RejectsOtherOrigins) {
  const Guard guard(6006, {});
  const std::pair<std::string, std::string> host{"host", "localhost:6006"};
  EXPECT_EQ(status(guard, get({host, {"origin", "http://localhost:6006"}})), 200);
  for (const char* origin : {"null", "http://evil.example", "https://localhost:6006",
                             "http://localhost:6007", "http://localhost:6006.evil.example", ""}) {
    EXPECT_EQ(status(guard, get({host, {"origin", origin}})), 403) << origin;
  }
}

TEST(Guard, NormalizesHostNames) {
  const Guard guard(6006, {"Trainer.Example", "tunnel:7000", "fe80::1", "[::2]:7000"});
  // Browsers send lower case, whatever is typed.
  for (const char* host : {"trainer.example:6006", "TRAINER.example:6006", "LocalHost:6006",
                           "tunnel:7000", "[fe80::1]:6006", "[::2]:7000"}) {
    EXPECT_EQ(status(guard, get({{"host", host}})), 200) << host;
    EXPECT_EQ(status(guard, get({{"host", host}, {"origin", std::string("http://") + host}})), 200);
  }
  for (const char* host : {"tunnel:6006", "tunnel", "localhost:7000", "[::2]:6006", "localhost"}) {
    EXPECT_EQ(status(guard, get({{"host", host}})), 403) << host;
  }
  // Browsers omit this port.
  const Guard usual(80, {"trainer.example"});
  EXPECT_EQ(status(usual, get({{"host", "localhost"}, {"origin", "http://localhost"}})), 200);
  EXPECT_EQ(status(usual, get({{"host", "trainer.example:80"}})), 200);
  EXPECT_EQ(status(usual, get({{"host", "evil.example"}})), 403);
}

TEST(Guard, CannotBeEmbeddedByOtherSites) {
  const Guard guard(6006, {});
  const auto asked = [&](const char* site, const char* place) {
    Headers headers = {{"host", "localhost:6006"}, {"sec-fetch-site", site}};
    if (place != nullptr) headers.emplace_back("sec-fetch-dest", place);
    return status(guard, get(std::move(headers)));
  };
  EXPECT_EQ(asked("same-origin", "empty"), 200);
  EXPECT_EQ(asked("none", "document"), 200);
  EXPECT_EQ(asked("cross-site", "document"), 200);  // A link.
  for (const char* place : {"image", "script", "iframe", "empty"}) {
    EXPECT_EQ(asked("cross-site", place), 403) << place;
    EXPECT_EQ(asked("same-site", place), 403) << place;  // Another port of this machine.
  }
  EXPECT_EQ(asked("cross-site", nullptr), 403);
}

TEST(Guard, RequiresTheTokenForChanges) {
  const Guard guard(6006, {});
  const Headers right = {{"host", "localhost:6006"},
                         {"origin", "http://localhost:6006"},
                         {"x-gallop-token", guard.token()},
                         {"content-type", "application/json; charset=utf-8"}};
  const auto status_without = [&](size_t which, const char* instead) {
    Headers headers = right;
    if (instead == nullptr) {
      headers.erase(headers.begin() + static_cast<long>(which));
    } else if (which < headers.size()) {
      headers[which].second = instead;
    }
    return status(guard, {.method = "POST", .path = "/api/tag", .headers = headers});
  };
  EXPECT_EQ(status_without(4, ""), 200);
  EXPECT_EQ(status_without(0, "evil.example"), 403);
  EXPECT_EQ(status_without(1, nullptr), 403);
  EXPECT_EQ(status_without(1, "http://evil.example"), 403);
  EXPECT_EQ(status_without(2, nullptr), 403);
  EXPECT_EQ(status_without(2, ""), 403);
  EXPECT_EQ(status_without(2, Guard(6006, {}).token().c_str()), 403);
  EXPECT_EQ(status_without(3, nullptr), 400);
  EXPECT_EQ(status_without(3, "text/plain"), 400);
  EXPECT_EQ(status_without(3, "application/x-www-form-urlencoded"), 400);
  for (const char* method : {"PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get"}) {
    EXPECT_EQ(status(guard, {.method = method, .path = "/", .headers = right}), 405) << method;
  }
}

TEST(Guard, CreatesARandomToken) {
  const Guard one(1, {}), other(1, {});
  EXPECT_EQ(one.token().size(), 64);
  EXPECT_NE(one.token(), other.token());
}

TEST(EventStream, DeliversEventsAndWakesTheReader) {
  EventStream stream;
  int sleeps = 0, wakes = 0;
  stream.serve({.sleep = [&] { ++sleeps; }, .wake = [&] { ++wakes; }});
  char text[8];
  EXPECT_EQ(stream.take(text, sizeof text), 0);
  EXPECT_EQ(sleeps, 1);
  stream.send("abcdefghij");
  EXPECT_EQ(wakes, 1);
  stream.send("kl");
  EXPECT_EQ(wakes, 1);  // It is awake.
  EXPECT_EQ(stream.take(text, sizeof text), 8);
  EXPECT_EQ(std::string(text, 8), "abcdefgh");
  stream.close();
  EXPECT_EQ(stream.take(text, sizeof text), 4);
  EXPECT_EQ(std::string(text, 4), "ijkl");
  EXPECT_EQ(stream.take(text, sizeof text), -1);
  stream.send("x");
  EXPECT_EQ(stream.take(text, sizeof text), -1);
}

TEST(EventStream, EndsWithoutAReader) {
  EventStream stream;
  for (int i = 0; i < 1100 && !stream.is_closed(); ++i) stream.send(std::string(1000, 'x'));
  EXPECT_TRUE(stream.is_closed());
}

}  // namespace
}  // namespace gallop::ui::http
