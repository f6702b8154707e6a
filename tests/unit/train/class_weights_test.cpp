// Class weights against scikit-learn, the reference of the class-balanced loss and PyTorch
// (tests/parity/make_class_weights.py made the fixture).
#include "gallop/train/losses/class_weights.h"

#include <fstream>

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "unit/base/error_of.h"
#include "unit/fixtures.h"
#include "unit/train/loss_cases.h"

namespace gallop::train {
namespace {

nlohmann::json cases() {
  std::ifstream file(fixtures() / "class_weights.json");
  return nlohmann::json::parse(file);
}

LossContext context_of(const std::vector<int64_t>& counts) {
  const auto classes = static_cast<int64_t>(counts.size());
  return {
      .output_sizes = {classes}, .target_sizes = {}, .classes = classes, .class_counts = [counts] {
        return counts;
      }};
}

void expect_near(const std::vector<double>& found, const std::vector<double>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-10 * wanted[i]);
}

double mean_loss(const std::string& text, const nlohmann::json& one) {
  const auto counts = one.at("counts").get<std::vector<int64_t>>();
  const auto labels = one.at("labels").get<std::vector<int64_t>>();
  std::vector<at::Tensor> rows;
  for (const auto& row : one.at("logits")) {
    rows.push_back(at::tensor(row.get<std::vector<double>>(), at::kDouble));
  }
  const auto loss = loss_of(text, context_of(counts));
  const auto [sum, count] = (*loss)({at::stack(rows)}, {{"target", at::tensor(labels, at::kLong)}});
  return sum.div(count).item<double>();
}

TEST(ClassWeights, EqualScikitLearnAndTheReference) {
  for (const auto& one : cases()) {
    const auto context = context_of(one.at("counts").get<std::vector<int64_t>>());
    SCOPED_TRACE(one.at("counts").dump());
    expect_near(class_weights("x", {.class_weights = {"balanced"}}, context),
                one.at("balanced").get<std::vector<double>>());
    EXPECT_NEAR(mean_loss("cross-entropy class_weights=balanced", one),
                one.at("balanced_loss").get<double>(), 1e-12);
    for (const auto& effective : one.at("effective")) {
      const auto beta = effective.at("beta").get<double>();
      expect_near(
          class_weights("x", {.class_weights = {"effective-number"}, .beta = beta}, context),
          effective.at("weights").get<std::vector<double>>());
      EXPECT_NEAR(
          mean_loss(fmt::format("cross-entropy class_weights=effective-number beta={}", beta), one),
          effective.at("loss").get<double>(), 1e-10);
    }
  }
}

TEST(LogitAdjustment, EqualsPyTorchsLossOfAdjustedLogits) {
  for (const auto& one : cases()) {
    for (const auto& [factor, wanted] : one.at("adjusted_loss").items()) {
      EXPECT_NEAR(mean_loss("cross-entropy logit_adjustment=" + factor, one), wanted.get<double>(),
                  1e-12);
    }
  }
}

// Correct predictions are counted before the adjustment.
TEST(LogitAdjustment, LeavesPredictions) {
  const auto loss = loss_of("cross-entropy logit_adjustment=1", context_of({1000, 1}));
  const at::Tensor logits = at::tensor({0., 1.}).reshape({1, 2});
  const NamedTensors batch = {{"target", at::ones({1}, at::kLong)}};
  const Losses losses = loss->sum_and_correct({logits}, batch, {.count_correct = true});
  EXPECT_EQ(losses.correct.item<int64_t>(), 1);
}

TEST(ClassWeights, RejectWhatIsNoWeight) {
  const LossContext context = context_of({3, 4});
  const auto error = [&](const std::string& text) {
    return error_of([&] { loss_of(text, context); });
  };
  EXPECT_NE(error("cross-entropy class_weights=balance").find("'balance'"), std::string::npos);
  EXPECT_NE(error("cross-entropy class_weights=[1,-1]").find("'-1'"), std::string::npos);
  EXPECT_NE(error("cross-entropy class_weights=[balanced,1]").find("one name"), std::string::npos);
  EXPECT_NE(error("focal class_weights=[1,2,3]").find("2 classes"), std::string::npos);
  LossContext without = context;
  without.class_counts = {};
  for (const char* text : {"cross-entropy class_weights=balanced", "focal class_weights=balanced",
                           "cross-entropy logit_adjustment=1"}) {
    EXPECT_NE(error_of([&] { loss_of(text, without); }).find("one class label for each"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace gallop::train
