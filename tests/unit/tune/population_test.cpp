#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/tune/lineage.h"
#include "gallop/tune/storage/memory.h"
#include "gallop/tune/tuner.h"
#include "unit/tune/build.h"
#include "unit/tune/test_study.h"

namespace gallop::tune {
namespace {

/// Weights and the step to which they were trained.
struct Checkpoint {
  int64_t step = 0;
  std::vector<double> weights{};
};

/// A resumable training: one step, and the metric to maximize.
struct Toy {
  std::vector<double> start;
  void (*train)(std::vector<double>& weights, const Point& point, Random& random);
  double (*metric)(const std::vector<double>& weights);
};

/// Figure 2 of Jaderberg et al., 2017: ascends 1.2 - h0 w0^2 - h1 w1^2 where 1.2 - w0^2 - w1^2 is
/// wanted.
const Toy kSurrogate{.start = {0.9, 0.9},
                     .train =
                         [](std::vector<double>& weights, const Point& point, Random&) {
                           for (size_t i = 0; i < 2; ++i)
                             weights[i] -= 0.02 * 2 * point[i] * weights[i];
                         },
                     .metric =
                         [](const std::vector<double>& weights) {
                           return 1.2 - weights[0] * weights[0] - weights[1] * weights[1];
                         }};

/// Descent of a quadratic with noise in its gradient: a large rate gets near, a small one nearer.
const Toy kNoisy{.start = std::vector<double>(20, 10.0),
                 .train =
                     [](std::vector<double>& weights, const Point& point, Random& random) {
                       for (double& weight : weights) {
                         weight -= point[0] * (weight + 3 * random.normal());
                       }
                     },
                 .metric =
                     [](const std::vector<double>& weights) {
                       double sum = 0;
                       for (const double weight : weights) sum += weight * weight;
                       return -sum / static_cast<double>(weights.size());
                     }};

/// Workers that train a study's trials in turn, save, and may die at any moment.
class Workers {
 public:
  Workers(const StudySettings& settings, const Toy& toy, uint64_t seed, double kills, size_t count)
      : toy_(toy), random_(seed, 0), kills_(kills) {
    auto owned =
        std::make_unique<MemoryStorage>(settings, std::vector<Event>(), [this] { return now_; });
    tuner = std::make_unique<Tuner>(std::move(owned), [this] { return now_; });
    workers_.resize(count);
  }

  void run() {
    bool is_done = false;
    while (!is_done) {
      now_ += 1;
      Worker& worker = workers_[random_.below(workers_.size())];
      if (random_.uniform() < kills_) {
        worker = {.name = fmt::format("worker {}", ++names_)};
        if (random_.uniform() < 0.5) be_silent();
      } else if (!worker.trial) {
        is_done = !ask(worker) && tuner->study().running().empty();
      } else {
        step(worker);
      }
    }
  }

  const Study& study() const { return tuner->study(); }
  /// The start of the training of a trial.
  const std::map<int64_t, int64_t>& first_steps() const { return first_steps_; }

  std::unique_ptr<Tuner> tuner;

 private:
  struct Worker {
    std::string name = "worker 0";
    std::optional<Trial> trial{};
    Checkpoint training{};
  };

  /// For longer than is borne, while the study is looked after.
  void be_silent() {
    for (int i = 0; i < 3; ++i) {
      now_ += 10;
      tuner->requeue_silent();
    }
  }

  bool ask(Worker& worker) {
    if (worker.name == "worker 0") worker.name = fmt::format("worker {}", ++names_);
    const Assignment assignment = tuner->ask(worker.name);
    if (assignment.kind != Assignment::Kind::kTrial) {
      return assignment.kind == Assignment::Kind::kWait;
    }
    worker.trial = assignment.trial;
    const std::string own = fmt::format("trial {}", assignment.trial.number);
    if (saved_.count(own) > 0) {
      worker.training = saved_.at(own);
      if (worker.training.step == assignment.trial.last_step) tell(worker);
      return true;
    }
    worker.training = {.weights = toy_.start};
    if (assignment.trial.parent >= 0) worker.training = saved_.at(assignment.parent_folder);
    first_steps_[assignment.trial.number] = worker.training.step;
    tuner->set_run_folder(assignment.trial, own);
    return true;
  }

  void step(Worker& worker) {
    Random random(study().seed(), worker.trial->number,
                  1000 + static_cast<uint32_t>(worker.training.step));
    toy_.train(worker.training.weights, worker.trial->point, random);
    ++worker.training.step;
    const double metric = toy_.metric(worker.training.weights);
    const Verdict verdict = tuner->report(*worker.trial, worker.training.step, metric);
    if (verdict == Verdict::kGoOn && random_.uniform() < 0.5) return;
    if (verdict != Verdict::kAbandon) {
      saved_[fmt::format("trial {}", worker.trial->number)] = worker.training;
    }
    if (verdict == Verdict::kPrune) {
      if (random_.uniform() < kills_) {
        worker = {};  // Just before it reports the result.
        return;
      }
      tell(worker);
    } else if (verdict == Verdict::kAbandon) {
      worker.trial.reset();
    }
  }

  void tell(Worker& worker) {
    tuner->tell(*worker.trial, {.state = TrialState::kPruned});
    worker.trial.reset();
  }

  const Toy& toy_;
  Random random_;
  double kills_, now_ = 0;
  int names_ = 0;
  std::vector<Worker> workers_;
  std::map<std::string, Checkpoint> saved_;
  std::map<int64_t, int64_t> first_steps_;
};

StudySettings population_settings(const std::string& options, int64_t trials, uint64_t seed = 1,
                                  const std::string& sampler = "pbt") {
  StudySettings settings{.name = "test",
                         .seed = seed,
                         .space = Space({{"h0", Interval{}}, {"h1", Interval{}}}, {}),
                         .objectives = {{"quality", true}},
                         .sampler = "{name: " + sampler + ", " + options + "}",
                         .trials = trials,
                         .attempts = 1000};
  return settings;
}

/// Invariants of each population, after any faults of its workers.
void check_population(const Workers& workers, int64_t members, int64_t interval, int64_t last) {
  const auto& trials = workers.study().trials();
  std::map<int32_t, const Trial*> latest;
  for (const Trial& trial : trials) {
    EXPECT_EQ(trial.state, TrialState::kComplete);
    EXPECT_TRUE(workers.study().space().contains(trial.point));
    const Trial* const parent =
        trial.parent < 0 ? nullptr : &trials[static_cast<size_t>(trial.parent)];
    const int64_t first = parent == nullptr ? 0 : parent->last_step;
    EXPECT_EQ(trial.last_step, std::min(first + interval, last));
    EXPECT_EQ(workers.first_steps().at(trial.number), first);
    EXPECT_EQ(trial.reports.front().step, first + 1);
    EXPECT_EQ(trial.reports.back().step, trial.last_step);
    if (parent != nullptr && parent->member == trial.member) {
      // Its own training, which no other trial of the member takes up again.
      EXPECT_EQ(latest.at(trial.member), parent);
      EXPECT_EQ(trial.point, parent->point);
    }
    latest[trial.member] = &trial;
  }
  ASSERT_EQ(latest.size(), static_cast<size_t>(members));
  for (const auto& [member, trial] : latest) EXPECT_EQ(trial->last_step, last) << member;
}

TEST(Pbt, LosesNoMemberWhenWorkersDie) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    for (const bool synchronous : {false, true}) {
      const StudySettings settings = population_settings(
          fmt::format("population: 5, interval: 4, last: 18, synchronous: {}", synchronous), 200,
          seed);
      Workers workers(settings, kSurrogate, seed, /*kills=*/0.05, /*count=*/3);
      workers.run();
      check_population(workers, 5, 4, 18);
      if (synchronous) {
        EXPECT_EQ(workers.study().trials().size(), 25u);
      }
      int32_t vanished = 0;
      for (const Trial& trial : workers.study().trials()) vanished += trial.vanished;
      EXPECT_GT(vanished, 0);
    }
  }
}

TEST(Pbt, ComparesMembersOfOneGenerationIfSynchronous) {
  const StudySettings settings =
      population_settings("population: 6, interval: 5, last: 40, synchronous: true", 100);
  Workers workers(settings, kSurrogate, 3, /*kills=*/0, /*count=*/4);
  workers.run();
  check_population(workers, 6, 5, 40);
  const auto& trials = workers.study().trials();
  int exploited = 0;
  for (const Trial& trial : trials) {
    if (trial.parent < 0) continue;
    const Trial& parent = trials[static_cast<size_t>(trial.parent)];
    if (parent.member == trial.member) continue;
    ++exploited;
    // The member's own last segment, and how many of that generation were better or worse.
    int better_than_parent = 0, worse_than_own = 0;
    const auto same = [&](const Trial& other) { return other.last_step == parent.last_step; };
    const auto own = std::find_if(trials.begin(), trials.end(), [&](const Trial& other) {
      return same(other) && other.member == trial.member;
    });
    ASSERT_NE(own, trials.end());
    for (const Trial& other : trials) {
      if (!same(other)) continue;
      better_than_parent += other.losses[0] < parent.losses[0] ? 1 : 0;
      worse_than_own += other.losses[0] > own->losses[0] ? 1 : 0;
    }
    EXPECT_LT(better_than_parent, 2);  // ceil(0.25 * 6)
    EXPECT_LT(worse_than_own, 2);
  }
  EXPECT_EQ(exploited, 14);  // Two in each of the seven generations that follow another.
}

TEST(Pbt, SolvesTheExampleOfItsPaper) {
  const StudySettings settings = population_settings("population: 4, interval: 4, last: 200", 400);
  Workers workers(settings, kSurrogate, 5, /*kills=*/0, /*count=*/4);
  workers.tuner->enqueue({{1, 0}, {0, 1}, {1, 0}, {0, 1}});
  workers.run();
  check_population(workers, 4, 4, 200);
  // Any of the four points alone gets no further than 1.2 - 0.9^2.
  const Study& study = workers.study();
  const int64_t best = study.best().value();
  EXPECT_LT(study.trials()[static_cast<size_t>(best)].losses[0], -1.19);

  // Trained again by its lineage, the weights are the same.
  std::vector<double> weights = kSurrogate.start;
  Random random(1, 0);
  int64_t step = 0;
  for (const Segment& segment : lineage(study, best)) {
    EXPECT_EQ(segment.first_step, step);
    for (; step < segment.last_step; ++step) kSurrogate.train(weights, segment.point, random);
  }
  EXPECT_EQ(step, study.trials()[static_cast<size_t>(best)].last_step);
  EXPECT_DOUBLE_EQ(-kSurrogate.metric(weights),
                   study.trials()[static_cast<size_t>(best)].losses[0]);
}

double best_of_random_search(const StudySettings& settings, const Toy& toy, int64_t trainings,
                             int64_t steps) {
  double best = -INFINITY;
  for (int64_t number = 0; number < trainings; ++number) {
    Random random(settings.seed, number);
    const Point point = random_point(settings.space, random);
    std::vector<double> weights = toy.start;
    for (int64_t step = 0; step < steps; ++step) toy.train(weights, point, random);
    best = std::max(best, toy.metric(weights));
  }
  return best;
}

int wins_over_random_search(const std::string& sampler, int seeds) {
  int wins = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    StudySettings settings = population_settings("population: 8, interval: 10, last: 100", 200,
                                                 static_cast<uint64_t>(seed), sampler);
    settings.space = Space({{"rate", Interval{.low = 1e-3, .high = 1, .scale = Scale::kLog}}}, {});
    Workers workers(settings, kNoisy, settings.seed, /*kills=*/0, /*count=*/4);
    workers.run();
    int64_t steps = 0;
    for (const Trial& trial : workers.study().trials()) {
      steps += static_cast<int64_t>(trial.reports.size());
    }
    const int64_t best = workers.study().best().value();
    const double found = -workers.study().trials()[static_cast<size_t>(best)].losses[0];
    wins += found > best_of_random_search(settings, kNoisy, (steps + 99) / 100, 100) ? 1 : 0;
  }
  return wins;
}

TEST(Pbt, OutperformsRandomSearchOfTheSameSteps) {
  EXPECT_GE(wins_over_random_search("pbt", 20), 15);
}

TEST(Pb2, OutperformsRandomSearchOfTheSameSteps) {
  EXPECT_GE(wins_over_random_search("pb2", 8), 6);
}

TEST(Pb2, LosesNoMemberWhenWorkersDie) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const StudySettings settings =
        population_settings("population: 4, interval: 4, last: 18", 200, seed, "pb2");
    Workers workers(settings, kSurrogate, seed, /*kills=*/0.05, /*count=*/3);
    workers.run();
    check_population(workers, 4, 4, 18);
  }
}

// The loss of a segment depends on the squared distance of the rate from 0.8.
TEST(Pb2, SelectsOptionsThatLoweredTheLossMost) {
  int near = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    StudySettings settings =
        population_settings("population: 8, interval: 1, last: 12", 200, seed, "pb2");
    settings.space = Space({{"rate", Interval{}}}, {});
    const Toy toy{.start = {0},
                  .train = [](std::vector<double>& weights, const Point& point,
                              Random&) { weights[0] += 1 - (point[0] - 0.8) * (point[0] - 0.8); },
                  .metric = [](const std::vector<double>& weights) { return weights[0]; }};
    Workers workers(settings, toy, seed, /*kills=*/0, /*count=*/4);
    workers.run();
    const auto segments = lineage(workers.study(), workers.study().best().value());
    near += std::abs(segments.back().point[0] - 0.8) < 0.1 ? 1 : 0;
  }
  EXPECT_GE(near, 8);
}

// A rate beyond 0.8 ends the training, and those below are the better the higher they are.
TEST(Pb2, LearnsFromFailedSegments) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    StudySettings settings =
        population_settings("population: 8, interval: 1, last: 12", 300, seed, "pb2");
    settings.space = Space({{"rate", Interval{}}}, {});
    const Toy toy{.start = {0},
                  .train = [](std::vector<double>& weights, const Point& point,
                              Random&) { weights[0] += point[0] > 0.8 ? NAN : point[0]; },
                  .metric = [](const std::vector<double>& weights) { return weights[0]; }};
    Workers workers(settings, toy, seed, /*kills=*/0, /*count=*/1);
    workers.run();
    const Study& study = workers.study();
    EXPECT_FALSE(study.is_stopped()) << seed << ": " << study.stop_reason();
    EXPECT_LT(study.count(TrialState::kFailed), 60) << seed;
    EXPECT_GT(-study.trials()[static_cast<size_t>(study.best().value())].losses[0], 0.4 * 12);
  }
}

/// A study of one population, with given results of each segment.
class Segments {
 public:
  explicit Segments(const Space& space, const std::string& options = "",
                    const std::string& name = "pbt")
      : test(settings(space)) {
    sampler = build_sampler(
        "{name: " + name + ", population: 4, interval: 10, last: 1000" + options + "}",
        settings(space));
  }

  static StudySettings settings(const Space& space) {
    return {.name = "test",
            .space = space,
            .objectives = {{"loss", false}},
            .trials = 1000,
            .attempts = 2};
  }
  int64_t begin() {
    const auto number = static_cast<int64_t>(test.study.trials().size());
    const auto proposal = sampler->ask(test.study, number);
    if (!proposal) return -1;
    test.study.apply({.kind = Event::Kind::kQueued,
                      .trial = number,
                      .parent = proposal->parent,
                      .member = proposal->member,
                      .last_step = proposal->last_step,
                      .point = proposal->point});
    test.run(number);
    return number;
  }
  const Trial& run(double loss) {
    const int64_t number = begin();
    test.complete(number, loss);
    return test.trial(number);
  }
  const Trial& fail() {
    const int64_t number = begin();
    test.end(number, TrialState::kFailed, {});
    return test.trial(number);
  }

  TestStudy test;
  std::unique_ptr<Sampler> sampler;
};

const Space kRate({{"rate", Interval{.low = 0.1, .high = 10, .scale = Scale::kLog}}}, {});

TEST(Pbt, WaitsWhileEachMemberTrains) {
  Segments segments(kRate);
  for (int64_t number = 0; number < 4; ++number) EXPECT_EQ(segments.begin(), number);
  EXPECT_EQ(segments.begin(), -1);
  EXPECT_FALSE(segments.sampler->is_exhausted(segments.test.study));
  segments.test.complete(2, 1);
  EXPECT_EQ(segments.begin(), 4);
  EXPECT_EQ(segments.test.trial(4).member, 2);
  EXPECT_EQ(segments.test.trial(4).parent, 2);
  EXPECT_EQ(segments.test.trial(4).last_step, 20);
}

TEST(Pbt, RetriesAFailedSegmentOnceThenGivesUp) {
  Segments segments(kRate);
  for (const double loss : {1.0, 2.0, 3.0, 4.0}) segments.run(loss);
  const Trial failed = segments.fail();
  EXPECT_EQ(failed.member, 0);
  const Trial again = segments.fail();
  EXPECT_EQ(again.member, 0);
  EXPECT_EQ(again.parent, failed.parent);
  EXPECT_EQ(again.point, failed.point);
  EXPECT_EQ(again.last_step, failed.last_step);
  // Its settings has two attempts: the best is begun from with another point.
  const Trial other = segments.run(1);
  EXPECT_EQ(other.member, 0);
  EXPECT_EQ(other.parent, 0);
  EXPECT_NE(other.point, failed.point);
}

TEST(Pbt, FinishesWhenTheLastSegmentIsRetried) {
  Segments segments(kRate);
  int64_t failed = -1;
  while (failed < 0) {
    const int64_t number = segments.begin();
    ASSERT_GE(number, 0);
    const Trial& trial = segments.test.trial(number);
    if (trial.member == 0 && trial.last_step == 1000) {
      failed = number;
      segments.test.end(number, TrialState::kFailed, {});
    } else {
      segments.test.complete(number, 1);
    }
  }
  const int64_t second = segments.begin();
  EXPECT_EQ(segments.test.trial(second).member, 0);
  // As 'gallop tune retry' does, while the second one runs.
  segments.test.study.apply({.kind = Event::Kind::kRequeued, .trial = failed, .last_step = 1000});
  segments.test.run(failed);
  segments.test.complete(failed, 1);
  segments.test.end(second, TrialState::kFailed, {});
  int64_t number = -1;
  while ((number = segments.begin()) >= 0) {
    EXPECT_NE(segments.test.trial(number).member, 0);
    segments.test.complete(number, 1);
  }
  EXPECT_TRUE(segments.sampler->is_exhausted(segments.test.study));
}

TEST(Pbt, RestartsAMemberWithoutACompleteSegment) {
  Segments segments(kRate);
  const Trial first = segments.fail(), second = segments.fail(), third = segments.fail();
  EXPECT_EQ(first.point, second.point);
  EXPECT_NE(first.point, third.point);
  EXPECT_EQ(third.member, 0);
  EXPECT_EQ(third.parent, -1);
}

TEST(Pbt, PerturbsPointsWithinTheirSpace) {
  const Space space(
      {{"rate", Interval{.low = 0.1, .high = 10, .scale = Scale::kLog}},
       {"depth", Interval{.low = 1, .high = 9, .step = 2, .integer = true}},
       {"name", Choices{{"1", "2", "3", "4"}}},
       {"only", Interval{.low = -1, .high = 1}, Condition{.parent = 2, .choices = {0, 1}}},
       {"kind", Choices{{"1", "2", "3"}, {1, 0, 1}}}},
      {"rate * depth < 20"});
  Segments segments(space, ", quantile: 0.5, resample_probability: 0");
  std::set<double> factors;
  for (int i = 0; i < 200; ++i) {
    const Trial& trial = segments.run(i % 4);
    ASSERT_TRUE(space.contains(trial.point));
    ASSERT_TRUE(space.allows(trial.point));
    EXPECT_NE(trial.point[4], 1);  // Its weight is 0.
    if (trial.parent < 0) continue;
    const Trial& parent = segments.test.trial(trial.parent);
    if (parent.member == trial.member) continue;
    const double factor = trial.point[0] / parent.point[0];
    factors.insert(std::round(100 * factor));
    EXPECT_TRUE(trial.point[0] == 0.1 || trial.point[0] == 10 || std::abs(factor - 1) > 0.19);
    EXPECT_LE(std::abs(trial.point[1] - parent.point[1]), 2);
    EXPECT_TRUE(trial.point[1] != parent.point[1] || trial.point[1] == 1 || trial.point[1] == 9);
    EXPECT_LE(std::abs(trial.point[2] - parent.point[2]), 1);
  }
  EXPECT_EQ(factors.count(80), 1u);
  EXPECT_EQ(factors.count(120), 1u);
}

// With one measured segment, whether it was retried or not, the next point is random.
TEST(Pb2, CountsARetriedSegmentOnce) {
  const auto next_point = [](bool is_retried) {
    Segments segments(kRate, "", "pb2");
    for (const double loss : {1.0, 9.0, 2.0, 3.0}) segments.run(loss);
    const int64_t best = segments.begin();
    if (is_retried) {
      segments.test.end(best, TrialState::kFailed, {});
      segments.test.queue_again(best, segments.test.trial(best).last_step);
      segments.test.run(best);
    }
    segments.test.complete(best, 0.5);
    const Trial& next = segments.test.trial(segments.begin());
    EXPECT_EQ(next.member, 1);  // The worst one, which continues from the best one.
    EXPECT_EQ(next.parent, best);
    return next.point;
  };
  EXPECT_EQ(next_point(true), next_point(false));
}

TEST(Pbt, RejectsUnsupportedSettings) {
  const auto said = [](const std::string& options, const auto& change) {
    StudySettings settings = population_settings(options, 100);
    change(settings);
    return refusal([&] { make_sampler(TuneRegistries(), settings); });
  };
  const auto nothing = [](StudySettings&) {};
  const std::string usual = "interval: 5, last: 40";
  EXPECT_EQ(said(usual, nothing), "");
  EXPECT_EQ(said("last: 40", nothing),
            "sampler pbt: interval (evaluations, or steps of a command, between "
            "exploit-and-explore decisions) is required");
  EXPECT_EQ(said("interval: 5", nothing),
            "sampler pbt: last (the last evaluation, or step of a command) is required");
  EXPECT_EQ(said(usual + ", factors: []", nothing), "sampler pbt: factors are empty");
  EXPECT_EQ(said("interval: 3, last: 40", nothing),
            "sampler pbt: 8 members with 14 segments each need 112 trials; the study has 100");
  EXPECT_EQ(said(usual,
                 [](StudySettings& settings) {
                   settings.limits = {{"memory", 1}};
                 }),
            "sampler pbt: limits are not supported");
  EXPECT_EQ(said(usual, [](StudySettings& settings) { settings.pruner = R"({"name": "median"})"; }),
            "sampler pbt: pruners are not supported");
  EXPECT_EQ(said(usual,
                 [](StudySettings& settings) {
                   settings.objectives.push_back({"b", false});
                 }),
            "sampler pbt: supports a single objective; the study has 2");
}

}  // namespace
}  // namespace gallop::tune
