#include <memory>

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/scalar_tensor.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/base/temporary_folder.h"
#include "gallop/gallop.h"

namespace gallop {
namespace {

struct Line : torch::nn::Module {
  Line() {
    const at::NoGradGuard no_grad;
    linear->weight.fill_(0.5);
    linear->bias.zero_();
  }
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(1, 1));
  at::Tensor forward(const at::Tensor& x) { return linear->forward(x); }
};

class Fit : public testing::Test {
 protected:
  train::Outcome fit(const std::string& recipe, const std::vector<std::string>& overrides = {}) {
    const at::Tensor x = at::arange(32, at::kFloat).unsqueeze(1) / 32;
    return fit(recipe, overrides, regression_data(x, 3 * x - 1));
  }
  train::Outcome fit(const std::string& recipe, const std::vector<std::string>& overrides,
                     const FitData& data) {
    Trainer trainer({.name = "line",
                     .runs = folder_.path().string(),
                     .overrides = overrides,
                     .recipe = recipe,
                     .quiet = true});
    return trainer.fit(std::make_shared<Line>(), data);
  }
  const fs::path& runs() const { return folder_.path(); }

 private:
  const TemporaryFolder folder_{fs::temp_directory_path(), "gallop-fit-test-"};
};

TEST_F(Fit, TrainsToTheEndOfTheRecipe) {
  const auto outcome = fit("{data: {batch_size: 8}, train: {epochs: 2, threads: 1}}");
  EXPECT_TRUE(outcome.finished);
  EXPECT_EQ(outcome.step, 8);
  EXPECT_TRUE(fs::exists(runs() / "line" / "recipe.yaml"));
}

TEST_F(Fit, TrainsOnComputedSamples) {
  const auto sample = [](int64_t index, int64_t) {
    const double x = static_cast<double>(index) / 32;
    return Sample{.input = at::full({1}, x), .target = at::scalar_tensor(3 * x - 1)};
  };
  const std::string recipe =
      "{data: {batch_size: 8, validation: 0.25}, train: {epochs: 2, threads: 1}}";
  const auto computed = fit(recipe, {"data.threads=2"}, computed_data(32, sample));
  EXPECT_EQ(computed.step, 6);
  fs::remove_all(runs() / "line");
  const auto in_memory = fit(recipe);
  ASSERT_TRUE(computed.last && in_memory.last);
  EXPECT_EQ(computed.last->evaluation.tally.loss(), in_memory.last->evaluation.tally.loss());
}

TEST_F(Fit, OverridesOptionsOfTheRecipe) {
  const std::string recipe = "{data: {batch_size: 8}, train: {epochs: 2, threads: 1}}";
  EXPECT_EQ(fit(recipe, {"train.epochs=3", "data.batch_size=16"}).step, 6);
  try {
    fit(recipe, {"epochs"});
    FAIL() << "trained with an override that names no option";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "'epochs' is no option of a recipe; write SECTION.OPTION=VALUE, such as "
                 "optimizer.lr=0.1");
  }
}

TEST(RunMain, ReturnsTheExitCodeOfTheOutcomeOrError) {
  EXPECT_EQ(run_main([] { return train::Outcome{.finished = true}; }), 0);
  EXPECT_EQ(run_main([] { return train::Outcome{.finished = false}; }), 5);
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_main([]() -> train::Outcome { throw DataError("damaged"); }), 3);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "gallop: damaged\n");
}

// Batch sizes are tried by copies of the command-line program, which this binary is not.
TEST_F(Fit, NamesABatchSizeThatItCannotFind) {
  try {
    fit("{data: {batch_size: auto}, train: {epochs: 2}}");
    FAIL() << "trained with a batch size that was left open";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("data.batch_size: auto"), std::string::npos);
  }
  EXPECT_TRUE(fs::is_empty(runs()));
}

}  // namespace
}  // namespace gallop
