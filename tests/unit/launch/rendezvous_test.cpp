#include <string>

#include <gtest/gtest.h>

#include "unit/launch/simulated_hosts.h"

namespace gallop::launch {
namespace {

constexpr double kSoon = 60;

JobOptions options_for(int min_hosts, int max_hosts, int candidates) {
  return {.min_hosts = min_hosts, .max_hosts = max_hosts, .candidates = candidates};
}

testing::AssertionResult end_is(SimulatedHosts& world, ExitCode code) {
  const bool has_ended = world.run_until(
      [&] {
        for (int host = 0; host < world.hosts(); ++host) {
          if (world.is_there(host) && !world.end_of(host)) return false;
        }
        return true;
      },
      1000);
  std::string said;
  for (const std::string& line : world.said) said += line + "\n";
  if (!has_ended) return testing::AssertionFailure() << "some have not ended\n" << said;
  for (int host = 0; host < world.hosts(); ++host) {
    if (world.is_there(host) && world.end_of(host)->code != code) {
      return testing::AssertionFailure()
             << "host " << host << " ended with " << static_cast<int>(world.end_of(host)->code)
             << " (" << world.end_of(host)->text << ")\n"
             << said;
    }
  }
  return testing::AssertionSuccess();
}

bool trains_on(SimulatedHosts& world, int hosts, double seconds = kSoon) {
  return world.run_until([&] { return world.training_hosts() == hosts; }, seconds);
}

TEST(Rendezvous, StartsAtOnceIfAllHostsHaveJoined) {
  SimulatedHosts world(options_for(1, 3, 1), 3, 5);
  for (const int host : {2, 1, 0}) world.start(host);
  EXPECT_TRUE(trains_on(world, 3, 2));
  const Start start = world.starts.front();
  EXPECT_EQ(start.world_size, 1 + 2 + 3);
  EXPECT_EQ(start.attempt, 0);
  EXPECT_EQ(start.run, "");
  EXPECT_TRUE(end_is(world, ExitCode::kDone));
  EXPECT_EQ(world.starts.size(), 1);
}

TEST(Rendezvous, AssignsTheFirstRanksToTheCoordinator) {
  SimulatedHosts world(options_for(3, 3, 3), 3, 50);
  world.start(1);
  world.run(5);
  world.start(2);
  world.start(0);
  ASSERT_TRUE(trains_on(world, 3));
  EXPECT_TRUE(world.coordinates(1));
  EXPECT_EQ(world.work_of(1)->first_rank, 0);
  EXPECT_EQ(world.work_of(1)->host_index, 0);
  EXPECT_EQ(world.work_of(0)->first_rank + world.work_of(2)->first_rank,
            2 + 2 + (world.work_of(0)->host_index == 1 ? 1 : 3));
}

TEST(Rendezvous, WaitsBrieflyForMoreHosts) {
  SimulatedHosts world(options_for(2, 3, 1), 3, 5);
  world.start(0);
  world.run(20);
  EXPECT_EQ(world.training_hosts(), 0);
  world.start(1);
  world.run(2);
  EXPECT_EQ(world.training_hosts(), 0);
  EXPECT_TRUE(trains_on(world, 2, 3));
}

TEST(Rendezvous, FailsIfTooFewHostsJoin) {
  JobOptions options = options_for(2, 3, 2);
  options.wait_seconds = 30;
  SimulatedHosts world(options, 2, 5);
  world.start(1);
  EXPECT_TRUE(end_is(world, ExitCode::kDevice));
  EXPECT_NE(world.end_of(1)->text.find("fewer than 2 hosts"), std::string::npos);
}

TEST(Rendezvous, FailsWithoutACoordinator) {
  JobOptions options = options_for(1, 3, 1);
  options.wait_seconds = 30;
  SimulatedHosts world(options, 2, 5);
  world.start(1);
  EXPECT_TRUE(end_is(world, ExitCode::kDevice));
  EXPECT_EQ(world.end_of(1)->text, "no host of --rdzv replied within 0:30: h0");
}

TEST(Rendezvous, AdmitsALateHost) {
  SimulatedHosts world(options_for(1, 2, 1), 2, 40);
  world.start(0);
  ASSERT_TRUE(trains_on(world, 1));
  world.run(10);
  world.start(1);
  EXPECT_TRUE(trains_on(world, 2, 10));
  const int saved = world.saved_steps;
  EXPECT_GT(saved, 5);
  EXPECT_EQ(world.starts.back().run, "/runs/one");
  EXPECT_EQ(world.starts.back().restarts, 0);
  EXPECT_TRUE(end_is(world, ExitCode::kDone));
}

TEST(Rendezvous, MakesAHostBeyondTheMaximumWait) {
  SimulatedHosts world(options_for(1, 2, 1), 3, 60);
  world.start(0);
  world.start(1);
  ASSERT_TRUE(trains_on(world, 2));
  world.start(2);
  world.run(20);
  EXPECT_EQ(world.training_hosts(), 2);
  EXPECT_EQ(world.starts.size(), 1);
  world.kill(1, true);
  EXPECT_TRUE(trains_on(world, 2, 10));
  EXPECT_TRUE(world.work_of(2));
  EXPECT_TRUE(end_is(world, ExitCode::kDone));
}

TEST(Rendezvous, AWaitingHostCanLeave) {
  SimulatedHosts world(options_for(1, 1, 1), 2, 30);
  world.start(0);
  ASSERT_TRUE(trains_on(world, 1));
  world.start(1);
  world.run(2);
  world.ask_to_stop(1);
  world.run(2);
  ASSERT_TRUE(world.end_of(1));
  EXPECT_EQ(world.end_of(1)->code, ExitCode::kStopped);
  EXPECT_EQ(world.training_hosts(), 1);
}

TEST(Rendezvous, StopsAllIfOneIsSignaled) {
  SimulatedHosts world(options_for(3, 3, 1), 3, 100);
  for (int host = 0; host < 3; ++host) world.start(host);
  ASSERT_TRUE(trains_on(world, 3));
  world.ask_to_stop(2);
  EXPECT_TRUE(end_is(world, ExitCode::kStopped));
}

TEST(Rendezvous, StopsDuringRendezvous) {
  SimulatedHosts world(options_for(3, 3, 1), 3, 100);
  world.start(0);
  world.start(1);
  world.run(3);
  world.ask_to_stop(1);
  EXPECT_TRUE(end_is(world, ExitCode::kStopped));
}

TEST(Rendezvous, DoesNotRetryWrongUse) {
  SimulatedHosts world(options_for(2, 2, 1), 2, 100);
  world.start(0);
  world.start(1);
  ASSERT_TRUE(trains_on(world, 2));
  world.fail(0, ExitCode::kDevice);  // A consequence of the other failure, but reported first.
  world.fail(1, ExitCode::kUsage);
  EXPECT_TRUE(end_is(world, ExitCode::kUsage));
  EXPECT_EQ(world.end_of(0)->text, "h1 (somewhere): rank 7 fails");
  EXPECT_EQ(world.starts.size(), 1);
}

TEST(Rendezvous, LimitsRestarts) {
  JobOptions options = options_for(2, 2, 1);
  options.max_restarts = 2;
  SimulatedHosts world(options, 2, 1000);
  world.start(0);
  world.start(1);
  for (int attempt = 0; attempt < 3; ++attempt) {
    ASSERT_TRUE(world.run_until(
        [&] {
          return world.training_hosts() == 2 &&
                 static_cast<int>(world.starts.size()) == attempt + 1;
        },
        kSoon));
    EXPECT_EQ(world.starts.back().attempt, attempt);
    EXPECT_EQ(world.starts.back().restarts, attempt);
    world.fail(1, ExitCode::kDevice);
  }
  EXPECT_TRUE(end_is(world, ExitCode::kDevice));
  EXPECT_NE(world.end_of(1)->text.find("--max-restarts allows no more"), std::string::npos);
}

TEST(Rendezvous, ContinuesWithFewerHostsAndWaitsBelowTheMinimum) {
  SimulatedHosts world(options_for(2, 3, 1), 3, 100);
  for (int host = 0; host < 3; ++host) world.start(host);
  ASSERT_TRUE(trains_on(world, 3));
  world.run(5);
  world.kill(2, true);
  ASSERT_TRUE(trains_on(world, 2, 5));
  EXPECT_GE(world.starts.back().run, "/runs/one");
  EXPECT_EQ(world.starts.back().restarts, 1);
  world.kill(1, true);
  world.run(20);
  EXPECT_EQ(world.training_hosts(), 0);
  world.start(1);
  ASSERT_TRUE(trains_on(world, 2, 10));
  EXPECT_TRUE(end_is(world, ExitCode::kDone));
}

TEST(Rendezvous, StopsWithinTenSecondsOfANetworkFailure) {
  SimulatedHosts world(options_for(2, 3, 1), 3, 100);
  for (int host = 0; host < 3; ++host) world.start(host);
  ASSERT_TRUE(trains_on(world, 3));
  world.run(5);
  world.cut(2);
  const double cut_at = world.now;
  ASSERT_TRUE(world.run_until([&] { return !world.work_of(2); }, 10));
  ASSERT_TRUE(trains_on(world, 2, cut_at + 10 - world.now));
  world.run(20);
  world.heal(2);
  EXPECT_TRUE(trains_on(world, 3, 15));
  EXPECT_TRUE(end_is(world, ExitCode::kDone));
  EXPECT_EQ(world.most_trainings, 1);
}

TEST(Rendezvous, ContinuesAtTheNextCandidate) {
  SimulatedHosts world(options_for(2, 3, 2), 3, 100);
  for (int host = 0; host < 3; ++host) world.start(host);
  ASSERT_TRUE(trains_on(world, 3));
  world.run(5);
  world.set_dead(0, true);
  world.kill(0, false);
  ASSERT_TRUE(trains_on(world, 2, 30));
  EXPECT_TRUE(world.coordinates(1));
  EXPECT_EQ(world.starts.back().run, "/runs/one");
  EXPECT_EQ(world.starts.back().restarts, 1);
  // It queries the others before it serves.
  world.set_dead(0, false);
  world.start(0);
  EXPECT_TRUE(trains_on(world, 3, 15));
  EXPECT_FALSE(world.coordinates(0));
  EXPECT_TRUE(end_is(world, ExitCode::kDone));
}

TEST(Rendezvous, DropsAHostWhoseProcessesDoNotEnd) {
  SimulatedHosts world(options_for(2, 3, 1), 3, 200);
  for (int host = 0; host < 3; ++host) world.start(host);
  ASSERT_TRUE(trains_on(world, 3));
  world.get_stuck(1);
  world.kill(2, true);
  EXPECT_FALSE(trains_on(world, 2, 30));
  world.start(2);
  EXPECT_TRUE(trains_on(world, 2, 30));
  EXPECT_TRUE(world.work_of(2));
}

TEST(Rendezvous, MergesConcurrentCoordinators) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SimulatedHosts world(options_for(2, 4, 4), 4, 5, seed);
    for (int host = 3; host >= 0; --host) world.start(host);
    ASSERT_TRUE(trains_on(world, 4, 20)) << seed;
    EXPECT_EQ(world.coordinators(), 1);
    EXPECT_EQ(world.most_trainings, 1);
    EXPECT_TRUE(end_is(world, ExitCode::kDone));
  }
}

TEST(Rendezvous, MergesAfterANetworkPartition) {
  SimulatedHosts world(options_for(2, 3, 2), 3, 200);
  for (int host = 0; host < 3; ++host) world.start(host);
  ASSERT_TRUE(trains_on(world, 3));
  world.cut(0);
  ASSERT_TRUE(world.run_until([&] { return world.coordinates(1); }, 30));
  ASSERT_TRUE(trains_on(world, 2));
  EXPECT_EQ(world.coordinators(), 2);
  world.heal(0);
  ASSERT_TRUE(trains_on(world, 3));
  EXPECT_EQ(world.coordinators(), 1);
  EXPECT_EQ(world.most_trainings, 1);
}

TEST(Rendezvous, RejectsAnotherCommand) {
  SimulatedHosts world(options_for(1, 2, 1), 2, 20);
  world.start(0);
  ASSERT_TRUE(trains_on(world, 1));
  world.command = "train other.yaml";
  world.start(1);
  world.run(2);
  ASSERT_TRUE(world.end_of(1));
  EXPECT_EQ(world.end_of(1)->code, ExitCode::kUsage);
  EXPECT_EQ(world.end_of(1)->text,
            "this host launches 'train other.yaml', but the coordinator 'train my.yaml'");
  EXPECT_EQ(world.training_hosts(), 1);
}

TEST(Rendezvous, FailsIfTheRunIsNotShared) {
  SimulatedHosts world(options_for(2, 2, 1), 2, 1000);
  world.set_trouble("/runs/one is not there");
  world.start(0);
  world.start(1);
  EXPECT_TRUE(end_is(world, ExitCode::kUsage));
  EXPECT_EQ(world.end_of(0)->text, "h1 (somewhere): /runs/one is not there");
}

TEST(Rendezvous, ToleratesDelays) {
  SimulatedHosts world(options_for(3, 3, 3), 3, 60);
  world.latency = 0.2;
  for (int host = 0; host < 3; ++host) world.start(host);
  EXPECT_TRUE(end_is(world, ExitCode::kDone));
  EXPECT_EQ(world.starts.size(), 1);
}

// Deaths, cuts and returns at random moments, in every phase: once they are over all come to the
// end, and two trainings never went on at once.
TEST(Rendezvous, FinishesAfterRandomFaults) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    const auto draw = [&](int below) {
      return static_cast<int>(random() % static_cast<unsigned>(below));
    };
    const int hosts = 2 + draw(4);
    JobOptions options = options_for(hosts / 2 + 1, hosts, 1 + draw(hosts));
    options.max_restarts = 1000;
    SimulatedHosts world(options, hosts, 1000000, seed);
    for (int host = 0; host < hosts; ++host) world.start(host);
    std::set<int> away;
    for (int i = 0; i < 12; ++i) {
      world.run(0.05 * draw(200));
      const int host = draw(hosts);
      if (away.contains(host)) {
        away.erase(host);
        world.set_dead(host, false);
        world.heal(host);
        if (!world.is_there(host)) world.start(host);
      } else if (draw(2) == 0) {
        away.insert(host);
        world.cut(host);
      } else {
        away.insert(host);
        const bool tells = draw(2) == 0;
        world.set_dead(host, !tells);
        world.kill(host, tells);
      }
    }
    for (int host = 0; host < hosts; ++host) {
      world.set_dead(host, false);
      world.heal(host);
      if (!world.is_there(host)) world.start(host);
    }
    EXPECT_TRUE(trains_on(world, hosts)) << "seed " << seed;
    EXPECT_LE(world.most_trainings, 1) << "seed " << seed;
    EXPECT_EQ(world.coordinators(), 1) << "seed " << seed;
    world.steps = world.saved_steps + 5;
    EXPECT_TRUE(end_is(world, ExitCode::kDone)) << "seed " << seed;
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace gallop::launch
