// Losses against PyTorch's (tests/parity/make_losses.py made the fixture), in parts, and with
// unsupported data.
#include <algorithm>
#include <map>
#include <random>
#include <set>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/tensor/safetensors.h"
#include "gallop/train/losses/ctc.h"
#include "gallop/train/losses/loss.h"
#include "unit/base/error_of.h"
#include "unit/fixtures.h"
#include "unit/train/loss_cases.h"

namespace gallop::train {
namespace {

/// One stored case: a loss with its options, on the fields of a kind of data.
struct Stored {
  std::string kind, loss;
  at::Tensor logits;
  NamedTensors batch;
  at::Tensor mean_and_gradient;
};

std::vector<Stored> stored_cases() {
  const fs::path path = fixtures() / "losses.safetensors";
  std::map<std::string, std::map<std::string, at::Tensor>> kinds;
  std::vector<Stored> cases;
  const auto all = read_safetensors(path).tensors;
  for (const auto& [name, tensor] : all) {
    if (!name.starts_with("IN/")) continue;
    const size_t end = name.find('/', 3);
    kinds[name.substr(3, end - 3)][name.substr(end + 1)] = tensor;
  }
  for (const auto& [name, tensor] : all) {
    const size_t bar = name.find('|');
    if (bar == std::string::npos) continue;
    Stored one{
        .kind = name.substr(0, bar), .loss = name.substr(bar + 1), .mean_and_gradient = tensor};
    const auto& fields = kinds.at(one.kind);
    one.logits = fields.at("logits");
    one.batch.push_back({"target", fields.at("target")});
    for (const auto& [field, value] : fields) {
      if (field != "logits" && field != "target") one.batch.push_back({field, value});
    }
    cases.push_back(std::move(one));
  }
  return cases;
}

std::shared_ptr<const Loss> loss_of(const Stored& one) {
  return loss_of(one.loss, context_of(one.logits, one.batch.front().tensor));
}

double largest_difference(const at::Tensor& found, const at::Tensor& wanted) {
  return (found - wanted).abs().max().item<double>();
}

TEST(Losses, HaveThePyTorchValuesAndGradientsForAllOptions) {
  std::map<std::string, int> counts;
  for (const Stored& one : stored_cases()) {
    SCOPED_TRACE(one.kind + ": " + one.loss);
    counts[one.loss.substr(0, one.loss.find(' '))] += 1;
    const at::Tensor logits = one.logits.clone().requires_grad_();
    const auto [sum, count] = (*loss_of(one))({logits}, one.batch);
    EXPECT_EQ(count.scalar_type(), at::kDouble);
    EXPECT_EQ(sum.dim() + count.dim(), 0);
    const at::Tensor mean = sum.div(count);
    mean.backward();
    const double wanted = one.mean_and_gradient[0].item<double>();
    EXPECT_NEAR(mean.item<double>(), wanted, 1e-11 * std::max(1.0, std::abs(wanted)));
    EXPECT_LT(largest_difference(logits.grad().flatten(), one.mean_and_gradient.slice(0, 1)),
              1e-11);
  }
  const LossRegistry losses = built_in_losses();
  for (const auto& member : losses.members()) {
    // weighted-sum is composed of others, and model is computed by the model.
    const bool is_stored = member.name != "weighted-sum" && member.name != "model";
    EXPECT_EQ(counts[member.name] > 0, is_stored) << member.name;
  }
}

// fp32 and bf16 outputs are summed in fp32.
TEST(Losses, WidenNarrowOutputs) {
  for (const Stored& one : stored_cases()) {
    SCOPED_TRACE(one.kind + ": " + one.loss);
    const auto loss = loss_of(one);
    for (const auto format : {at::kFloat, at::kBFloat16}) {
      const at::Tensor logits = one.logits.to(format).requires_grad_();
      const at::Tensor sum = loss->sum({logits}, one.batch);
      EXPECT_EQ(sum.scalar_type(), at::kFloat);
      sum.backward();
      EXPECT_EQ(logits.grad().scalar_type(), format);
      const double wanted =
          loss->sum({one.logits.to(format).to(at::kDouble)}, one.batch).item<double>();
      EXPECT_NEAR(sum.item<double>(), wanted, 2e-5 * std::max(1.0, std::abs(wanted)));
    }
  }
}

NamedTensors some_rows(const NamedTensors& batch, int64_t begin, int64_t end) {
  NamedTensors some;
  for (const auto& [name, tensor] : batch) some.push_back({name, tensor.slice(0, begin, end)});
  return some;
}

// In fp64, the sums and gradients over the parts equal those over the whole batch.
TEST(Losses, AreTheSameForAnyPartitionOfABatch) {
  std::mt19937 random(1);
  int tried = 0;
  for (const Stored& one : stored_cases()) {
    SCOPED_TRACE(one.kind + ": " + one.loss);
    const auto loss = loss_of(one);
    if (loss->traits().needs_whole_batch || loss->traits().compares_samples) continue;
    const int64_t rows = one.logits.size(0);
    const at::Tensor whole = one.logits.clone().requires_grad_();
    const auto wanted = (*loss)({whole}, one.batch);
    wanted.sum.backward();
    EXPECT_EQ(loss->count(some_rows(one.batch, 0, 0)).item<double>(), 0);
    for (int64_t parts = 2; parts <= rows; ++parts) {
      std::set<int64_t> cuts = {0, rows};
      while (static_cast<int64_t>(cuts.size()) <= parts) {
        cuts.insert(std::uniform_int_distribution<int64_t>(1, rows - 1)(random));
      }
      const at::Tensor logits = one.logits.clone().requires_grad_();
      double sum = 0, count = 0;
      for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut) {
        const int64_t begin = *cut, end = *std::next(cut);
        const auto part = (*loss)({logits.slice(0, begin, end)}, some_rows(one.batch, begin, end));
        part.sum.backward();
        sum += part.sum.item<double>();
        count += part.count.item<double>();
      }
      EXPECT_NEAR(sum, wanted.sum.item<double>(), 1e-10);
      EXPECT_NEAR(count, wanted.count.item<double>(), 1e-10);
      EXPECT_LT(largest_difference(logits.grad(), whole.grad()), 1e-10);
      tried += 1;
    }
  }
  EXPECT_GT(tried, 300);
}

// A sample of weight w has the loss, the gradient and the count of w equal samples.
TEST(Losses, CountASampleAsOftenAsItsWeight) {
  std::set<std::string> tried;
  for (const Stored& one : stored_cases()) {
    SCOPED_TRACE(one.kind + ": " + one.loss);
    const auto loss = loss_of(one);
    if (find_tensor(one.batch, "weight") != nullptr || loss->traits().compares_samples) continue;
    ASSERT_TRUE(loss->traits().takes_weights);
    const at::Tensor times = at::arange(one.logits.size(0), at::kLong).remainder(3);
    NamedTensors weighted = one.batch, repeated;
    weighted.push_back({"weight", times.to(at::kFloat)});
    for (const auto& [name, tensor] : one.batch) {
      repeated.push_back({name, tensor.repeat_interleave(times, 0)});
    }
    const at::Tensor logits = one.logits.clone().requires_grad_();
    const at::Tensor others = one.logits.clone().requires_grad_();
    const auto found = (*loss)({logits}, weighted);
    const auto wanted = (*loss)({others.repeat_interleave(times, 0)}, repeated);
    found.sum.backward();
    wanted.sum.backward();
    EXPECT_NEAR(found.sum.item<double>(), wanted.sum.item<double>(), 1e-10);
    EXPECT_NEAR(found.count.item<double>(), wanted.count.item<double>(), 1e-10);
    EXPECT_LT(largest_difference(logits.grad(), others.grad()), 1e-10);
    tried.insert(one.loss.substr(0, one.loss.find(' ')));
  }
  const LossRegistry losses = built_in_losses();
  for (const auto& member : losses.members()) {
    const bool is_stored = member.name != "weighted-sum" && member.name != "model";
    EXPECT_EQ(tried.count(member.name) > 0, is_stored) << member.name;
  }
}

TEST(Losses, TakeWeightsInASumIfAllMembersDo) {
  const LossContext context{.output_sizes = {1}, .target_sizes = {1}, .target_type = c10::kFloat};
  EXPECT_FALSE(loss_of("model", context)->traits().takes_weights);
  EXPECT_TRUE(loss_of("weighted-sum losses=[l1,mse]", context)->traits().takes_weights);
}

// The divisor of a step that is known without asking the device.
TEST(Losses, ExpectTheCountThatTheyHaveWithoutIgnoredTargets) {
  int followed = 0;
  for (const Stored& one : stored_cases()) {
    SCOPED_TRACE(one.kind + ": " + one.loss);
    const auto loss = loss_of(one);
    const at::Tensor& target = one.batch.front().tensor;
    const bool has_ignored = !target.is_floating_point() && target.eq(-100).any().item<bool>();
    const bool has_weights = one.kind.find("weighted") != std::string::npos;
    const LossTraits traits = loss->traits();
    if (!traits.counts_by_size || (traits.can_ignore && has_ignored) || has_weights) continue;
    followed += 1;
    EXPECT_EQ(loss->count(one.batch).item<double>(),
              static_cast<double>(loss->expected_count(target, target.size(0))));
  }
  EXPECT_GT(followed, 80);
}

TEST(Losses, CountCorrectPredictionsOfClassLabels) {
  const auto right = [](const std::string& text, const at::Tensor& outputs,
                        const at::Tensor& labels) {
    const Losses losses =
        loss_of(text, context_of(outputs, labels))
            ->sum_and_correct({outputs}, {{"target", labels}}, {.count_correct = true});
    return losses.correct.defined() ? losses.correct.item<int64_t>() : -1;
  };
  const at::Tensor logits = at::randn({40, 5}), target = at::randint(5, {40}, at::kLong);
  target.slice(0, 0, 7).fill_(-100);
  const int64_t wanted = logits.argmax(1).eq(target).sum().item<int64_t>();
  for (const char* text : {"cross-entropy", "cross-entropy class_weights=[1,2,3,4,5]", "focal",
                           "cross-entropy label_smoothing=0.1"}) {
    EXPECT_EQ(right(text, logits, target), wanted) << text;
  }
  // Class 2 is ignored, even where it is predicted.
  const int64_t others =
      logits.argmax(1).eq(target).logical_and(target.ne(2)).sum().item<int64_t>();
  EXPECT_EQ(right("cross-entropy ignore_index=2", logits, target), others);
  EXPECT_EQ(right("cross-entropy", logits, at::softmax(logits, 1)), -1);
  EXPECT_EQ(right("mse", logits, at::softmax(logits, 1)), -1);
  // Images: the class dimension is the second.
  const at::Tensor images = at::randn({3, 5, 4, 4}), masks = at::randint(5, {3, 4, 4}, at::kLong);
  for (const char* text : {"cross-entropy", "focal", "cross-entropy class_weights=[1,2,3,4,5]"}) {
    EXPECT_EQ(right(text, images, masks), images.argmax(1).eq(masks).sum().item<int64_t>());
  }
}

TEST(Losses, TakeASmoothingThatChanges) {
  for (const char* weights : {"[]", "[1,2,3,4,5]"}) {
    const at::Tensor logits = at::randn({9, 5}), target = at::randint(5, {9}, at::kLong);
    const auto plain =
        loss_of(fmt::format("cross-entropy class_weights={}", weights), context_of(logits, target));
    const auto fixed =
        loss_of(fmt::format("cross-entropy class_weights={} label_smoothing=0.3", weights),
                context_of(logits, target));
    const at::Tensor scheduled =
        plain
            ->sum_and_correct({logits}, {{"target", target}},
                              {.label_smoothing = at::full({}, 0.3, at::kFloat)})
            .sum;
    EXPECT_NEAR(scheduled.item<double>(), fixed->sum({logits}, {{"target", target}}).item<double>(),
                1e-4);
  }
}

TEST(Losses, WeightedSumAddsMeans) {
  const at::Tensor logits = at::randn({9, 5}, at::kDouble), target = at::randint(5, {9}, at::kLong);
  const NamedTensors batch = {{"target", target}};
  const LossContext context = context_of(logits, target);
  const auto both = loss_of(
      "weighted-sum losses=[focal,{cross-entropy:{class_weights:[1,2,3,4,5]}}] weights=[0.5,2]",
      context);
  const auto mean = [&](const Loss& loss) {
    const auto [sum, count] = loss({logits}, batch);
    return sum.item<double>() / count.item<double>();
  };
  const double wanted = 0.5 * mean(*loss_of("focal", context)) +
                        2 * mean(*loss_of("cross-entropy class_weights=[1,2,3,4,5]", context));
  EXPECT_NEAR(mean(*both), wanted, 1e-12);
  EXPECT_EQ(both->terms().size(), 2U);
  EXPECT_EQ(both->tensors().size(), 1U);
  EXPECT_TRUE(both->traits().predicts_classes);
  // Sums of sums.
  const auto nested = loss_of(
      "weighted-sum losses=[{weighted-sum:{losses:[focal,focal],weights:[1,3]}}] weights=[0.25]",
      context);
  EXPECT_NEAR(mean(*nested), mean(*loss_of("focal", context)), 1e-12);
}

TEST(Losses, OfUnitsOfTargetsAreSoInASumToo) {
  const LossContext context{.output_sizes = {1}, .target_sizes = {1}, .target_type = c10::kFloat};
  EXPECT_FALSE(loss_of("poisson-nll", context)->traits().is_of_units);
  EXPECT_FALSE(loss_of("weighted-sum losses=[l1,{poisson-nll:{log_input:false}}]", context)
                   ->traits()
                   .is_of_units);
  EXPECT_TRUE(loss_of("weighted-sum losses=[l1,mse]", context)->traits().is_of_units);
}

TEST(Losses, FocalIsForLabelsToo) {
  const LossContext labels{.output_sizes = {3}, .target_sizes = {3}, .target_type = c10::kFloat};
  EXPECT_FALSE(loss_of("focal", labels)->traits().predicts_classes);
  const LossContext classes{.output_sizes = {3}, .target_sizes = {}, .classes = 3};
  EXPECT_TRUE(loss_of("focal", classes)->traits().predicts_classes);
}

struct Mistake {
  const char* loss;
  LossContext context;
  const char* message;
};

TEST(Losses, RefuseDataThatTheyCannotWorkWith) {
  const LossContext labels{.output_sizes = {10}, .target_sizes = {}, .classes = 10};
  const LossContext numbers{.output_sizes = {3}, .target_sizes = {3}, .target_type = c10::kFloat};
  LossContext smoothed = labels;
  smoothed.label_smoothing = 0.2;
  for (const auto& [loss, context, message] : std::vector<Mistake>{
           {"mse", labels,
            "mse compares each output with a floating-point target, but the outputs "
            "of a sample have sizes [10], and its targets are class labels below 10; "
            "for class labels use cross-entropy or focal"},
           {"bce-with-logits", labels, "class labels below 10"},
           {"cross-entropy class_weights=[1,2]", labels,
            "class_weights of cross-entropy has 2 numbers, but there are 10 classes"},
           {"focal class_weights=[1,2]", labels, "class_weights of focal has 2 numbers"},
           {"focal class_weights=[1,2,3]", numbers, "class_weights of focal is for class labels"},
           {"focal beta=0.9", labels, "train.loss.beta of focal is for class_weights: "},
           {"mse",
            {.output_sizes = {3}, .target_sizes = {2}, .target_type = c10::kFloat},
            "sizes [3], and its targets are floating-point numbers of sizes [2]"},
           {"cross-entropy",
            {.output_sizes = {3}, .target_sizes = {2}, .target_type = c10::kFloat},
            "cross-entropy needs a target for each output"},
           {"quantile quantiles=[]", numbers, "quantiles is empty"},
           {"quantile quantiles=[0.1,0.9]", labels, "quantile compares each output"},
           {"weighted-sum losses=[mse,{quantile:{quantiles:[0.1,0.9]}}]", numbers,
            "a target has no named outputs for one, and q0.1 and q0.9 for the other"},
           {"bce-with-logits pos_weight=[1,2]", numbers, "pos_weight has 2 numbers"},
           {"triplet-margin", labels, "triplet-margin needs 3 embeddings for each sample"},
           {"info-nce negatives=given", labels, "info-nce needs 3 or more embeddings"},
           {"cosine-embedding",
            {.output_sizes = {2, 4}, .target_sizes = {}, .classes = 2},
            "one target for each pair, 1 or -1, but the data have class labels"},
           {"ctc", labels, "ctc aligns sequences of class labels"},
           {"ctc blank=7",
            {.output_sizes = {9, 5}, .target_sizes = {4}, .classes = 5},
            "blank is 7, but there are 5 classes"},
           {"dice include_background=false",
            {.output_sizes = {1, 4, 4}, .target_sizes = {1, 4, 4}, .target_type = c10::kFloat},
            "one class alone"},
           {"weighted-sum", labels, "weighted-sum has no losses"},
           {"weighted-sum losses=[focal] weights=[1,2]", labels, "weighted-sum of 1 losses has 2"},
           {"weighted-sum losses=[focal,mse]", labels, "mse compares"},
           {"focal", smoothed,
            "train.label_smoothing is 0.2, and is an option of the loss "
            "cross-entropy, but train.loss is focal"},
           {"cross-entropy label_smoothing=0.1", smoothed, "leave one of them out"}}) {
    const std::string error = error_of([&] { loss_of(loss, context); });
    EXPECT_NE(error.find(message), std::string::npos) << loss << ": " << error;
  }
  // The same value twice is no conflict.
  EXPECT_NO_THROW(loss_of("cross-entropy label_smoothing=0.2", smoothed));
  const at::Tensor logits = at::randn({4, 3});
  EXPECT_THROW(loss_of("mse", numbers)->sum({logits}, {{"input", logits}}), UsageError);
}

struct TargetCase {
  const char* loss;
  at::Tensor outputs, right, wrong;
  const char* message;
};

TEST(Losses, RefuseTargetsForWhichTheyAreNotDefined) {
  const at::Tensor unit = at::rand({6, 3}), wide = at::randn({6, 3}).mul(9);
  const at::Tensor pairs = at::randn({6, 2, 4}), both = at::tensor({1., -1., 1., 1., -1., 1.});
  const at::Tensor labels = at::randint(1, 4, {6, 3}, at::kLong);
  for (const auto& [loss, outputs, right, wrong, message] : std::vector<TargetCase>{
           {"bce-with-logits", wide, unit, wide, "bce-with-logits needs targets from 0 to 1"},
           {"focal", wide, unit, wide, "focal needs targets from 0 to 1"},
           {"dice", wide, unit, unit.add(1), "dice needs targets from 0 to 1"},
           {"poisson-nll", wide, unit.mul(9), unit.neg(),
            "poisson-nll needs targets of at least 0"},
           {"weighted-sum losses=[mse,bce-with-logits]", wide, unit, wide, "from 0 to 1"},
           {"kl-divergence", wide, at::softmax(wide, 1), unit.add(1), "do not add up to 1"},
           {"kl-divergence log_target=true", wide, at::log_softmax(wide, 1), at::softmax(wide, 1),
            "logarithms of the probabilities of all classes"},
           {"cosine-embedding", pairs, both, both.mul(0.5), "the targets 1 and -1"},
           {"cosine-embedding", pairs, both, at::ones({6}), "use info-nce"},
           {"info-nce", pairs, at::ones({6}), both, "use cosine-embedding"},
           {"ctc", at::randn({6, 9, 5}), labels, labels.sub(1), "train.loss.blank of ctc is 0"}}) {
    const auto built = loss_of(loss, context_of(outputs, right));
    EXPECT_NO_THROW(built->check_targets([&right] { return right; })) << loss;
    const std::string error = error_of([&] { built->check_targets([&wrong] { return wrong; }); });
    EXPECT_NE(error.find(message), std::string::npos) << loss << ": " << error;
  }
}

TEST(Losses, CtcIsInfiniteWhereATargetDoesNotFit) {
  const at::Tensor logits = at::randn({1, 2, 4}), target = at::ones({1, 2}, at::kLong);
  const LossContext context = context_of(logits, target);
  EXPECT_TRUE(
      std::isinf(loss_of("ctc", context)->sum({logits}, {{"target", target}}).item<double>()));
  EXPECT_EQ(loss_of("ctc zero_infinity=true", context)
                ->sum({logits}, {{"target", target}})
                .item<double>(),
            0);
}

// The classes of a row, up to its padding.
std::vector<int64_t> decoded_row(const at::Tensor& decoded, int64_t row) {
  const at::Tensor kept = decoded[row].masked_select(decoded[row].ne(data::kIgnoredTarget));
  return {kept.const_data_ptr<int64_t>(), kept.const_data_ptr<int64_t>() + kept.numel()};
}

TEST(Losses, CtcDecodesWithoutRepetitionsAndBlanks) {
  const at::Tensor classes = at::randint(0, 3, {20, 30}, at::kLong);
  for (const int64_t blank : {0, 2}) {
    const at::Tensor decoded = greedy_decode(at::one_hot(classes, 3).to(at::kFloat), blank);
    for (int64_t row = 0; row < classes.size(0); ++row) {
      const at::Tensor unique = std::get<0>(at::unique_consecutive(classes[row]));
      const at::Tensor wanted = unique.masked_select(unique.ne(blank));
      EXPECT_TRUE(at::equal(decoded[row].narrow(0, 0, wanted.size(0)), wanted));
      EXPECT_EQ(decoded_row(decoded, row).size(), static_cast<size_t>(wanted.size(0)));
    }
  }
  const at::Tensor outputs =
      at::one_hot(
          at::tensor({int64_t{1}, int64_t{1}, int64_t{0}, int64_t{1}, int64_t{2}}).unsqueeze(0), 3)
          .to(at::kFloat);
  EXPECT_EQ(decoded_row(greedy_decode(outputs, 0), 0), (std::vector<int64_t>{1, 1, 2}));
  const at::Tensor lengths = at::tensor({int64_t{3}});
  EXPECT_EQ(decoded_row(greedy_decode(outputs, 0, lengths), 0), (std::vector<int64_t>{1}));
  EXPECT_EQ(error_of([&] { greedy_decode(outputs, 0, lengths.add(3)); }),
            "input_lengths has 6, but outputs have 5 steps; it counts steps of the outputs");
}

TEST(Losses, CtcHasTheBlankOfTheDataUnlessOneIsChosen) {
  const LossContext context{
      .output_sizes = {0, 5}, .target_sizes = {4}, .target_type = c10::kLong, .blank = 4};
  EXPECT_EQ(loss_of("ctc", context)->traits().blank, 4);
  EXPECT_EQ(loss_of("ctc blank=1", context)->traits().blank, 1);
}

}  // namespace
}  // namespace gallop::train
