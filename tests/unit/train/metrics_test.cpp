#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <random>

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/data/samples.h"
#include "gallop/train/metrics/edit_distance.h"
#include "gallop/train/metrics/exact_sum.h"
#include "gallop/train/metrics/loss_metrics.h"
#include "gallop/train/metrics/metric.h"
#include "gallop/train/metrics/ranking.h"
#include "unit/train/metric_cases.h"

namespace gallop::train {
namespace {

// Tallies are sums of fp32.
double tolerance_of(const Metric& metric) { return metric.state_key() == kTallyKey ? 1e-5 : 1e-12; }

void expect_value(const MetricValue& found, const nlohmann::json& wanted, double tolerance) {
  ASSERT_EQ(found.value.has_value(), !wanted.is_null()) << found.name;
  if (!found.value) return;
  const double number = wanted.get<double>();
  EXPECT_NEAR(*found.value, number, tolerance * std::max(1.0, std::abs(number))) << found.name;
}

TEST(Metrics, EqualScikitLearn) {
  for (const MetricCase& tested : metric_cases()) {
    SCOPED_TRACE(tested.name);
    for (const auto& [text, wanted] : tested.values.items()) {
      SCOPED_TRACE(text);
      const auto metric = metric_of(text, tested.task);
      const auto state = metric->make_state();
      state->add(tested.all);
      const auto found = metric->values(*state);
      const double tolerance = tolerance_of(*metric);
      if (!wanted.is_array()) {
        ASSERT_EQ(found.size(), 1U);
        EXPECT_EQ(found.front().name, metric->name());
        expect_value(found.front(), wanted, tolerance);
        continue;
      }
      ASSERT_EQ(found.size(), wanted.size());
      EXPECT_FALSE(metric->is_single());
      for (size_t i = 0; i < found.size(); ++i) expect_value(found[i], wanted[i], tolerance);
    }
  }
}

// Distributes samples randomly over states, which read them in batches of random sizes.
std::vector<std::unique_ptr<MetricState>> states_of(const Metric& metric, const Predictions& all,
                                                    size_t states, std::mt19937& random) {
  std::vector<std::unique_ptr<MetricState>> result;
  for (size_t i = 0; i < states; ++i) result.push_back(metric.make_state());
  for (int64_t begin = 0, end = 0; begin < all.target.size(0); begin = end) {
    end = std::min<int64_t>(all.target.size(0), begin + 1 + random() % 9);
    result[random() % states]->add(part_of(all, begin, end));
  }
  return result;
}

TEST(Metrics, AnyPartitionGivesTheSameBits) {
  std::mt19937 random(5);
  for (const MetricCase& tested : metric_cases()) {
    for (const auto& [text, wanted] : tested.values.items()) {
      const auto metric = metric_of(text, tested.task);
      if (metric->state_key() == kTallyKey && metric->name() != "accuracy") continue;
      SCOPED_TRACE(tested.name + ": " + text);
      const auto whole = metric->make_state();
      whole->add(tested.all);
      const auto values = metric->values(*whole);
      for (int repeat = 0; repeat < 4; ++repeat) {
        const auto states = states_of(*metric, tested.all, 1 + random() % 4, random);
        // Merged in any order, as from other processes.
        std::vector<size_t> order(states.size());
        std::iota(order.begin(), order.end(), 0U);
        std::shuffle(order.begin(), order.end(), random);
        const auto merged = metric->make_state();
        for (const size_t i : order) {
          const auto sent = metric->make_state();
          sent->from_bytes(states[i]->to_bytes());
          merged->merge(*sent);
        }
        const auto found = metric->values(*merged);
        ASSERT_EQ(found.size(), values.size());
        for (size_t i = 0; i < found.size(); ++i) {
          EXPECT_EQ(found[i].name, values[i].name);
          EXPECT_EQ(found[i].value, values[i].value) << found[i].name;
        }
      }
    }
  }
}

TEST(Metrics, TakeClassesAsTheSecondDimensionToo) {
  for (const MetricCase& tested : metric_cases()) {
    if (tested.name != "pixels") continue;
    for (const auto& [text, wanted] : tested.values.items()) {
      if (wanted.is_array()) continue;
      const auto metric = metric_of(text, tested.task);
      const auto state = metric->make_state();
      state->add({.outputs = tested.all.outputs.movedim(-1, 1), .target = tested.all.target});
      expect_value(metric->values(*state).front(), wanted, tolerance_of(*metric));
    }
    return;
  }
  FAIL() << "no such case";
}

TEST(Metrics, AlignWithTheFewestEdits) {
  using Sequence = std::vector<int64_t>;
  std::mt19937 random(3);
  const auto draw = [&random] {
    Sequence all(random() % 7);
    for (int64_t& one : all) one = static_cast<int64_t>(random() % 3);
    return all;
  };
  for (int repeat = 0; repeat < 200; ++repeat) {
    const Sequence target = draw(), predicted = draw();
    Sequence of_target, of_predicted;
    for (const Edit& edit : align(target, predicted)) {
      if (edit.target != data::kIgnoredTarget) of_target.push_back(edit.target);
      if (edit.predicted != data::kIgnoredTarget) of_predicted.push_back(edit.predicted);
    }
    EXPECT_EQ(of_target, target);
    EXPECT_EQ(of_predicted, predicted);
  }
  // Rows of the matrix are targets; class 0, the blank, stands for what is inserted and deleted.
  const MetricTask task{.target = MetricTask::Target::kSequences, .classes = 4};
  const auto metric = make_aligned_confusion(task);
  const auto state = metric->make_state();
  const int64_t none = data::kIgnoredTarget;
  const std::vector<int64_t> outputs = {1, 3, 3, 2, 2, none, none, none};
  const std::vector<int64_t> targets = {1, 2, 3, 2, 1, none};
  state->add({.outputs = at::tensor(outputs).reshape({2, 4}),
              .target = at::tensor(targets).reshape({2, 3})});
  const auto merged = metric->make_state();
  merged->from_bytes(state->to_bytes());
  merged->merge(*state);
  const FigureData figure = metric->figures(*merged).front();
  const auto& counts = std::get<ConfusionMatrix>(figure.data).counts;
  int64_t errors = 0, all = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    for (size_t j = 0; j < counts.size(); ++j) {
      all += counts[i][j];
      if (i != j) errors += counts[i][j];
    }
  }
  EXPECT_EQ(all, 2 * 6);
  EXPECT_EQ(errors, 2 * 3);
  EXPECT_EQ(counts[1][0], 2);
  EXPECT_EQ(counts[0][0], 0);
}

// As many classes as rows and columns: the second dimension is that of classes, as in losses.
TEST(Metrics, TakeTheSecondDimensionAsClassesOfSquareImages) {
  const at::Tensor outputs = at::randn({2, 4, 4, 4}), target = outputs.argmax(1);
  const auto metric = metric_of("accuracy", {.classes = 4});
  const auto state = metric->make_state();
  state->add({.outputs = outputs, .target = target});
  EXPECT_EQ(metric->values(*state).front().value, 1.0);
}

TEST(Metrics, OfASingleClassAreUndefined) {
  const auto metric = metric_of("roc-auc", {.classes = 1});
  const auto state = metric->make_state();
  state->add({.outputs = at::randn({4, 1}), .target = at::zeros({4}, at::kLong)});
  EXPECT_FALSE(metric->values(*state).front().value);
}

TEST(Metrics, CountTop5AsTopK) {
  const at::Tensor logits = at::tensor({1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, NAN}).repeat({8, 1});
  const at::Tensor target = at::arange(8);
  const Tally tally = count_correct(logits, target, /*with_top5=*/true);
  const auto metric = metric_of("top-k k=5", {.classes = 8});
  const auto state = metric->make_state();
  state->add({.outputs = logits, .target = target});
  EXPECT_EQ(tally.top5, 5);
  EXPECT_EQ(metric->values(*state).front().value, 5 / 8.0);
}

TEST(Metrics, OfNothingAreUndefined) {
  using Target = MetricTask::Target;
  const MetricRegistry registry = built_in_metrics();
  for (const Target target : {Target::kClasses, Target::kTokens, Target::kBinary, Target::kLabels,
                              Target::kNumbers, Target::kPairs}) {
    const MetricTask task{.target = target, .classes = 3, .tokens_are_characters = true};
    for (const std::string& name : registry.names()) {
      try {
        const auto metric = metric_of(name, task);
        const auto state = metric->make_state();
        for (const MetricValue& one : metric->values(*state)) {
          EXPECT_FALSE(one.value) << name;
          EXPECT_EQ(one.higher_is_better, metric->higher_is_better()) << name;
        }
        const auto other = metric->make_state();
        other->from_bytes(state->to_bytes());
        state->merge(*other);
        EXPECT_FALSE(metric->values(*state).front().value) << name;
      } catch (const UsageError& error) {
        EXPECT_NE(std::string(error.what()).find("metric '" + (name == "auto" ? "loss" : name)),
                  std::string::npos)
            << error.what();
      }
    }
  }
}

TEST(Metrics, OfOutputsThatAreNoNumbersAreUndefinedOrCountThemAsWrong) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const MetricTask classes{.classes = 3}, numbers{.target = MetricTask::Target::kNumbers};
  const Predictions bad{.outputs = at::full({4, 3}, nan), .target = at::zeros({4}, at::kLong)};
  for (const char* name : {"roc-auc", "average-precision", "expected-calibration-error",
                           "mean-average-precision", "recall-at-k k=1"}) {
    const auto metric = metric_of(name, classes);
    const auto state = metric->make_state();
    state->add(bad);
    EXPECT_FALSE(metric->values(*state).front().value) << name;
  }
  const auto top2 = metric_of("top-k k=2", classes);
  const auto state = top2->make_state();
  state->add(bad);
  EXPECT_EQ(top2->values(*state).front().value, 0.0);
  for (const char* name : {"mse", "mae", "r2"}) {
    const auto metric = metric_of(name, numbers);
    const auto errors = metric->make_state();
    errors->add({.outputs = at::full({4}, nan), .target = at::zeros({4})});
    EXPECT_FALSE(metric->values(*errors).front().value) << name;
  }
}

std::string refusal_of(const std::string& text, const MetricTask& task) {
  try {
    metric_of(text, task);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Metrics, AreRefusedWhereTheyHaveNoMeaning) {
  using Target = MetricTask::Target;
  EXPECT_EQ(refusal_of("r2", {.classes = 3}),
            "metric 'r2' needs numbers as targets, but the targets of these data are one class "
            "each; leave it out of train.metric and train.metrics");
  EXPECT_NE(refusal_of("roc-auc", {.target = Target::kTokens, .classes = 9}), "");
  EXPECT_NE(refusal_of("mcc", {.target = Target::kLabels, .classes = 9}), "");
  EXPECT_NE(refusal_of("f1", {.target = Target::kNumbers}), "");
  for (const char* name : {"f1", "mcc", "roc-auc", "expected-calibration-error", "mae", "top5"}) {
    EXPECT_NE(refusal_of(name, {.target = Target::kPairs}), "") << name;
  }
  EXPECT_NE(refusal_of("recall-at-k", {.target = Target::kNumbers}), "");
  EXPECT_NE(refusal_of("bits-per-character", {.target = Target::kTokens, .classes = 256}), "");
}

// Directions on a circle with irrelevant lengths: each first one is matched to its partner.
TEST(Metrics, RankPartnersOfABatchByTheirCosine) {
  const auto at_angle = [](double degrees, double length) {
    const double angle = degrees * std::numbers::pi / 180;
    return at::tensor({length * std::cos(angle), length * std::sin(angle)}, at::kFloat);
  };
  const auto pair = [&](double query, double key) {
    return at::stack({at_angle(query, 3), at_angle(key, key + 1)});
  };
  // Partners rank first, second and second by similarity.
  const Predictions all{.outputs = at::stack({pair(0, 10), pair(80, 50), pair(60, 90)}),
                        .target = at::ones({3})};
  const MetricTask task{.target = MetricTask::Target::kPairs};
  const auto value_of = [&](const std::string& name, const std::vector<Predictions>& batches) {
    const auto metric = metric_of(name, task);
    const auto sum = metric->make_state();
    for (const Predictions& batch : batches) {
      const auto state = metric->make_state();
      state->add(batch);
      sum->merge(*state);
    }
    return metric->values(*sum).front().value;
  };
  EXPECT_DOUBLE_EQ(*value_of("recall-at-k k=1", {all}), 1.0 / 3);
  EXPECT_DOUBLE_EQ(*value_of("recall-at-k k=2", {all}), 1);
  EXPECT_DOUBLE_EQ(*value_of("mean-average-precision", {all}), (1 + 0.5 + 0.5) / 3);
  const auto one_by_one = {part_of(all, 2, 3), part_of(all, 0, 1), part_of(all, 1, 2)};
  EXPECT_DOUBLE_EQ(*value_of("recall-at-k k=1", one_by_one), 1.0 / 3);
  EXPECT_DOUBLE_EQ(*value_of("mean-average-precision", one_by_one), (1 + 0.5 + 0.5) / 3);
  // A batch of which all samples are broken is empty.
  EXPECT_DOUBLE_EQ(*value_of("recall-at-k k=1", {part_of(all, 0, 0), all}), 1.0 / 3);
  // Embeddings that are all the same find nothing.
  const std::vector<Predictions> same = {{at::ones({4, 2, 3}), at::ones({4})}};
  EXPECT_EQ(*value_of("recall-at-k k=3", same), 0);
  EXPECT_EQ(*value_of("mean-average-precision", same), 0.25);
  EXPECT_EQ(metric_of("auto", task)->name(), "loss");
  // A pair that does not match is neither a query nor found.
  const Predictions signs{.outputs = at::stack({pair(0, 10), pair(80, 50), pair(60, 90)}),
                          .target = at::tensor({1., -1., 1.})};
  EXPECT_DOUBLE_EQ(*value_of("recall-at-k k=1", {signs}), 1);
  EXPECT_DOUBLE_EQ(*value_of("recall-at-k k=1", {part_of(signs, 1, 3), part_of(signs, 0, 1)}), 1);
  EXPECT_FALSE(value_of("recall-at-k", {part_of(signs, 1, 2)}));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(value_of("recall-at-k", {{at::full({2, 2, 3}, nan), at::ones({2})}}));
  EXPECT_THROW(value_of("recall-at-k", {{at::ones({2, 3}), at::ones({2})}}), InternalError);
}

TEST(Metrics, HaveTheNamesOfTheirOptions) {
  const MetricTask task{.classes = 3, .class_names = {"cat", "dog"}};
  EXPECT_EQ(metric_of("f1", task)->name(), "f1");
  EXPECT_EQ(metric_of("f1 average=micro", task)->name(), "f1-micro");
  EXPECT_EQ(metric_of("top-k k=3", task)->name(), "top3");
  EXPECT_EQ(metric_of("top-k", task)->name(), "top5");
  EXPECT_EQ(metric_of("recall-at-k k=2", task)->name(), "recall-at-2");
  EXPECT_EQ(metric_of("expected-calibration-error", task)->name(), "expected-calibration-error");
  EXPECT_EQ(metric_of("expected-calibration-error bins=5", task)->name(),
            "expected-calibration-error-5");
  EXPECT_EQ(metric_of("auto", task)->name(), "accuracy");
  EXPECT_EQ(metric_of("auto", {.target = MetricTask::Target::kTokens})->name(), "loss");
  const auto each = metric_of("recall average=per-class", task);
  const auto values = each->values(*each->make_state());
  ASSERT_EQ(values.size(), 3U);
  EXPECT_EQ(values[0].name, "recall/cat");
  EXPECT_EQ(values[2].name, "recall/class-2");
}

TEST(ExactSum, RoundsNothingUntilTheEnd) {
  ExactSum sum;
  for (const double one : {1e300, 1.0, 1e-300, -1e300, 5e-324, -1e-300}) sum.add(one);
  EXPECT_EQ(sum.value(), 1.0);
  sum.add(-1);
  EXPECT_EQ(sum.value(), 5e-324);
  sum.add(-1e-323);
  EXPECT_EQ(sum.value(), -5e-324);
  ExactSum product;
  product.add_product(1 + 0x1p-52, 1 + 0x1p-52);
  product.add(-1);
  product.add(-0x1p-51);
  EXPECT_EQ(product.value(), 0x1p-104);
  ExactSum largest;
  for (int i = 0; i < 4; ++i) largest.add(std::numeric_limits<double>::max());
  EXPECT_EQ(largest.value(), std::numeric_limits<double>::infinity());
  for (int i = 0; i < 3; ++i) largest.add(-std::numeric_limits<double>::max());
  EXPECT_EQ(largest.value(), std::numeric_limits<double>::max());
}

TEST(ExactSum, HasOneValueInAnyOrderAndGrouping) {
  std::mt19937_64 random(3);
  std::vector<double> numbers;
  std::uniform_real_distribution<double> mantissa(-1, 1);
  for (int i = 0; i < 3000; ++i) {
    numbers.push_back(std::ldexp(mantissa(random), static_cast<int>(random() % 200) - 100));
  }
  ExactSum whole;
  for (const double one : numbers) whole.add(one);
  long double plain = 0;
  for (const double one : numbers) plain += one;
  EXPECT_NEAR(whole.value(), static_cast<double>(plain), std::abs(whole.value()) * 1e-12);
  for (int repeat = 0; repeat < 5; ++repeat) {
    std::shuffle(numbers.begin(), numbers.end(), random);
    std::vector<ExactSum> parts(1 + random() % 6);
    for (const double one : numbers) parts[random() % parts.size()].add(one);
    ExactSum merged;
    for (const ExactSum& part : parts) merged.merge(part);
    EXPECT_EQ(merged.value(), whole.value());
    EXPECT_TRUE(merged == whole);
  }
}

TEST(ExactSum, KeepsWhatIsNotFinite) {
  const double infinity = std::numeric_limits<double>::infinity();
  ExactSum sum, other;
  sum.add(infinity);
  sum.add(1);
  EXPECT_EQ(sum.value(), infinity);
  other.add(-infinity);
  EXPECT_EQ(other.value(), -infinity);
  sum.merge(other);
  EXPECT_TRUE(std::isnan(sum.value()));
}

TEST(ScoreCounts, MergesManyScoresAndKeepsEachOnce) {
  const MetricTask task{.target = MetricTask::Target::kBinary, .classes = 2};
  ScoreCounts counts(task);
  constexpr int64_t kRows = 5000;
  const at::Tensor outputs = at::randn({kRows}).mul(40).round().div(8);
  const at::Tensor target = outputs.add(at::randn({kRows})).gt(0).to(at::kLong);
  for (int64_t begin = 0; begin < kRows; begin += 500) {
    counts.add(part_of({.outputs = outputs, .target = target}, begin, begin + 500));
  }
  const auto entries = counts.entries();
  ASSERT_EQ(entries.size(), 1U);
  int64_t positives = 0, all = 0;
  for (size_t i = 0; i < entries[0].size(); ++i) {
    if (i > 0) {
      ASSERT_LT(entries[0][i - 1].key, entries[0][i].key);
    }
    positives += entries[0][i].positives;
    all += entries[0][i].positives + entries[0][i].negatives;
  }
  EXPECT_EQ(all, kRows);
  EXPECT_EQ(positives, target.sum().item<int64_t>());
  EXPECT_LT(entries[0].size(), 400U);
}

}  // namespace
}  // namespace gallop::train
