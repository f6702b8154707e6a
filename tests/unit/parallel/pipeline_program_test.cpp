#include "gallop/parallel/pipeline_program.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <tuple>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "unit/parallel/every_pipeline_schedule.h"

namespace gallop::parallel {
namespace {

using Kind = PipelineInstruction::Kind;
using Program = std::vector<PipelineInstruction>;

// The results that a rank has computed or received before an instruction.
class Results {
 public:
  explicit Results(const PipelineSchedule& schedule) : schedule_(schedule) {}

  bool has_what_it_needs(const PipelineAction& action) const {
    return std::ranges::all_of(schedule_.needs_of(action), [&](const PipelineAction& needed) {
      return has_.contains({needed.pass, needed.stage, needed.micro_batch});
    });
  }
  void add(const PipelineAction& action) {
    const auto pass =
        action.pass == PipelinePass::kBackward ? PipelinePass::kInputGradient : action.pass;
    has_.insert({pass, action.stage, action.micro_batch});
  }

 private:
  const PipelineSchedule& schedule_;
  std::set<std::tuple<PipelinePass, int, int>> has_;
};

// A transfer takes place when both ranks are at it. What happens then does not depend on the order
// in which ranks advance, so that one order shows whether ranks can wait for each other.
void expect_to_end(const PipelineSchedule& schedule, const std::vector<Program>& programs) {
  std::vector<size_t> next(programs.size());
  std::vector<Results> results(programs.size(), Results(schedule));
  const auto at = [&](size_t rank) -> const PipelineInstruction* {
    return next[rank] < programs[rank].size() ? &programs[rank][next[rank]] : nullptr;
  };
  for (bool advanced = true; advanced;) {
    advanced = false;
    for (size_t rank = 0; rank < programs.size(); ++rank) {
      while (const PipelineInstruction* now = at(rank)) {
        if (now->kind == Kind::kCompute) {
          ASSERT_TRUE(results[rank].has_what_it_needs(now->action))
              << text_of(schedule) << ", rank " << rank << ": " << text_of(*now);
          results[rank].add(now->action);
        } else {
          const auto peer = static_cast<size_t>(now->peer);
          const PipelineInstruction* other = at(peer);
          if (now->kind != Kind::kSend || other == nullptr || other->kind != Kind::kReceive ||
              other->peer != static_cast<int>(rank) || other->action != now->action) {
            break;
          }
          results[peer].add(now->action);
          ++next[peer];
        }
        ++next[rank];
        advanced = true;
      }
    }
  }
  for (size_t rank = 0; rank < programs.size(); ++rank) {
    ASSERT_EQ(at(rank), nullptr) << text_of(schedule) << ", rank " << rank << ": "
                                 << text_of(*at(rank));
  }
}

TEST(PipelineProgram, EndsWithTransfersThatBlockBothRanks) {
  int schedules = 0;
  for_each_schedule(8, 20, 4, [&](const PipelineSchedule& schedule) {
    ++schedules;
    expect_to_end(schedule, pipeline_program(schedule));
    expect_to_end(schedule, pipeline_program(schedule, /*has_tied_weights=*/true));
  });
  EXPECT_GT(schedules, 900);
}

// A smaller batch leaves out the last micro-batches.
TEST(PipelineProgram, EndsWithFewerMicroBatches) {
  for_each_schedule(6, 12, 3, [&](const PipelineSchedule& schedule) {
    auto programs = pipeline_program(schedule, /*has_tied_weights=*/true);
    for (int left = schedule.micro_batches - 1; left > 0; --left) {
      for (Program& program : programs) {
        std::erase_if(program, [&](const PipelineInstruction& one) {
          return one.action.micro_batch >= left;
        });
      }
      expect_to_end(schedule, programs);
    }
  });
}

TEST(PipelineProgram, SendsGradientsOfTiedWeightsOfTheLastStage) {
  const auto texts_of = [](const PipelineSchedule& schedule) {
    std::vector<std::string> texts;
    const auto programs = pipeline_program(schedule, /*has_tied_weights=*/true);
    for (const PipelineInstruction& one : programs[0]) {
      if (one.kind != Kind::kCompute) texts.push_back(text_of(one));
    }
    return texts;
  };
  EXPECT_EQ(texts_of(make_pipeline_schedule("1f1b", 2, 1)),
            (std::vector<std::string>{"0F0 to rank 1", "1B0 from rank 1", "1W0 from rank 1"}));
  // The first and the last stage are on one rank.
  for (const std::string& text : texts_of(make_pipeline_schedule("zbv", 2, 4))) {
    EXPECT_EQ(text.find('W'), std::string::npos) << text;
  }
}

TEST(PipelineProgram, TransfersWhatOtherRanksNeed) {
  const auto programs = pipeline_program(make_pipeline_schedule("1f1b", 2, 2));
  std::vector<std::string> texts;
  for (const PipelineInstruction& one : programs[0]) texts.push_back(text_of(one));
  EXPECT_EQ(texts, (std::vector<std::string>{"0F0", "0F0 to rank 1", "0F1", "0F1 to rank 1",
                                             "1B0 from rank 1", "0B0", "1B1 from rank 1", "0B1"}));
}

// Transfers without a buffer between threads.
class Rendezvous {
 public:
  // Returns once the other rank has called with the same action.
  void meet(int sender, int receiver, const PipelineAction& action) {
    std::unique_lock lock(mutex_);
    auto& waiting = waiting_[{sender, receiver}];
    if (waiting.empty() || waiting.front() != action) {
      waiting.push_back(action);
      const size_t number = ++arrivals_[{sender, receiver}];
      changed_.wait(lock, [&] { return meetings_[{sender, receiver}] >= number; });
    } else {
      waiting.erase(waiting.begin());
      ++meetings_[{sender, receiver}];
      changed_.notify_all();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int, int>, std::vector<PipelineAction>> waiting_;
  std::map<std::pair<int, int>, size_t> arrivals_, meetings_;
};

TEST(PipelineProgram, EndsOnThreadsWithDelays) {
  for_each_schedule(4, 8, 2, [&](const PipelineSchedule& schedule) {
    if (schedule.micro_batches % 4 != 0) return;
    const auto programs = pipeline_program(schedule);
    Rendezvous rendezvous;
    std::vector<std::thread> threads;
    for (int rank = 0; rank < schedule.ranks; ++rank) {
      threads.emplace_back([&, rank] {
        std::minstd_rand draw(static_cast<unsigned>(rank + 1));
        for (const PipelineInstruction& one : programs[static_cast<size_t>(rank)]) {
          for (auto pauses = draw() % 8; pauses > 0; --pauses) std::this_thread::yield();
          if (one.kind == Kind::kSend) rendezvous.meet(rank, one.peer, one.action);
          if (one.kind == Kind::kReceive) rendezvous.meet(one.peer, rank, one.action);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

}  // namespace
}  // namespace gallop::parallel
