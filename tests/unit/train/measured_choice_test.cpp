#include "gallop/train/measured_choice.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "gallop/model/mlp.h"
#include "gallop/train/step/format.h"
#include "unit/train/labeled.h"
#include "unit/train/trainee.h"

namespace gallop::train {
namespace {

/// A simulated machine: the time of each candidate when idle, and how much other programs slow down
/// each measurement, in order.
class MadeUpMachine {
 public:
  struct Disturbance {
    double factor = 1;
    double busy = 0;
  };

  MadeUpMachine(std::vector<double> seconds, std::vector<Disturbance> disturbances)
      : seconds_(std::move(seconds)), disturbances_(std::move(disturbances)) {}

  MeasuredCost measure(size_t candidate) {
    order_.push_back(candidate);
    const Disturbance& now = disturbances_[(order_.size() - 1) % disturbances_.size()];
    return {.seconds = now.factor * seconds_[candidate], .busy = now.busy};
  }

  MeasuredChoice choose(const MeasuredChoiceConfig& config = {}) {
    std::vector<std::string> names;
    for (size_t i = 0; i < seconds_.size(); ++i) names.push_back(std::string(1, "abcdef"[i]));
    return choose_by_measuring(
        names, [this](size_t candidate) { return measure(candidate); }, config);
  }

  const std::vector<size_t>& order() const { return order_; }

 private:
  std::vector<double> seconds_;
  std::vector<Disturbance> disturbances_;
  std::vector<size_t> order_;
};

TEST(MeasuredChoice, TakesTheFastestInInterleavedRounds) {
  MadeUpMachine machine({0.010, 0.0095, 0.007}, {{}});
  const MeasuredChoice choice = machine.choose();
  EXPECT_EQ(choice.chosen, 2);
  EXPECT_EQ(choice.rounds, 3);
  EXPECT_FALSE(choice.is_busy);
  EXPECT_FALSE(choice.is_close);
  EXPECT_EQ(machine.order(), (std::vector<size_t>{0, 1, 2, 0, 1, 2, 0, 1, 2}));
}

TEST(MeasuredChoice, KeepsTheFirstUnlessAnotherIsClearlyFaster) {
  EXPECT_EQ(MadeUpMachine({0.010, 0.0096}, {{}}).choose().chosen, 0);
  EXPECT_EQ(MadeUpMachine({0.010, 0.0094}, {{}}).choose().chosen, 1);
  EXPECT_EQ(MadeUpMachine({0.010, 0.0094, 0.0092}, {{}}).choose().chosen, 1);
}

// An observed case: four formats that take about 9.4, 8.9, 6.6 and 5.2 ms measured 49, 65, 201 and
// 1,253 ms in the only round of each.
TEST(MeasuredChoice, OnABusyMachineGoesOnUntilItFindsQuietMoments) {
  std::vector<MadeUpMachine::Disturbance> disturbances = {
      {5.2, 0.8}, {7.3, 0.9}, {30.5, 0.95}, {241, 0.99}};
  for (int i = 0; i < 12; ++i) disturbances.push_back({4.0 + i % 5, 0.7});
  for (int i = 0; i < 4; ++i) disturbances.push_back({1.02, 0.01});
  MadeUpMachine machine({0.0094, 0.0089, 0.0066, 0.0052}, disturbances);
  const MeasuredChoice choice = machine.choose();
  EXPECT_EQ(choice.chosen, 3);
  EXPECT_FALSE(choice.is_busy) << "each has been measured in a quiet moment";
  EXPECT_EQ(choice.rounds, 5);
  EXPECT_DOUBLE_EQ(choice.candidates[3].seconds, 1.02 * 0.0052);
  EXPECT_DOUBLE_EQ(choice.candidates[3].busy, 0.01);
}

TEST(MeasuredChoice, SaysThatAMachineWasBusyAllTheTime) {
  MadeUpMachine machine({0.010, 0.020}, {{3, 0.6}, {1.2, 0.5}, {2, 0.4}});
  const MeasuredChoice choice = machine.choose({.most_rounds = 20});
  EXPECT_TRUE(choice.is_busy);
  EXPECT_TRUE(choice.is_uncertain());
  EXPECT_EQ(choice.rounds, 20);
  EXPECT_EQ(choice.candidates[1].rounds, 20) << "on a busy machine nothing is hopeless";
  EXPECT_NE(choice.evidence().find("busy machine"), std::string::npos) << choice.evidence();
}

TEST(MeasuredChoice, EndsWithinItsTimeOnABusyMachine) {
  MadeUpMachine machine({1, 2}, {{1, 0.5}});
  EXPECT_EQ(machine.choose({.most_seconds = 8}).rounds, 3) << "of 3 s each";
  MeasuredCost cost{.seconds = 0.001, .busy = 0.5, .spent = 2};
  const auto choice =
      choose_by_measuring({"a", "b"}, [&](size_t) { return cost; }, {.most_seconds = 8});
  EXPECT_EQ(choice.rounds, 3) << "of 4 s each, what is around a measurement included";
}

TEST(MeasuredChoice, OfAShortRunTakesLittleTime) {
  MadeUpMachine machine({0.1, 0.17}, {{1, 0.5}});
  // A run of 100 times 0.1 s: half a second.
  EXPECT_EQ(machine.choose({.uses = 100}).rounds, 2);
  EXPECT_EQ(machine.choose({.uses = 1}).rounds, 2) << "0.3 s at least";
  EXPECT_EQ(machine.choose({.uses = 1000}).rounds, 19) << "5 s";
}

TEST(MeasuredChoice, MeasuresCloseCandidatesMoreOften) {
  MadeUpMachine machine({0.010, 0.0097, 0.030}, {{}});
  const MeasuredChoice choice = machine.choose();
  EXPECT_TRUE(choice.is_close);
  EXPECT_FALSE(choice.is_uncertain()) << "whichever it is, little is lost";
  EXPECT_EQ(choice.rounds, 9);
  EXPECT_EQ(choice.candidates[2].rounds, 1) << "so much slower that once is enough";
}

TEST(MeasuredChoice, LeavesOutTheHopelessOnAQuietMachineOnly) {
  MadeUpMachine quiet({0.010, 0.016, 0.005}, {{}});
  const MeasuredChoice choice = quiet.choose();
  EXPECT_EQ(choice.chosen, 2);
  EXPECT_EQ(choice.candidates[0].rounds, 1);
  // After a disturbance in its first round, the fastest gets another.
  MadeUpMachine disturbed({0.010, 0.005}, {{1, 0}, {9, 0.9}, {1, 0}, {1, 0}});
  EXPECT_EQ(disturbed.choose().chosen, 1);
}

TEST(MeasuredChoice, TellsItsEvidence) {
  MadeUpMachine machine({0.0181, 0.0123}, {{1, 0.02}});
  const MeasuredChoice choice = machine.choose();
  EXPECT_EQ(choice.times(), "a 18.1 ms, b 12.3 ms");
  EXPECT_EQ(choice.times(/*scale=*/2), "a 36.2 ms, b 24.6 ms");
  EXPECT_EQ(choice.evidence(),
            "b: the fastest of a 18.1 ms (3 rounds, 2 % busy), b 12.3 ms (3 rounds, 2 % busy)");
}

TEST(MeasuredChoice, NamesTheExcludedCandidates) {
  MadeUpMachine machine({0.0181}, {{1, 0.02}});
  MeasuredChoice choice = machine.choose();
  choice.excluded = {"b excluded, as it is slow"};
  EXPECT_EQ(choice.times(), "a 18.1 ms, b excluded, as it is slow");
  EXPECT_EQ(choice.evidence(),
            "a: the only one of a 18.1 ms (1 round, 2 % busy), b excluded, as it is slow");
}

// With or without bf16 instructions on this CPU.
TEST(StepFormat, IsChosenAmongThoseMeasured) {
  const auto model = make_mlp({.hidden = {16}}, kImages, 1);
  const auto formats = candidate_formats("auto", "false", /*images=*/true, at::kCPU);
  const NamedTensors batch = labeled(at::ones({6, 3, 8, 8}), at::ones({6}, at::kLong));
  const FormatChoice choice = choose_format(*model, batch, formats, *cross_entropy_loss(), 100);
  EXPECT_EQ(choice.measured.candidates.size() + choice.measured.excluded.size(), formats.size());
  EXPECT_EQ(choice.measured.candidates.front().name, "fp32");
  EXPECT_EQ(choice.format.describe(), choice.measured.candidates[choice.measured.chosen].name);
  // A single requested precision is never excluded.
  const FormatChoice only =
      choose_format(*model, batch, candidate_formats("bf16", "false", true, at::kCPU),
                    *cross_entropy_loss(), 100);
  EXPECT_EQ(only.format.describe(), "bf16");
}

// Counts its passes in each memory format by the number of rows.
class CountingModel final : public model::Model {
 public:
  at::Tensor forward(const at::Tensor& input) override {
    passes_[channels_last_][input.size(0)] += 1;
    return at::mm(input.flatten(1), weight_);
  }
  NamedTensors parameters() const override { return {{"weight", weight_}}; }
  NamedTensors buffers() const override { return {}; }
  void set_training(bool /*training*/) override {}
  bool training() const override { return true; }
  void to(at::Device /*device*/, bool channels_last) override { channels_last_ = channels_last; }

  int64_t passes(bool channels_last, int64_t rows) { return passes_[channels_last][rows]; }

 private:
  at::Tensor weight_ = at::ones({3 * 8 * 8, 10}).requires_grad_();
  std::map<int64_t, int64_t> passes_[2];
  bool channels_last_ = false;
};

TEST(StepFormat, WarmsUpEachCandidateBeforeItIsTimed) {
  CountingModel model;
  // All of so few rows are timed.
  const NamedTensors batch = labeled(at::ones({2, 3, 8, 8}), at::ones({2}, at::kLong));
  const FormatChoice choice =
      choose_format(model, batch, candidate_formats("fp32", "auto", /*images=*/true, at::kCPU),
                    *cross_entropy_loss(), 100);
  ASSERT_EQ(choice.measured.candidates.size(), 2U);
  for (const bool channels_last : {false, true}) {
    const int64_t timed = choice.measured.candidates[channels_last ? 1 : 0].rounds;
    EXPECT_GE(timed, 1);
    // The number of rows was found in the last format, with two passes.
    EXPECT_EQ(model.passes(channels_last, 2), timed + 2 + (channels_last ? 2 : 0));
  }
}

TEST(MeasuredChoice, OfOneCandidateNeedsOneRound) {
  MadeUpMachine machine({0.010}, {{1, 0.9}});
  const MeasuredChoice choice = machine.choose();
  EXPECT_EQ(choice.chosen, 0);
  EXPECT_EQ(choice.rounds, 1);
  EXPECT_FALSE(choice.is_uncertain());
}

TEST(CostMeter, ReadsATimeAndAShare) {
  const CostMeter meter(/*works=*/true);
  const MeasuredCost cost = meter.read();
  EXPECT_GE(cost.seconds, 0);
  EXPECT_GE(cost.busy, 0);
  EXPECT_LE(cost.busy, 1);
  EXPECT_GE(meter.thread_seconds(), 0);
}

}  // namespace
}  // namespace gallop::train
