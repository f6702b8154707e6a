#include "gallop/parallel/collectives.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <latch>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "gallop/base/error.h"
#include "gallop/parallel/collectives_group.h"
#include "gallop/parallel/stall_monitor.h"
#include "gallop/parallel/sums.h"
#include "unit/parallel/collectives_contract.h"
#include "unit/parallel/ranks_together.h"
#include "unit/variable.h"

namespace gallop::parallel {
namespace {

namespace fs = std::filesystem;

class CollectivesOf : public testing::TestWithParam<int> {};

TEST_P(CollectivesOf, AllReduceEveryDataTypeOfGradients) {
  const int size = GetParam();
  for (const auto format : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kLong}) {
    run_ranks(size, [&](Collectives& collectives) {
      EXPECT_EQ(collectives.size(), size);
      const at::Tensor tensor = at::full({1000}, collectives.rank() + 1, format);
      collectives.all_reduce_async(tensor);
      collectives.wait(tensor);
      EXPECT_TRUE(at::equal(tensor, at::full({1000}, size * (size + 1) / 2, format)));
    });
  }
}

TEST_P(CollectivesOf, AllReducesAreBitIdenticalInAllRanks) {
  std::mutex mutex;
  std::vector<at::Tensor> sums;
  for (const int64_t count : {1, 3, 1023, 300000}) {
    sums.clear();
    run_ranks(GetParam(), [&](Collectives& collectives) {
      at::Generator own = at::globalContext().defaultGenerator(at::kCPU).clone();
      own.set_current_seed(static_cast<uint64_t>(collectives.rank()) + 1);
      const at::Tensor tensor = at::randn({count}, own);
      collectives.all_reduce_async(tensor);
      collectives.wait(tensor);
      const std::lock_guard lock(mutex);
      sums.push_back(tensor);
    });
    for (const at::Tensor& sum : sums) EXPECT_TRUE(at::equal(sum, sums.front()));
  }
}

TEST_P(CollectivesOf, AllReducesCanOverlapAndBeWaitedForInAnyOrder) {
  run_ranks(GetParam(), [&](Collectives& collectives) {
    const at::Tensor first = at::full({100000}, 1.0), second = at::full({5}, 2.0);
    collectives.all_reduce_async(first);
    collectives.all_reduce_async(second);
    collectives.wait(second);
    collectives.wait(first);
    EXPECT_EQ(first[99999].item<float>(), GetParam());
    EXPECT_EQ(second[0].item<float>(), 2 * GetParam());
  });
}

TEST_P(CollectivesOf, BroadcastFromRank0) {
  run_ranks(GetParam(), [&](Collectives& collectives) {
    const at::Tensor tensor = at::arange(10).add(collectives.rank());
    collectives.broadcast(tensor);
    EXPECT_TRUE(at::equal(tensor, at::arange(10)));
    EXPECT_EQ(text_of_first(collectives, collectives.rank() == 0 ? "a text" : "another"), "a text");
    EXPECT_EQ(text_of_first(collectives, ""), "");
    const double rank = collectives.rank();
    EXPECT_EQ(sum_over_all(collectives, {rank, 1}),
              (std::vector<double>{0.5 * GetParam() * (GetParam() - 1), 1.0 * GetParam()}));
  });
}

at::Tensor on_cpu(const at::Tensor& tensor) { return tensor; }

TEST_P(CollectivesOf, ExchangeParts) {
  run_ranks(GetParam(), [](Collectives& collectives) {
    expect_all_to_all(collectives, on_cpu);
    expect_all_gather(collectives, on_cpu);
    expect_send_and_recv(collectives, on_cpu);
  });
}

INSTANTIATE_TEST_SUITE_P(Processes, CollectivesOf, testing::Values(1, 2, 3, 4),
                         testing::PrintToStringParamName());

TEST(Collectives, ReportTheRankWithAnotherText) {
  std::atomic<int> notified = 0;
  run_ranks(3, [&](Collectives& collectives) {
    require_same(collectives, "the recipe", "one");
    try {
      require_same(collectives, "the recipe", collectives.rank() == 2 ? "other" : "one");
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find("the recipe of rank 2 differs from that of rank 0"),
                std::string::npos);
      notified += 1;
    }
  });
  EXPECT_EQ(notified, 3);
}

TEST(Collectives, RunOnRank0AndPropagateItsError) {
  std::atomic<int> thrown = 0, calls = 0;
  run_ranks(3, [&](Collectives& collectives) {
    const auto answer = [&calls] {
      calls += 1;
      return std::string("an answer");
    };
    EXPECT_EQ(run_on_rank0(&collectives, answer), "an answer");
    const bool is_first = collectives.rank() == 0;
    EXPECT_TRUE(run_on_rank0(&collectives, [&] { return is_first; }));
    EXPECT_EQ(run_on_rank0(&collectives, [&] { return is_first ? 0.1 : 7.0; }), 0.1);
    EXPECT_EQ(run_on_rank0(&collectives, [] { return std::optional<int64_t>(-3); }), -3);
    EXPECT_EQ(run_on_rank0(&collectives, [] { return std::optional<int64_t>(); }), std::nullopt);
    EXPECT_EQ(run_on_rank0(&collectives, [] { return std::optional<std::string>(""); }), "");
    const std::vector<std::string> list = {"", "two\nlines", std::string("a\0b", 3), ""};
    EXPECT_EQ(run_on_rank0(&collectives, [&] { return list; }), list);
    run_on_rank0(&collectives, [&] { EXPECT_TRUE(is_first); });
    try {
      run_on_rank0(&collectives, []() -> std::string { throw DataError("no such file"); });
    } catch (const Rank0Error& error) {
      EXPECT_NE(collectives.rank(), 0);
      EXPECT_EQ(error.code(), ExitCode::kData);
      EXPECT_STREQ(error.what(), "no such file");
      thrown += 1;
    } catch (const DataError&) {
      EXPECT_EQ(collectives.rank(), 0);
      thrown += 1;
    }
    EXPECT_TRUE(any_of(collectives, collectives.rank() == 2));
    EXPECT_FALSE(any_of(collectives, false));
  });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(thrown, 3);
}

TEST(Collectives, ReportTheCallAndStepIfAPeerIsGone) {
  std::string message;
  run_ranks(2,
            [&](Collectives& collectives) {
              if (collectives.rank() == 1) return;
              collectives.begin(Section::kStep, 7);
              const at::Tensor tensor = at::zeros({100}, at::kFloat);
              try {
                collectives.all_reduce_async(tensor);
                collectives.wait(tensor);
              } catch (const DeviceError& error) {
                message = error.what();
              }
            },
            {.limits = {.step = 0.5}});
  EXPECT_EQ(message.substr(0, message.find('(')),
            "rank 0 of 2: step 7, call 1, sum of 400 bytes: another process is gone or did not "
            "answer within 0.50 s ");
}

TEST(Collectives, ReportTheExchangeThatAPeerDidNotTakePartIn) {
  const std::vector<std::pair<std::string, std::function<void(Collectives&)>>> calls = {
      {"all-to-all of 16 bytes",
       [](Collectives& collectives) {
         const at::Tensor output = at::zeros({4}), input = at::zeros({4});
         collectives.all_to_all_async(output, input, {2, 2}, {2, 2});
         collectives.wait(output);
       }},
      {"all-gather of 16 bytes",
       [](Collectives& collectives) {
         const at::Tensor tensor = at::zeros({4});
         collectives.all_gather_async(tensor, {2, 2});
         collectives.wait(tensor);
       }},
      {"recv of 16 bytes", [](Collectives& collectives) {
         const at::Tensor tensor = at::zeros({4});
         collectives.recv_async(tensor, 1);
         collectives.wait(tensor);
       }}};
  for (const auto& [what, call] : calls) {
    std::string message;
    run_ranks(2,
              [&](Collectives& collectives) {
                if (collectives.rank() == 1) return;
                collectives.begin(Section::kStep, 7);
                try {
                  call(collectives);
                } catch (const DeviceError& error) {
                  message = error.what();
                }
              },
              {.limits = {.step = 0.5}});
    EXPECT_TRUE(message.starts_with("rank 0 of 2: step 7, call 1, " + what +
                                    ": another process is gone or did not answer within 0.50 s"))
        << message;
  }
}

TEST(Collectives, ReportARankThatHangsInAStep) {
  std::string message;
  std::latch noticed(1);
  run_ranks(2,
            [&](Collectives& collectives) {
              collectives.begin(Section::kStep, 7);
              if (collectives.rank() == 1) return noticed.wait();
              try {
                any_of(collectives, true);
              } catch (const DeviceError& error) {
                message = error.what();
              }
              noticed.count_down();
            },
            {.limits = {.start = 3600, .step = 0.1}});
  EXPECT_EQ(message,
            "rank 0 of 2: step 7, call 1, sum of 8 bytes: another process is gone or did not "
            "answer within 0.10 s (timed out)");
}

TEST(Collectives, ReportARankThatHangsInATransfer) {
  std::string message;
  std::latch noticed(1);
  run_ranks(2,
            [&](Collectives& collectives) {
              collectives.begin(Section::kStep, 7);
              if (collectives.rank() == 1) return noticed.wait();
              const at::Tensor number = at::zeros({1}, at::kDouble);
              try {
                collectives.recv_async(number, 1);
                collectives.wait(number);
              } catch (const DeviceError& error) {
                message = error.what();
              }
              noticed.count_down();
            },
            {.limits = {.start = 3600, .step = 0.1}});
  EXPECT_EQ(message,
            "rank 0 of 2: step 7, call 1, recv of 8 bytes: another process is gone or did not "
            "answer within 0.10 s (timed out)");
}

// Two in an all-reduce, two in a transfer. The sleep exceeds the timeout of a step, which is long
// enough for the collective itself.
TEST(Collectives, WaitForARankThatCompiles) {
  std::latch announced(2);
  run_ranks(4,
            [&](Collectives& collectives) {
              const bool transfers = collectives.rank() >= 2,
                         compiles = collectives.rank() % 2 == 1;
              const std::vector<int> ranks = transfers ? std::vector{2, 3} : std::vector{0, 1};
              const auto group = collectives.subgroup(ranks, "pair");
              collectives.begin(Section::kStep, 7);
              if (compiles) {
                group->note_compiling();
                announced.count_down();
                std::this_thread::sleep_for(std::chrono::milliseconds(2500));
              } else {
                announced.wait();
              }
              if (!transfers) {
                EXPECT_TRUE(any_of(*group, compiles));
                return;
              }
              const at::Tensor number = at::full({1}, compiles ? 7.0 : 0.0);
              compiles ? group->send_async(number, 0) : group->recv_async(number, 1);
              group->wait(number);
              EXPECT_EQ(number.item<double>(), 7);
            },
            {.limits = {.start = 3600, .step = 2}});
}

TEST(StallMonitor, SeesLongWorkOfAnyProcess) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const auto clock = [] { return 0.0; };
  StallMonitor one(store, 0, 2, clock), other(store, 1, 2, clock);
  EXPECT_FALSE(one.sees_long_work());
  other.begin_long_work();
  other.begin_long_work();
  EXPECT_TRUE(one.sees_long_work());
  EXPECT_TRUE(one.sees_long_work());
  other.end_long_work();
  EXPECT_TRUE(one.sees_long_work());  // It ended since.
  EXPECT_FALSE(one.sees_long_work());
  other.end_long_work();
  EXPECT_FALSE(one.sees_long_work());
  other.begin_long_work();
  other.end_long_work();
  EXPECT_TRUE(one.sees_long_work());
  EXPECT_FALSE(one.sees_long_work());
}

// Measures stalls with a clock that only the test advances.
class FakeClock {
 public:
  std::function<double()> function() {
    return [this] { return seconds(); };
  }
  void advance(double seconds) {
    const std::lock_guard lock(mutex_);
    seconds_ += seconds;
  }

  // From now on, calls of this thread count as those of a rank: two when it enters a collective,
  // and one when it observes another rank.
  void count_calls_of(int rank) {
    const std::lock_guard lock(mutex_);
    ranks_[std::this_thread::get_id()] = rank;
  }
  void wait_for_calls(int rank, int64_t calls) {
    std::unique_lock lock(mutex_);
    called_.wait(lock, [&] { return is_over_ || calls_[rank] >= calls; });
  }
  // Waits for an observation that begins from now on, as the first may be under way.
  void wait_for_observation(int rank) {
    std::unique_lock lock(mutex_);
    const int64_t calls = calls_[rank] + 2;
    called_.wait(lock, [&] { return is_over_ || calls_[rank] >= calls; });
  }
  void end_waits() {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    called_.notify_all();
  }

 private:
  double seconds() {
    const std::lock_guard lock(mutex_);
    const auto found = ranks_.find(std::this_thread::get_id());
    if (found != ranks_.end()) calls_[found->second] += 1;
    called_.notify_all();
    return seconds_;
  }

  std::mutex mutex_;
  std::condition_variable called_;
  double seconds_ = 0;
  bool is_over_ = false;
  std::map<std::thread::id, int> ranks_;
  std::map<int, int64_t> calls_;
};

// Long before the timeout of an evaluation.
TEST(Collectives, ReportTheRankThatHangsInAnEvaluationOrCheckpoint) {
  for (const auto& [section, words] :
       {std::pair(Section::kEvaluation, "evaluation after step 7, call 2, sum of 8 bytes: "),
        std::pair(Section::kCheckpoint, "checkpoint of step 7, call 2, sum of 8 bytes: ")}) {
    std::atomic<int> notified = 0;
    std::mutex mutex;
    std::latch others_end(2);
    FakeClock clock;
    run_ranks(3,
              [&](Collectives& collectives) {
                collectives.begin(section, 7);
                EXPECT_TRUE(any_of(collectives, true));
                collectives.set_limits({.step = 1, .other = 3600});
                if (collectives.rank() == 2) {
                  for (const int rank : {0, 1}) clock.wait_for_calls(rank, 4);
                  // Both have entered; each has to see that the other one has.
                  for (const int rank : {0, 1}) clock.wait_for_observation(rank);
                  clock.advance(10);
                  // It does not exit, as an exit would be detected at once.
                  others_end.wait();
                  return;
                }
                clock.count_calls_of(collectives.rank());
                try {
                  any_of(collectives, false);
                } catch (const DeviceError& error) {
                  const std::lock_guard lock(mutex);
                  const std::string text = error.what();
                  EXPECT_NE(text.find(words), std::string::npos) << text;
                  EXPECT_NE(text.find("rank 2 has made no progress for "), std::string::npos)
                      << text;
                  notified += 1;
                }
                clock.end_waits();
                // The other one must not lose its connection before it has noticed, too.
                others_end.arrive_and_wait();
              },
              {.limits = {.step = 3600, .other = 3600}, .clock = clock.function()});
    EXPECT_EQ(notified, 2);
  }
}

TEST(Collectives, WaitForARankThatMakesProgressInAnEvaluation) {
  FakeClock clock;
  run_ranks(2,
            [&](Collectives& collectives) {
              collectives.begin(Section::kEvaluation, 7);
              if (collectives.rank() == 1) {
                clock.wait_for_calls(0, 3);
                // Twice as long as the stall timeout.
                for (int i = 0; i < 3; ++i) {
                  clock.advance(2);
                  collectives.note_progress();
                  clock.wait_for_observation(0);
                }
              } else {
                clock.count_calls_of(0);
              }
              try {
                EXPECT_FALSE(any_of(collectives, false));
              } catch (const DeviceError& error) {
                ADD_FAILURE() << error.what();
              }
              clock.end_waits();
            },
            {.limits = {.step = 3, .other = 3600}, .clock = clock.function()});
}

// Neither waits for the other until the timeout, which is minutes.
TEST(Collectives, AbortAllReducesInFlight) {
  const StoreServer server("127.0.0.1", 0);
  const auto join_as = [&](int rank) {
    // Under load, Gloo sometimes reports a closed connection only at the time limit.
    return init_process_group({.rank = rank,
                               .size = 2,
                               .port = server.port(),
                               .store_is_there = true,
                               .limits = {.start = 30}});
  };
  std::promise<void> left;
  std::thread other([&] {
    const auto collectives = join_as(1);
    left.get_future().wait();
    EXPECT_THROW(any_of(*collectives, false), DeviceError);
  });
  auto collectives = join_as(0);
  collectives->all_reduce_async(at::zeros({100}));
  collectives.reset();
  left.set_value();
  other.join();
}

// Gloo writes with a plain writev.
TEST(Collectives, DoNotRaiseSigpipeWhenAPeerIsGone) {
  int threads = 0;
  run_ranks(2, [&](Collectives& collectives) {
    any_of(collectives, false);
    for (const auto& task : fs::directory_iterator("/proc/self/task")) {
      std::ifstream comm(task.path() / "comm"), status(task.path() / "status");
      std::string name;
      std::getline(comm, name);
      if (collectives.rank() != 0 || name != "pt_gloo_runloop") continue;
      threads += 1;
      for (std::string line; std::getline(status, line);) {
        if (!line.starts_with("SigBlk:")) continue;
        EXPECT_TRUE(std::stoull(line.substr(7), nullptr, 16) >> (SIGPIPE - 1) & 1) << line;
      }
    }
    any_of(collectives, false);
  });
  EXPECT_GE(threads, 2);
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  EXPECT_FALSE(sigismember(&blocked, SIGPIPE));
}

TEST(Collectives, ReportTheRankThatDidNotJoin) {
  try {
    run_ranks(1, [](Collectives&) {}, {.size = 2, .seconds = 0.5});
    const StoreServer server("127.0.0.1", 0);
    init_process_group(
        {.rank = 1, .size = 2, .port = server.port(), .store_is_there = true, .seconds = 0.5});
    FAIL() << "came together";
  } catch (const DeviceError& error) {
    EXPECT_NE(
        std::string(error.what()).find("rank 1 of 2 could not join all other ranks at 127.0.0.1"),
        std::string::npos)
        << error.what();
  }
}

TEST(Collectives, UseTheGivenInterfaces) {
  const auto sum = [](Collectives& collectives) {
    EXPECT_EQ(sum_over_all(collectives, {1}).front(), 2);
  };
  for (const char* names : {"lo", "lo,nosuch0"}) {
    const Variable variable("GLOO_SOCKET_IFNAME", names);
    if (std::string(names) == "lo") {
      run_ranks(2, sum);
    } else {
      EXPECT_THROW(run_ranks(2, sum), UsageError);
    }
  }
  const Variable none("GLOO_SOCKET_IFNAME", std::nullopt);
  run_ranks(2, sum);
}

// Tensors of other sizes in each rank, of which one is empty, and two at a time.
TEST(CollectivesGroup, ShiftsTensorsAroundTheRing) {
  for (const bool is_within_scope : {false, true}) {
    run_ranks_together(3, [&](Collectives& collectives) {
      const CollectivesGroup group(collectives);
      std::optional<CollectivesScope> scope;
      if (is_within_scope) scope.emplace(collectives);
      const int rank = collectives.rank(), previous = (rank + 2) % 3;
      const auto filled = [](int of, int64_t elements) {
        return at::full({elements * of}, of, at::kFloat);
      };
      const at::Tensor small = filled(rank, 5), large = filled(rank, 30000);
      const at::Tensor got_small = at::zeros({5 * previous}),
                       got_large = at::zeros({30000 * previous});
      group.shift_async(got_small, small);
      group.shift_async(got_large, large);
      group.wait_shift(got_small, small);
      group.wait_shift(got_large, large);
      EXPECT_TRUE(at::equal(got_small, filled(previous, 5)));
      EXPECT_TRUE(at::equal(got_large, filled(previous, 30000)));
    });
  }
}

TEST(StoreServer, ListensOnlyAtItsAddressAndReportsErrors) {
  const StoreServer server("127.0.0.1", 0);
  EXPECT_GT(server.port(), 0);
  EXPECT_THROW(StoreServer("127.0.0.1", server.port()), UsageError);
  EXPECT_THROW(StoreServer("192.0.2.1", 0), UsageError);
  // The port is free at another address of this host.
  const StoreServer other("127.0.0.2", server.port());
  EXPECT_EQ(other.port(), server.port());
}

TEST(Sums, RequireCollectives) {
  EXPECT_THROW(all_reduce_async(at::zeros({1})), InternalError);
  run_ranks(2, [](Collectives& collectives) {
    const CollectivesScope scope(collectives);
    const at::Tensor tensor = at::full({2}, 3.0);
    all_reduce_async(tensor);
    wait_tensor(tensor);
    EXPECT_EQ(tensor[1].item<float>(), 6);
    EXPECT_THROW(wait_tensor(tensor), InternalError);
  });
  EXPECT_EQ(CollectivesScope::current(), nullptr);
}

}  // namespace
}  // namespace gallop::parallel
