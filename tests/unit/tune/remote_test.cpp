#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/base/socket.h"
#include "gallop/base/temporary_folder.h"
#include "gallop/tune/optimize.h"
#include "gallop/tune/remote/coordinator.h"
#include "gallop/tune/remote/remote_study_client.h"
#include "gallop/tune/store.h"
#include "unit/tune/stored_study.h"

namespace gallop::tune {
namespace {

/// A coordinator that serves in its own thread during its lifetime.
class Serving {
 public:
  Serving(StudyStore& store, const fs::path& address_file)
      : thread_([this, &store, address_file] { serve(store, address_file); }) {
    while (!is_ready_) std::this_thread::yield();
  }
  ~Serving() {
    ends_ = true;
    thread_.join();
  }

 private:
  void serve(StudyStore& store, const fs::path& address_file) {
    Tuner tuner(store.open("a"));
    Coordinator coordinator(tuner, {.address_file = address_file});
    is_ready_ = true;
    while (!ends_) coordinator.serve(5);
  }

  std::atomic<bool> is_ready_ = false, ends_ = false;
  std::thread thread_;
};

class Remote : public testing::Test {
 protected:
  Remote() { store->create(stored_settings("a", 60)); }
  RemoteStudyClient worker(double patience_seconds = 60) {
    return RemoteStudyClient([this] { return read_address(address); },
                             {.seconds = patience_seconds});
  }
  /// With a short timeout that suffices for the first answer of a busy machine.
  RemoteStudyClient impatient_worker() {
    for (double seconds = 0.2;; seconds *= 2) {
      try {
        return worker(seconds);
      } catch (const StudyUnreachable&) {
      }
    }
  }
  /// The answer to a line without authentication; empty if the connection is closed.
  std::string answer_to(const std::string& text) {
    const RemoteAddress at = read_address(address);
    const SocketAddress where = resolve(at.host, at.port).front();
    const FileDescriptor socket(::socket(where.storage.ss_family, SOCK_STREAM, 0));
    EXPECT_EQ(connect(socket.get(), reinterpret_cast<const sockaddr*>(&where.storage), where.size),
              0);
    send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
    std::string all(4096, '\0');
    const ssize_t size = recv(socket.get(), all.data(), all.size(), 0);
    all.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
    return all;
  }

  TemporaryFolder folder{fs::temp_directory_path(), "gallop-remote-"};
  std::unique_ptr<StudyStore> store = open_store((folder.path() / "studies.db").string());
  fs::path address = folder.path() / "address";
};

TEST_F(Remote, ServesWorkers) {
  const Serving serving(*store, address);
  std::vector<std::thread> threads;
  for (const char* name : {"a", "b", "c"}) {
    threads.emplace_back([this, name] {
      RemoteStudyClient client = worker();
      EXPECT_EQ(to_json(client.settings()), to_json(stored_settings("a", 60)));
      optimize(
          client,
          [](Evaluation& evaluation) {
            const double x = evaluation.number("x");
            if (evaluation.trial().number % 10 == 3) return std::vector<double>{NAN};
            EXPECT_TRUE(evaluation.report(1, evaluation.trial().number % 10 == 4 ? NAN : x));
            EXPECT_TRUE(evaluation.heartbeat());
            return std::vector<double>{x * x};
          },
          name);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Study study = store->read("a");
  EXPECT_EQ(study.finished().size(), 60u);
  EXPECT_EQ(study.count(TrialState::kComplete), 54);
  EXPECT_EQ(study.trials()[3].message, "loss is nan");
  EXPECT_TRUE(std::isnan(study.trials()[4].reports[0].loss));
  EXPECT_EQ(study.trials()[5].losses[0], study.trials()[5].point[0] * study.trials()[5].point[0]);
}

TEST_F(Remote, ReportsTheSourceOfSharedSteps) {
  const Serving serving(*store, address);
  RemoteStudyClient client = worker();
  const Trial first = client.ask("a").trial, second = client.ask("b").trial;
  for (int again = 0; again < 2; ++again) client.share(second, first.number, 40);
  const Study study = store->read("a");
  EXPECT_EQ(study.trials()[static_cast<size_t>(second.number)].shared_with, first.number);
  EXPECT_EQ(study.shared_steps(), 40);
}

TEST_F(Remote, TransfersAWholeStudy) {
  const Serving serving(*store, address);
  RemoteStudyClient client = worker();
  EXPECT_TRUE(client.study().trials().empty());
  optimize(
      client,
      [](Evaluation& evaluation) {
        for (int step = 1; step <= 20; ++step) evaluation.report(step, 1.0 / step);
        return std::vector<double>{evaluation.number("x")};
      },
      "a");
  const Study wanted = store->read("a"), found = client.study();
  // Including reports, more events than fit into one answer.
  ASSERT_EQ(found.trials().size(), 60U);
  for (size_t i = 0; i < found.trials().size(); ++i) {
    const Trial &a = found.trials()[i], &b = wanted.trials()[i];
    EXPECT_EQ(a.state, b.state);
    EXPECT_EQ(a.point, b.point);
    EXPECT_EQ(a.losses, b.losses);
    EXPECT_EQ(a.reports.size(), 20U);
    EXPECT_EQ(a.started, b.started);
  }
}

TEST_F(Remote, AppliesRepeatedControlRequestsOnce) {
  const Serving serving(*store, address);
  RemoteStudyClient client = worker();
  const Trial trial = client.ask("w").trial;
  EXPECT_TRUE(client.tell(trial, {.state = TrialState::kFailed, .message = "no disk"}));
  for (int again = 0; again < 2; ++again) {
    client.control({.kind = Control::Kind::kStop, .reason = "enough"});
  }
  EXPECT_EQ(store->read("a").stop_reason(), "enough");
  EXPECT_EQ(client.ask("w").kind, Assignment::Kind::kDone);
  for (int again = 0; again < 2; ++again) {
    client.control({.kind = Control::Kind::kResume, .wanted = 70});
  }
  EXPECT_EQ(store->read("a").wanted_trials(), 70);
  for (int again = 0; again < 2; ++again) client.control({.kind = Control::Kind::kRetry});
  EXPECT_EQ(store->read("a").count(TrialState::kWaiting), 1);
  EXPECT_EQ(client.ask("w").trial.number, trial.number);
}

TEST_F(Remote, ContinuesWithTheNextCoordinator) {
  auto serving = std::make_unique<Serving>(*store, address);
  RemoteStudyClient client = worker();
  const Trial trial = client.ask("w").trial;
  client.set_run_folder(trial, "runs/0");
  const RemoteAddress before = read_address(address);
  serving.reset();
  serving = std::make_unique<Serving>(*store, address);
  EXPECT_EQ(read_address(address).token, before.token);
  EXPECT_EQ(client.ask("w").trial.number, trial.number);  // The first answer may have been lost.
  serving.reset();
  serving = std::make_unique<Serving>(*store, address);
  EXPECT_TRUE(client.tell(trial, {.values = {1}}));
  serving.reset();
  serving = std::make_unique<Serving>(*store, address);
  EXPECT_TRUE(client.tell(trial, {.values = {1}}));
  const Trial next = client.ask("w").trial;
  EXPECT_EQ(next.number, 1);
  client.release(next);
  EXPECT_EQ(client.heartbeat(next), Verdict::kAbandon);
  EXPECT_EQ(store->read("a").finished(), std::vector<int64_t>{0});
}

TEST_F(Remote, TimesOutWithoutACoordinator) {
  EXPECT_THROW(worker(0.1), DeviceError);
  auto serving = std::make_unique<Serving>(*store, address);
  RemoteStudyClient client = impatient_worker();
  serving.reset();
  try {
    client.ask("w");
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("the study's coordinator at 127.0.0.1 port"),
              std::string::npos);
  }
}

TEST_F(Remote, StopsWaitingOnRequest) {
  auto serving = std::make_unique<Serving>(*store, address);
  bool goes_on = true;
  RemoteStudyClient client([this] { return read_address(address); },
                           {.seconds = 1e9, .goes_on = [&] { return goes_on; }});
  goes_on = false;
  EXPECT_EQ(client.ask("w").kind, Assignment::Kind::kTrial);
  serving.reset();
  EXPECT_THROW(client.ask("w"), StudyUnreachable);
}

TEST_F(Remote, WaitsIfAnotherStudyIsServedAtTheOldAddress) {
  const Serving serving(*store, address);
  RemoteAddress wrong = read_address(address);
  wrong.token = std::string(32, '0');
  int looks = 0;
  RemoteStudyClient client([&] { return looks++ == 0 ? wrong : read_address(address); });
  EXPECT_EQ(looks, 2);
  EXPECT_EQ(client.ask("w").kind, Assignment::Kind::kTrial);
}

TEST_F(Remote, RequiresTheToken) {
  const Serving serving(*store, address);
  struct stat info {};
  ASSERT_EQ(stat(address.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  RemoteAddress wrong = read_address(address);
  wrong.token = std::string(32, '0');
  std::string text = "no answer";
  for (double seconds = 0.1; text.ends_with("no answer"); seconds *= 2) {
    text = message<StudyUnreachable>(
        [&] { RemoteStudyClient([&] { return wrong; }, {.seconds = seconds}); });
  }
  EXPECT_NE(text.find("another study uses this address"), std::string::npos) << text;
  EXPECT_NE(answer_to(to_line(Request(AskRequest{"w"})) + "\n").find("refused"), std::string::npos);
  EXPECT_TRUE(store->read("a").trials().empty());
}

TEST_F(Remote, IgnoresInvalidMessages) {
  const Serving serving(*store, address);
  const std::string hello = to_line(Request(HelloRequest{.token = read_address(address).token}));
  for (const std::string& text :
       {std::string("nonsense\n"), std::string("\n\n"), std::string("{}\n"),
        std::string(100'000, '['), std::string("\0\xff\n", 3),
        hello + "\n" + hello + "\nnonsense\n", hello + "\n" + std::string(2 << 20, 'x'),
        hello + "\n" + to_line(Request(TellRequest{{99, 1}, {.values = {1}}})) + "\n",
        hello + "\n" + to_line(Request(SetRunFolderRequest{{int64_t{1} << 62, 1}, "x"})) + "\n"}) {
    answer_to(text);
  }
  RemoteStudyClient client = worker();
  EXPECT_EQ(client.ask("w").trial.number, 0);
}

TEST_F(Remote, ReportsErrorsOfTheStudyToWorkers) {
  StudySettings impossible = stored_settings("a", 60);
  impossible.space = Space({{"x", Interval{}}}, {"x > 2"});
  store->remove("a");
  store->create(impossible);
  const Serving serving(*store, address);
  RemoteStudyClient client = worker();
  try {
    client.ask("w");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("points in a row"), std::string::npos);
  }
  EXPECT_EQ(client.heartbeat({}), Verdict::kAbandon);
}

}  // namespace
}  // namespace gallop::tune
