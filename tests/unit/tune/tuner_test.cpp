#include "gallop/tune/tuner.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/tune/optimize.h"
#include "gallop/tune/storage/memory.h"

namespace gallop::tune {
namespace {

using Kind = Event::Kind;

StudySettings settings() {
  return {.name = "test",
          .seed = 3,
          .space = Space({{"x", Interval{.low = -1, .high = 1}}}, {}),
          .objectives = {{"loss", false}},
          .trials = 4,
          .heartbeat_seconds = 10};
}

/// A study in memory with a stopped clock.
class Led {
 public:
  explicit Led(const StudySettings& settings = tune::settings(), std::vector<Event> events = {}) {
    auto owned =
        std::make_unique<MemoryStorage>(settings, std::move(events), [this] { return now; });
    storage = owned.get();
    tuner = std::make_unique<Tuner>(std::move(owned), [this] { return 1000 + now; });
  }

  Trial ask(const std::string& worker = "w") {
    const Assignment assignment = tuner->ask(worker);
    EXPECT_EQ(assignment.kind, Assignment::Kind::kTrial);
    return assignment.trial;
  }
  /// Advances time while heartbeats are processed.
  void pass(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      now += 1;
      storage->silent(0);
    }
  }
  bool complete(const Trial& trial, double value = 1) {
    return tuner->tell(trial, {.values = {value}});
  }
  const Trial& known(const Trial& trial) const {
    return tuner->study().trials().at(static_cast<size_t>(trial.number));
  }
  int64_t count(Kind kind) const {
    const auto& events = storage->events();
    return std::count_if(events.begin(), events.end(),
                         [kind](const Event& event) { return event.kind == kind; });
  }

  double now = 0;
  MemoryStorage* storage;
  std::unique_ptr<Tuner> tuner;
};

TEST(Tuner, StopsAtTheTarget) {
  StudySettings wanted = settings();
  wanted.objectives = {{"accuracy", true, 0.9}};
  wanted.limits = {{"bytes", 10}};
  Led led(wanted);
  const auto tell = [&](double accuracy, double bytes) {
    led.tuner->tell(led.ask(), {.values = {accuracy}, .limited = {bytes}});
  };
  tell(0.89, 1);
  tell(0.95, 11);  // Above a limit.
  EXPECT_FALSE(led.tuner->study().is_stopped());
  EXPECT_FALSE(led.tuner->study().has_reached_targets());
  tell(0.9, 10);
  EXPECT_TRUE(led.tuner->study().has_reached_targets());
  EXPECT_EQ(led.tuner->study().stop_reason(), "trial 2 reached the target: accuracy 0.9");
  EXPECT_EQ(led.tuner->ask("w").kind, Assignment::Kind::kDone);
  // The study can be continued.
  led.tuner->resume();
  tell(0.5, 1);
  EXPECT_FALSE(led.tuner->study().is_stopped());
}

TEST(Tuner, AssignsTheRequestedNumberOfTrials) {
  Led led;
  std::vector<Trial> trials;
  for (const char* worker : {"a", "b", "c", "d"}) trials.push_back(led.ask(worker));
  EXPECT_EQ(led.tuner->ask("e").kind, Assignment::Kind::kWait);
  for (const Trial& trial : trials) EXPECT_TRUE(led.complete(trial));
  EXPECT_EQ(led.tuner->ask("a").kind, Assignment::Kind::kDone);
  led.tuner->resume(1);
  EXPECT_EQ(led.ask("a").number, 4);
}

TEST(Tuner, ReturnsTheCurrentTrialOfAWorker) {
  Led led;
  const Trial trial = led.ask("a");
  EXPECT_EQ(led.ask("a").number, trial.number);
  EXPECT_EQ(led.ask("a").attempt, 1);
  EXPECT_NE(led.ask("b").number, trial.number);
}

TEST(Tuner, ContinuesAnExistingStudy) {
  Led undisturbed;
  for (int i = 0; i < 4; ++i) undisturbed.complete(undisturbed.ask());

  Led first;
  first.complete(first.ask());
  const Trial open = first.ask();
  Led second(settings(), first.storage->events());
  EXPECT_EQ(second.ask().number, open.number);
  EXPECT_TRUE(second.complete(open));
  for (int i = 2; i < 4; ++i) second.complete(second.ask());
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(second.tuner->study().trials()[i].point,
              undisturbed.tuner->study().trials()[i].point);
  }
}

TEST(Tuner, AppliesRepeatedResultsOnce) {
  Led led;
  const Trial trial = led.ask();
  EXPECT_TRUE(led.complete(trial, 2));
  EXPECT_TRUE(led.complete(trial, 2));  // The answer may have been lost.
  EXPECT_FALSE(led.tuner->tell(trial, {.state = TrialState::kFailed}));
  EXPECT_EQ(led.count(Kind::kFinished), 1);
  EXPECT_FALSE(led.tuner->tell({.number = 99, .attempt = 1}, {.values = {1}}));
  EXPECT_FALSE(led.tuner->tell({.number = -5, .attempt = 1}, {.values = {1}}));

  const Trial other = led.ask();
  led.tuner->report(other, 1, 0.5);
  led.tuner->report(other, 1, 0.5);
  EXPECT_EQ(led.count(Kind::kReported), 1);
}

TEST(Tuner, ReportsWhyAVanishedTrialFailed) {
  StudySettings settings = tune::settings();
  settings.attempts = 2;
  settings.failures = 1;
  Led led(settings);
  const Trial lost = led.ask("a");
  led.pass(21);
  led.ask("b");
  led.ask("c");  // Another trial, which vanishes for the first time.
  led.pass(21);
  led.tuner->requeue_silent();
  EXPECT_EQ(led.known(lost).state, TrialState::kFailed);
  EXPECT_EQ(led.tuner->study().count(TrialState::kWaiting), 1);
  EXPECT_EQ(led.tuner->study().stop_reason(),
            "1 consecutive trials failed, the last with: its worker was lost, the last of 2: "
            "b");
}

TEST(Tuner, TreatsInfinitelyGoodValuesAsNan) {
  Led led;
  const Trial trial = led.ask();
  led.tuner->report(trial, 1, -INFINITY);
  led.tuner->report(trial, 1, -INFINITY);
  const auto& reports = led.tuner->study().trials()[0].reports;
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_TRUE(std::isnan(reports[0].loss));
  EXPECT_EQ(reports[0].reported, -INFINITY);
}

TEST(Tuner, AppliesARepeatedNanReportOnce) {
  Led led;
  const Trial trial = led.ask();
  led.tuner->report(trial, 1, NAN);
  led.tuner->report(trial, 1, NAN);
  EXPECT_EQ(led.count(Kind::kReported), 1);
  EXPECT_EQ(led.known(trial).rewinds, 0);
}

TEST(Tuner, NegatesMaximizedMetrics) {
  StudySettings settings = tune::settings();
  settings.objectives = {{"accuracy", true}};
  settings.limits = {{"seconds", 10}};
  Led led(settings);
  const Trial trial = led.ask();
  led.tuner->report(trial, 5, 0.75);
  EXPECT_TRUE(led.tuner->tell(trial, {.values = {0.875}, .limited = {12}}));
  EXPECT_EQ(led.known(trial).reports[0].loss, -0.75);
  EXPECT_EQ(led.known(trial).losses, std::vector<double>{-0.875});
  EXPECT_EQ(led.known(trial).violations, std::vector<double>{2});
}

TEST(Tuner, FailsATrialWithoutFiniteValues) {
  StudySettings settings = tune::settings();
  settings.trials = 5;
  settings.limits = {{"memory", 1}};
  Led led(settings);
  const auto message = [&](const Outcome& outcome) {
    const Trial trial = led.ask();
    EXPECT_TRUE(led.tuner->tell(trial, outcome));
    EXPECT_EQ(led.known(trial).state, TrialState::kFailed);
    return led.known(trial).message;
  };
  EXPECT_EQ(message({.values = {NAN}, .limited = {0}}), "loss is nan");
  EXPECT_EQ(message({.values = {-NAN}, .limited = {0}}), "loss is nan");
  EXPECT_EQ(message({.values = {-INFINITY}, .limited = {0}}), "loss is -inf");
  EXPECT_EQ(message({.values = {1}, .limited = {NAN}}), "memory is nan");
  EXPECT_EQ(message({.values = {1}}), "got 0 values, expected 1");
}

TEST(Tuner, StopsAfterFailuresInARow) {
  StudySettings settings = tune::settings();
  settings.failures = 2;
  Led led(settings);
  led.tuner->tell(led.ask(), {.state = TrialState::kFailed, .message = "first"});
  led.complete(led.ask());
  led.tuner->tell(led.ask(), {.state = TrialState::kFailed, .message = "second"});
  led.tuner->tell(led.ask(), {.state = TrialState::kFailed, .message = "no memory"});
  const Assignment none = led.tuner->ask("w");
  EXPECT_EQ(none.kind, Assignment::Kind::kDone);
  EXPECT_EQ(none.reason, "2 consecutive trials failed, the last with: no memory");
  EXPECT_EQ(led.tuner->retry_failed(), 3);
  led.tuner->resume();
  EXPECT_EQ(led.ask().number, 0);
}

TEST(Tuner, ReassignsTheTrialOfASilentWorker) {
  Led led;
  const Trial trial = led.ask("a");
  led.tuner->set_run_folder(trial, "runs/a");
  led.pass(20);
  EXPECT_EQ(led.tuner->heartbeat(trial), Verdict::kGoOn);
  led.pass(20);
  EXPECT_NE(led.ask("b").number, trial.number);
  led.now += 0.5;
  const Trial again = led.ask("c");
  EXPECT_EQ(again.number, trial.number);
  EXPECT_EQ(again.attempt, 2);
  EXPECT_EQ(again.folder, "runs/a");
  EXPECT_EQ(led.tuner->report(trial, 1, 0), Verdict::kAbandon);
  EXPECT_EQ(led.tuner->heartbeat(trial), Verdict::kAbandon);
  EXPECT_FALSE(led.complete(trial));
  led.tuner->release(trial);
  led.tuner->set_run_folder(trial, "runs/wrong");
  EXPECT_TRUE(led.complete(again));
  EXPECT_EQ(led.known(again).folder, "runs/a");
}

TEST(Tuner, FailsATrialWhoseWorkersVanish) {
  StudySettings settings = tune::settings();
  settings.attempts = 2;
  Led led(settings);
  const Trial trial = led.ask("a");
  led.tuner->release(trial);  // Does not count.
  EXPECT_EQ(led.ask("b").number, trial.number);
  led.pass(21);
  EXPECT_EQ(led.ask("c").number, trial.number);
  led.pass(21);
  led.tuner->requeue_silent();
  EXPECT_EQ(led.known(trial).state, TrialState::kFailed);
  EXPECT_EQ(led.known(trial).message, "its worker was lost, the last of 2: c");
  EXPECT_EQ(led.known(trial).attempt, 3);
}

TEST(Tuner, IgnoresTimeInWhichItWasStopped) {
  Led led;
  const Trial trial = led.ask("a"), other = led.ask("b");
  led.pass(5);
  led.now += 1000;  // As after Ctrl-Z.
  EXPECT_EQ(led.ask("c").number, 2);
  EXPECT_EQ(led.tuner->heartbeat(other), Verdict::kGoOn);
  led.pass(16);
  EXPECT_EQ(led.ask("d").number, trial.number);
  EXPECT_EQ(led.tuner->heartbeat(other), Verdict::kGoOn);
}

TEST(Tuner, PrunesAtTheLastStep) {
  StudySettings settings = tune::settings();
  Led led(settings, {{.kind = Kind::kQueued, .trial = 0, .last_step = 10, .point = {0.5}}});
  const Trial trial = led.ask();
  EXPECT_EQ(led.tuner->report(trial, 9, 1), Verdict::kGoOn);
  EXPECT_EQ(led.tuner->report(trial, 10, 1), Verdict::kPrune);
  EXPECT_TRUE(led.tuner->tell(trial, {.state = TrialState::kPruned}));
}

TEST(Tuner, ReturnsTheFolderOfTheParent) {
  Led led(settings(), {{.kind = Kind::kQueued, .trial = 0, .point = {0.5}},
                       {.kind = Kind::kQueued, .trial = 1, .parent = 0, .point = {0.5}}});
  const Trial parent = led.ask();
  led.tuner->set_run_folder(parent, "runs/parent");
  led.complete(parent);
  EXPECT_EQ(led.tuner->ask("w").parent_folder, "runs/parent");
}

TEST(Tuner, RecordsTheSourceOfSharedSteps) {
  Led led;
  const Trial first = led.ask("a"), second = led.ask("b");
  for (int again = 0; again < 2; ++again) led.tuner->share(second, first.number, 40);
  EXPECT_EQ(led.count(Kind::kShared), 1);
  EXPECT_EQ(led.known(second).shared_with, first.number);
  EXPECT_EQ(led.known(second).shared_steps, 40);
  EXPECT_EQ(led.known(first).shared_with, -1);
  // With itself, with one that there is not, no step, and by who has it no more.
  led.tuner->share(first, first.number, 40);
  led.tuner->share(first, 7, 40);
  led.tuner->share(first, second.number, 0);
  led.complete(first);
  led.tuner->share(first, second.number, 40);
  EXPECT_EQ(led.count(Kind::kShared), 1);
  EXPECT_EQ(led.tuner->study().shared_steps(), 40);
  const Led next(settings(), led.storage->events());
  EXPECT_EQ(next.known(second).shared_with, first.number);
}

TEST(Tuner, StartsWithQueuedPoints) {
  Led led;
  led.tuner->enqueue({{0.25}, {0.5}});
  EXPECT_THROW(led.tuner->enqueue({{2}}), UsageError);
  EXPECT_EQ(led.ask("a").point, Point{0.25});
  EXPECT_EQ(led.ask("b").point, Point{0.5});
  led.ask("c");
  led.ask("d");
  EXPECT_EQ(led.tuner->ask("e").kind, Assignment::Kind::kWait);
}

TEST(Tuner, ReportsInvalidSettings) {
  const auto message = [](const char* sampler, const char* pruner) -> std::string {
    StudySettings settings = tune::settings();
    settings.sampler = sampler;
    settings.pruner = pruner;
    try {
      Led led(settings);
    } catch (const UsageError& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_NE(message(R"({"name": "rndom"})", "{}").find("unknown sampler 'rndom'"),
            std::string::npos);
  EXPECT_NE(message("{}", R"({"name": "none", "x": 1})").find("pruner:1:18: x"), std::string::npos);
  EXPECT_EQ(message(R"({"name": "random"})", R"({"name": "none"})"), "");
}

TEST(Optimize, FindsASmallLoss) {
  StudySettings settings = tune::settings();
  settings.trials = 50;
  Tuner tuner(std::make_unique<MemoryStorage>(settings));
  optimize(tuner, [](Evaluation& evaluation) {
    const double x = evaluation.number("x");
    if (evaluation.trial().number == 7) throw std::runtime_error("no luck");
    EXPECT_TRUE(evaluation.report(1, x));
    return std::vector<double>{x * x};
  });
  const Study& study = tuner.study();
  EXPECT_EQ(study.finished().size(), 50u);
  EXPECT_EQ(study.trials()[7].message, "no luck");
  ASSERT_TRUE(study.best());
  EXPECT_LT(study.trials()[static_cast<size_t>(*study.best())].losses[0], 0.01);
}

TEST(Optimize, ReportsPrunedTrials) {
  auto storage = std::make_unique<MemoryStorage>(
      settings(),
      std::vector<Event>{{.kind = Kind::kQueued, .trial = 0, .last_step = 3, .point = {0.5}}});
  Tuner tuner(std::move(storage));
  std::vector<int64_t> steps;
  optimize(tuner, [&](Evaluation& evaluation) {
    for (int64_t step = 1; step <= 5; ++step) {
      if (evaluation.trial().number == 0) steps.push_back(step);
      if (!evaluation.report(step, 1)) break;
    }
    return std::vector<double>{1};
  });
  EXPECT_EQ(steps, (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(tuner.study().trials()[0].state, TrialState::kPruned);
  EXPECT_EQ(tuner.study().trials()[1].state, TrialState::kComplete);
}

TEST(Optimize, ReturnsChoicesAsText) {
  StudySettings settings = tune::settings();
  settings.space =
      Space({{"act", Choices{{"\"relu\"", "\"gelu\""}}}, {"width", Choices{{"64"}}}}, {});
  Tuner tuner(std::make_unique<MemoryStorage>(settings));
  optimize(tuner, [](Evaluation& evaluation) {
    const std::string act = evaluation.text("act");
    EXPECT_TRUE(act == "relu" || act == "gelu");
    EXPECT_EQ(evaluation.number("width"), 64);
    EXPECT_THROW(evaluation.number("act"), UsageError);
    EXPECT_THROW(evaluation.number("depth"), UsageError);
    return std::vector<double>{0};
  });
  EXPECT_EQ(tuner.study().count(TrialState::kComplete), 4);
}

}  // namespace
}  // namespace gallop::tune
