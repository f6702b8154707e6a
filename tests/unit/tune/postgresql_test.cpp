#include "gallop/tune/storage/postgresql.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/base/clock.h"
#include "gallop/base/error.h"
#include "gallop/base/socket.h"
#include "gallop/tune/storage/postgresql_connection.h"
#include "gallop/tune/tuner.h"
#include "unit/tune/postgresql_server.h"
#include "unit/tune/stored_study.h"

namespace gallop::tune {
namespace {

sockaddr_un address_of(const fs::path& path) {
  sockaddr_un address{.sun_family = AF_UNIX};
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  return address;
}

/// A proxy between client and server that can cut the connection at a commit.
class Proxy {
 public:
  enum class Cut { kNone, kBefore, kAfter };

  explicit Proxy(fs::path server) : server_(std::move(server)) {
    const sockaddr_un address = address_of(folder.path() / ".s.PGSQL.5432");
    listener_ = FileDescriptor(socket(AF_UNIX, SOCK_STREAM, 0));
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
              0);
    EXPECT_EQ(listen(listener_.get(), 5), 0);
    thread_ = std::thread([this] { serve(); });
  }
  ~Proxy() {
    ends_ = true;
    thread_.join();
  }

  TemporaryFolder folder{fs::temp_directory_path(), "gallop-pg-"};
  mutable std::atomic<Cut> cut = Cut::kNone;  ///< At the next commit, once.

 private:
  struct Pair {
    FileDescriptor client, server;
    bool is_open = true;
  };

  void serve() {
    std::vector<Pair> pairs;
    while (!ends_) {
      std::vector<pollfd> waits = {{.fd = listener_.get(), .events = POLLIN, .revents = 0}};
      for (const Pair& pair : pairs) {
        waits.push_back({.fd = pair.client.get(), .events = POLLIN, .revents = 0});
        waits.push_back({.fd = pair.server.get(), .events = POLLIN, .revents = 0});
      }
      poll(waits.data(), waits.size(), 20);
      for (size_t i = 0; i < pairs.size(); ++i) {
        if (waits[2 * i + 1].revents != 0) pass_on(pairs[i], pairs[i].client, pairs[i].server);
        if (waits[2 * i + 2].revents != 0) pass_on(pairs[i], pairs[i].server, pairs[i].client);
      }
      std::erase_if(pairs, [](const Pair& pair) { return !pair.is_open; });
      if (waits[0].revents != 0) pairs.push_back(accept_one());
    }
  }

  Pair accept_one() {
    Pair pair{FileDescriptor(accept(listener_.get(), nullptr, nullptr)),
              FileDescriptor(socket(AF_UNIX, SOCK_STREAM, 0))};
    const sockaddr_un address = address_of(server_);
    pair.is_open = connect(pair.server.get(), reinterpret_cast<const sockaddr*>(&address),
                           sizeof(address)) == 0;
    return pair;
  }

  void pass_on(Pair& pair, const FileDescriptor& from, const FileDescriptor& to) {
    if (!pair.is_open) return;
    std::string part(65536, '\0');
    const ssize_t size = recv(from.get(), part.data(), part.size(), 0);
    part.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
    const bool is_commit = &from == &pair.client && part.find("COMMIT") != std::string::npos;
    const Cut now = is_commit ? cut.exchange(Cut::kNone) : Cut::kNone;
    pair.is_open = size > 0 && now != Cut::kBefore &&
                   send(to.get(), part.data(), part.size(), MSG_NOSIGNAL) == size;
    if (now != Cut::kAfter) return;
    recv(to.get(), part.data(), 1, 0);  // The commit is done, and the answer is lost.
    pair.is_open = false;
  }

  fs::path server_;
  FileDescriptor listener_;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

class Postgresql : public testing::Test {
 protected:
  void SetUp() override {
    if (!PostgresqlServer::is_installed()) GTEST_SKIP() << "PostgreSQL is not installed";
    server = std::make_unique<PostgresqlServer>();
  }
  std::unique_ptr<PostgresqlServer> server;
};

TEST_F(Postgresql, SupportsConcurrentWriters) {
  const auto store = open_store(server->url());
  EXPECT_TRUE(store->names().empty());
  store->create(stored_settings("b"));
  store->create(stored_settings("a"));
  EXPECT_EQ(store->names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_NE(message<UsageError>([&] {
              store->create(stored_settings());
            }).find("already has a study 'a'"),
            std::string::npos);
  EXPECT_NE(message<UsageError>([&] { store->open("c"); }).find("has no study 'c'"),
            std::string::npos);

  Tuner one(store->open("a")), two(store->open("a"));
  const Trial first = one.ask("1").trial, second = two.ask("2").trial;
  EXPECT_EQ(first.number, 0);
  EXPECT_EQ(second.number, 1);
  one.set_run_folder(first, "runs/\xc3\xa4 'b'\\");
  EXPECT_EQ(two.report(first, 1, 0.5), Verdict::kGoOn);
  EXPECT_TRUE(two.tell(first, {.values = {1.0 / 3}}));
  EXPECT_TRUE(one.tell(first, {.values = {1.0 / 3}}));
  EXPECT_TRUE(two.tell(second, {.state = TrialState::kFailed, .message = "a\nb"}));
  EXPECT_TRUE(one.tell(one.ask("1").trial, {.values = {1}}));
  const Study study = store->read("a");
  EXPECT_EQ(study.finished().size(), 3u);
  EXPECT_EQ(study.trials()[0].losses, std::vector<double>{1.0 / 3});
  EXPECT_EQ(study.trials()[0].folder, "runs/\xc3\xa4 'b'\\");
  EXPECT_EQ(study.trials()[1].message, "a\nb");
  store->remove("a");
  EXPECT_NE(message<UsageError>([&] { one.ask("1"); }).find("was deleted"), std::string::npos);
  EXPECT_EQ(store->names(), std::vector<std::string>{"b"});

  PostgresqlConnection(server->url()).run("UPDATE gallop_format SET version = 2");
  EXPECT_NE(
      message<DataError>([&] { store->open("b"); }).find("created by a newer version of Gallop"),
      std::string::npos);
}

TEST_F(Postgresql, CreatesAStudyAtomically) {
  expect_first_events_or_nothing(*open_store(server->url()), [&] {
    PostgresqlConnection(server->url()).run("ALTER TABLE gallop_events ADD CHECK (number <> 1)");
  });
}

TEST_F(Postgresql, ContinuesAfterTheServerWasKilled) {
  const auto store = open_store(server->url());
  store->create(stored_settings());
  Tuner tuner(store->open("a"));
  for (int i = 0; i < 3; ++i) {
    const Trial trial = tuner.ask("w").trial;
    server->kill_and_start();
    EXPECT_EQ(tuner.heartbeat(trial), Verdict::kGoOn);
    EXPECT_TRUE(tuner.tell(trial, {.values = {1}}));
  }
  EXPECT_EQ(store->read("a").finished().size(), 3u);
}

TEST_F(Postgresql, AppliesAChangeOnceWhenTheCommitIsNotAcknowledged) {
  const Proxy proxy(server->socket());
  const auto store = open_store(server->url());
  store->create(stored_settings());
  Tuner near(store->open("a"));
  Tuner far(open_store(server->url(proxy.folder.path()))->open("a"));
  for (const Proxy::Cut cut : {Proxy::Cut::kBefore, Proxy::Cut::kAfter}) {
    near.tell(near.ask("near").trial, {.values = {1}});
    proxy.cut = cut;
    const Trial trial = far.ask("far").trial;
    EXPECT_EQ(proxy.cut, Proxy::Cut::kNone);
    proxy.cut = cut;
    EXPECT_TRUE(far.tell(trial, {.values = {2}}));
    EXPECT_EQ(proxy.cut, Proxy::Cut::kNone);
  }
  const Study study = store->read("a");
  EXPECT_EQ(study.trials().size(), 4u);
  EXPECT_EQ(study.finished(), (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(far.study().finished(), study.finished());
  // Queued, started and finished, each once.
  const PostgresqlRows events =
      PostgresqlConnection(server->url()).run("SELECT count(*) FROM gallop_events");
  EXPECT_EQ(events.integer(0, 0), 12);
}

TEST_F(Postgresql, ExpiresTrialsByTheServersClock) {
  const auto store = open_store(server->url());
  store->create(stored_settings());
  const auto storage = store->open("a");
  Tuner tuner(store->open("a"));
  const Trial trial = tuner.ask("w").trial;
  PostgresqlConnection connection(server->url());
  const auto grow_old = [&] {
    connection.run("UPDATE gallop_beats SET at = at - interval '1 hour'");
  };
  EXPECT_TRUE(storage->silent(600).empty());
  grow_old();
  // The server has just started, so no heartbeat was possible before.
  EXPECT_TRUE(storage->silent(600).empty());
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const auto silent = storage->silent(0.1);
  ASSERT_EQ(silent.size(), 1u);
  EXPECT_EQ(silent[0].trial, trial.number);
  EXPECT_EQ(silent[0].attempt, 1);
  for (const auto& sign : {std::function<void()>([&] { tuner.heartbeat(trial); }),
                           std::function<void()>([&] { tuner.report(trial, 1, 0); })}) {
    grow_old();
    sign();
    const PostgresqlRows young = connection.run(
        "SELECT count(*) FROM gallop_beats WHERE at > clock_timestamp() - interval '30 min'");
    EXPECT_EQ(young.integer(0, 0), 1);
  }
  tuner.tell(trial, {.values = {1}});
  EXPECT_EQ(connection.run("SELECT count(*) FROM gallop_beats").integer(0, 0), 0);
}

TEST_F(Postgresql, ExpiresNoWorkerBeforeAHeartbeatWasPossibleAfterAnOutage) {
  const Proxy proxy(server->socket());
  const auto store = open_store(server->url());
  store->create(stored_settings());
  const auto near = store->open("a");
  const auto far = open_store(server->url(proxy.folder.path()))->open("a");
  Tuner tuner(store->open("a"));
  const Trial trial = tuner.ask("w").trial;
  constexpr double kSeconds = 2;
  std::this_thread::sleep_for(std::chrono::duration<double>(1.1 * kSeconds));
  // On a busy machine the query may come that long after an outage.
  for (bool is_in_time = false; !is_in_time;) {
    const double begin = monotonic_seconds();
    proxy.cut = Proxy::Cut::kBefore;
    far->update([](const Event&) {},
                [] { return std::vector<Event>{{.kind = Event::Kind::kStopped}}; });
    EXPECT_EQ(proxy.cut, Proxy::Cut::kNone);
    EXPECT_EQ(near->silent(kSeconds).size(), 1u);
    const auto silent = far->silent(kSeconds);
    is_in_time = monotonic_seconds() - begin < kSeconds;
    EXPECT_TRUE(silent.empty() || !is_in_time);
  }
}

TEST_F(Postgresql, DoesNotBlockAStoppingProcess) {
  auto proxy = std::make_unique<Proxy>(server->socket());
  open_store(server->url())->create(stored_settings());
  bool goes_on = true;
  const auto store =
      open_store(server->url(proxy->folder.path()), {.goes_on = [&] { return goes_on; }});
  Tuner tuner(store->open("a"));
  const Trial trial = tuner.ask("w").trial;
  proxy.reset();
  goes_on = false;
  EXPECT_THROW(tuner.heartbeat(trial), StudyUnreachable);
}

TEST(PostgresqlAddress, TimesOutIfTheServerIsSilent) {
  int reason = 0;
  const FileDescriptor silent = listen_at(resolve("127.0.0.1", 0).front(), reason);
  const std::string url = fmt::format("postgresql://127.0.0.1:{}/x", address_of(silent).port());
  EXPECT_THROW(open_store(url, {.seconds = 0.1}), DeviceError);
}

TEST(PostgresqlAddress, IsValidatedAndPrintedWithoutItsPassword) {
  EXPECT_THROW(open_store("postgresql://host/?nonsense=1"), UsageError);
  try {
    open_store("postgresql://me:secret@localhost:1/studies");
    FAIL();
  } catch (const DeviceError& error) {
    const std::string said = error.what();
    EXPECT_NE(said.find("postgresql://localhost:1/studies cannot be reached: "), std::string::npos);
    EXPECT_NE(said.find("Connection refused"), std::string::npos) << said;
    EXPECT_EQ(said.find("secret"), std::string::npos);
  }
}

}  // namespace
}  // namespace gallop::tune
