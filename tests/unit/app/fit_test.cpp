#include <memory>

#include <ATen/ops/arange.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/base/temporary_folder.h"
#include "gallop/gallop.h"

namespace gallop {
namespace {

struct Line : torch::nn::Module {
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(1, 1));
  at::Tensor forward(const at::Tensor& x) { return linear->forward(x); }
};

class Fit : public testing::Test {
 protected:
  train::Outcome fit(const std::string& recipe) {
    Trainer trainer(
        {.name = "line", .runs = folder_.path().string(), .recipe = recipe, .quiet = true});
    const at::Tensor x = at::arange(32, at::kFloat).unsqueeze(1) / 32;
    return trainer.fit(std::make_shared<Line>(), regression_data(x, 3 * x - 1));
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
