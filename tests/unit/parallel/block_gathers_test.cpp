#include "gallop/parallel/block_gathers.h"

#include <optional>
#include <string>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "unit/base/error_of.h"
#include "unit/parallel/fake_collectives.h"

namespace gallop::parallel {
namespace {

using Names = std::vector<std::string>;

// Three blocks, whose buckets have 1, 2 and 3 times 4096 elements in two processes, and others of
// 16 elements, which this process does not have.
class Gathers : public testing::Test {
 protected:
  static constexpr int64_t kElements = 4096;

  explicit Gathers(bool reshards = true) {
    std::vector<ParameterShape> shapes;
    for (int64_t i = 0; i < 4; ++i) {
      const int64_t elements = i < 3 ? 2 * (i + 1) * kElements : 16;
      const auto name = std::to_string(i);
      parameters_.push_back({name, at::ones({elements}).requires_grad_()});
      shapes.push_back({.name = name, .elements = elements, .group = static_cast<size_t>(i)});
    }
    const ShardLayout layout(shapes, {0, 1, 2, 3}, int64_t{1} << 30, 2);
    places_.emplace(parameters_, layout, ParameterBuckets::Keeps::kParts,
                    ParameterBuckets::Group{});
    places_->take(parameters_);
    gathers_.emplace(*places_,
                     BlockGathers::Config{.blocks = {{0}, {1}, {2}},
                                          .others = {3},
                                          .reshard_after_forward = reshards,
                                          .reduce = [this](size_t block) {
                                            all_.calls.push_back(fmt::format("reduce {}", block));
                                          }});
  }

  at::Tensor block(size_t i, const at::Tensor& x) {
    gathers_->before_forward(i, x);
    all_.calls.push_back(fmt::format("forward {}", i));
    const at::Tensor y = x * parameters_[i].tensor.select(0, 2 * kElements - 1);
    gathers_->after_forward(i, {y});
    return y;
  }

  // The calls since the last time, gathers by the number of their bucket.
  Names calls() {
    Names short_ones;
    for (const std::string& call : std::exchange(all_.calls, {})) {
      const auto at = call.find("all-gather of ");
      if (at == std::string::npos) {
        short_ones.push_back(call);
        continue;
      }
      const int64_t elements = std::stoll(call.substr(at + 14));
      const auto name =
          elements == 16 ? std::string("others") : std::to_string(elements / (2 * kElements) - 1);
      short_ones.push_back((call.starts_with("wait") ? "wait " : "gather ") + name);
    }
    return short_ones;
  }

  FakeCollectives all_{0, 2};
  CollectivesScope scope_{all_};
  NamedTensors parameters_;
  std::optional<ParameterBuckets> places_;
  std::optional<BlockGathers> gathers_;
};

class GathersOnce : public Gathers {
 protected:
  GathersOnce() : Gathers(/*reshards=*/false) {}
};

const Names kForward{"gather others", "gather 0", "wait others", "wait 0", "gather 1", "forward 0",
                     "wait 1",        "gather 2", "forward 1",   "wait 2", "forward 2"};

TEST_F(Gathers, TheNextBlockWhileOneComputes) {
  gathers_->begin_forward();
  const at::Tensor x = at::ones({2}).requires_grad_();
  const at::Tensor y = block(2, block(1, block(0, x)));
  EXPECT_EQ(calls(), kForward);
  gathers_->end_forward();
  y.sum().backward();
  EXPECT_EQ(calls(), (Names{"gather 1", "reduce 2", "wait 1", "gather 0", "reduce 1", "wait 0"}));
  gathers_->finish();
  EXPECT_EQ(calls(), (Names{"reduce 0", "reduce 3"}));
}

TEST_F(GathersOnce, WhatStaysUntilTheBackwardPass) {
  gathers_->begin_forward();
  const at::Tensor y = block(2, block(1, block(0, at::ones({2}).requires_grad_())));
  EXPECT_EQ(calls(), kForward);
  gathers_->end_forward();
  y.sum().backward();
  gathers_->finish();
  EXPECT_EQ(calls(), (Names{"reduce 2", "reduce 1", "reduce 0", "reduce 3"}));
}

// A process without samples, and blocks that are skipped, make the same calls.
TEST_F(Gathers, InOneOrderWhateverIsComputed) {
  const auto without_blocks = [this] {
    Names all = calls();
    std::erase_if(all, [](const std::string& call) { return call.starts_with("forward"); });
    return all;
  };
  gathers_->finish();
  const Names wanted = without_blocks();
  EXPECT_EQ(wanted.size(), 16U);
  gathers_->begin_forward();
  const at::Tensor y = block(2, block(0, at::ones({2}).requires_grad_()));
  gathers_->end_forward();
  y.sum().backward();
  gathers_->finish();
  EXPECT_EQ(without_blocks(), wanted);
  // Nothing asks for a gradient.
  gathers_->begin_forward();
  block(1, at::ones({2}));
  gathers_->finish();
  EXPECT_EQ(without_blocks(), wanted);
}

// Forward passes without a backward pass, and in place of those that another process has more.
TEST_F(Gathers, EachPassOfAnEvaluation) {
  places_->release_all();
  const at::NoGradGuard no_grad;
  gathers_->begin_inference();
  block(2, block(1, block(0, at::ones({2}))));
  EXPECT_EQ(calls(), kForward);
  gathers_->begin_inference();
  EXPECT_EQ(calls(), (Names{"gather others", "gather 0", "wait others"}));
  gathers_->begin_inference();
  EXPECT_EQ(calls(), (Names{"wait 0", "gather 1", "wait 1", "gather 2", "wait 2", "gather others",
                            "gather 0", "wait others"}));
  gathers_->end_inference();
  EXPECT_EQ(calls(), (Names{"wait 0", "gather 1", "wait 1", "gather 2", "wait 2"}));
  block(0, at::ones({2}));
  EXPECT_EQ(calls(), Names{"forward 0"});
}

TEST_F(Gathers, NothingForAnEvaluationIfAllIsThere) {
  gathers_->begin_inference();
  block(0, at::ones({2}));
  gathers_->end_inference();
  EXPECT_EQ(calls(), Names{"forward 0"});
}

TEST_F(Gathers, NothingOutsideOfAPass) {
  block(1, at::ones({2}));
  EXPECT_EQ(calls(), Names{"forward 1"});
  gathers_->begin_forward();
  gathers_->abort();
  calls();
  block(0, at::ones({2}));
  EXPECT_EQ(calls(), Names{"forward 0"});
}

TEST_F(Gathers, RejectsABlockThatIsComputedAgain) {
  gathers_->begin_forward();
  const at::Tensor x = block(1, at::ones({2}));
  EXPECT_EQ(error_of([&] { block(1, x); }).find("parallel.name=zero-3: block 1 of the model runs "),
            0U);
}

TEST_F(Gathers, ListsTheCallsOfAPass) {
  const auto names = [](const std::vector<PendingCollective>& calls) {
    std::vector<int64_t> sizes;
    for (const auto& call : calls) sizes.push_back(call.tensor.numel() / (2 * kElements) - 1);
    return sizes;
  };
  EXPECT_EQ(names(gathers_->forward_calls()), (std::vector<int64_t>{-1, 0, 1, 2}));
  const auto reduce = [](size_t block) {
    return all_reduces_of({at::ones({(10 + static_cast<int64_t>(block)) * 2 * kElements})});
  };
  EXPECT_EQ(names(gathers_->backward_calls(reduce)), (std::vector<int64_t>{1, 11, 0, 10, 9, 12}));
}

}  // namespace
}  // namespace gallop::parallel
