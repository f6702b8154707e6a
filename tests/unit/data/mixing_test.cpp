// MixUp and CutMix against torchvision and timm (tests/parity/make_mixing.py made the fixture), for
// any number of processes, and with data that cannot be mixed.
#include "gallop/data/batch_transforms/mixing.h"

#include <map>
#include <set>

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/data/batch_transforms/timm_mixup.h"
#include "gallop/data/device_loader.h"
#include "gallop/tensor/safetensors.h"
#include "unit/base/error_of.h"
#include "unit/config/component_of.h"
#include "unit/data/chi_square.h"
#include "unit/data/image_fields.h"
#include "unit/fixtures.h"

namespace gallop::data {
namespace {

constexpr int64_t kClasses = 7;

/// A batch that torchvision or timm has mixed.
struct Case {
  MixingVariant variant = MixingVariant::kTorchvision;
  bool cuts = false;
  std::map<std::string, at::Tensor> tensors;
};

std::map<std::string, Case> cases() {
  std::map<std::string, Case> cases;
  for (const auto& [name, tensor] : read_safetensors(fixtures() / "mixing.safetensors").tensors) {
    const size_t dot = name.rfind('.');
    Case& one = cases[name.substr(0, dot)];
    one.variant = name.starts_with("timm") ? MixingVariant::kTimm : MixingVariant::kTorchvision;
    one.cuts = name.find("cutmix") != std::string::npos;
    one.tensors[name.substr(dot + 1)] = tensor.clone();
  }
  return cases;
}

std::vector<MixedRow> plan_of(const Case& one) {
  const at::Tensor& images = one.tensors.at("images");
  const at::Tensor& lambdas = one.tensors.at("lambda");
  const at::Tensor& centers = one.tensors.at("center");
  const int64_t rows = images.size(0), drawn = lambdas.size(0);
  const int height = static_cast<int>(images.size(2)), width = static_cast<int>(images.size(3));
  std::vector<MixedRow> plan;
  for (int64_t row = 0; row < rows; ++row) {
    const bool is_timm = one.variant == MixingVariant::kTimm;
    MixedRow mixed{.partner = is_timm ? rows - 1 - row : (row + rows - 1) % rows};
    // One lambda for the batch, for each pair, or for each row.
    const int64_t at = drawn == 1 ? 0 : drawn == rows ? row : std::min(row, rows - 1 - row);
    mixed.keep = lambdas[at].item<double>();
    if (one.cuts) {
      const at::Tensor center = centers[at];
      mixed.box = cutmix_box(one.variant, height, width, mixed.keep, center[0].item<int>(),
                             center[1].item<int>());
      mixed.keep = 1 - static_cast<double>(mixed.box->width) * mixed.box->height /
                           (static_cast<double>(width) * height);
    }
    plan.push_back(mixed);
  }
  return plan;
}

std::vector<MixedRow> without_boxes(std::vector<MixedRow> plan) {
  for (MixedRow& row : plan) row.box.reset();
  return plan;
}

TEST(MixRows, EqualsTorchvisionAndTimm) {
  const auto all = cases();
  ASSERT_EQ(all.size(), 20U);
  for (const auto& [name, one] : all) {
    SCOPED_TRACE(name);
    const auto plan = plan_of(one);
    const at::Tensor& images = one.tensors.at("images");
    const at::Tensor& wanted = one.tensors.at("mixed");
    if (images.size(0) == 1) {  // Mixed with itself, where torchvision rounds.
      EXPECT_LT((images - wanted).abs().max().item<double>(), 1e-6);
      continue;
    }
    for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
      at::Tensor mixed = images.clone(format), by_operators = images.clone(format);
      mix_rows(mixed, plan);
      EXPECT_TRUE(mixed.equal(wanted));
      mix_rows_by_operators(by_operators, plan);
      EXPECT_TRUE(by_operators.equal(wanted));
    }
    at::Tensor target = at::one_hot(one.tensors.at("labels"), kClasses).to(at::kFloat);
    mix_rows(target, without_boxes(plan));
    EXPECT_LT((target - one.tensors.at("target")).abs().max().item<double>(), 1e-6);
  }
}

// bf16 is rounded once.
TEST(MixRows, GivesTheSameBitsByKernelAndByOperators) {
  at::Tensor images = at::randn({9, 3, 17, 23});
  std::vector<MixedRow> plan;
  // Two cycles, a chain that ends in a row of another process, and a row that stays.
  const std::vector<int64_t> partners = {3, 0, 2, 1, 5, 4, 8};
  for (size_t row = 0; row < partners.size(); ++row) {
    plan.push_back({.partner = partners[row], .keep = 0.1 + 0.1 * static_cast<double>(row)});
    if (row % 2 == 1)
      plan.back().box = Region{.top = static_cast<int>(row), .left = 4, .height = 6, .width = 9};
  }
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
      for (const bool boxes : {true, false}) {
        const auto used = boxes ? plan : without_boxes(plan);
        const at::Tensor before = images.to(type).contiguous(format);
        at::Tensor mixed = before.clone(format), by_operators = before.clone(format);
        mix_rows(mixed, used);
        mix_rows_by_operators(by_operators, used);
        EXPECT_TRUE(mixed.equal(by_operators));
        EXPECT_TRUE(mixed[2].equal(before[2]));
        EXPECT_TRUE(mixed.narrow(0, 7, 2).equal(before.narrow(0, 7, 2)));
        const double keep = used[6].keep;
        const at::Tensor wanted =
            before[6].to(at::kDouble) * keep + before[8].to(at::kDouble) * (1 - keep);
        const double bound = type == at::kFloat ? 1e-6 : 2e-2;
        EXPECT_LT((mixed[6].to(at::kDouble) - wanted).abs().max().item<double>(), bound);
      }
    }
  }
}

TEST(MixRows, CutsMasksOfClasses) {
  at::Tensor masks = at::arange(2 * 5 * 6).reshape({2, 5, 6}).clone(), before = masks.clone();
  const Region box{.top = 1, .left = 2, .height = 3, .width = 4};
  mix_rows(masks, {{.partner = 1, .box = box}, {.partner = 0, .box = box}});
  for (int64_t row = 0; row < 2; ++row) {
    at::Tensor wanted = before[row].clone();
    wanted.slice(0, 1, 4).slice(1, 2, 6).copy_(before[1 - row].slice(0, 1, 4).slice(1, 2, 6));
    EXPECT_TRUE(masks[row].equal(wanted));
  }
}

/// Images whose pixels all are their index, with a label.
class Indices final : public Samples {
 public:
  explicit Indices(int64_t size) : Samples(image_fields({1, 6, 6})), size_(size) {}
  int64_t size() const override { return size_; }
  bool fill(int64_t index, int64_t, const SampleRow& row, Scratch&) const override {
    if (broken.contains(index)) return false;
    std::fill_n(row.as<float>(0), 36, static_cast<float>(index + 1));
    *row.as<int64_t>(1) = index % kClasses;
    return true;
  }
  std::set<int64_t> broken;

 private:
  int64_t size_;
};

std::shared_ptr<const BatchTransforms> transforms_of(const std::vector<std::string>& texts,
                                                     const Fields& fields,
                                                     int64_t classes = kClasses) {
  static const BatchTransformRegistry kRegistry = built_in_batch_transforms();
  config::ComponentList list(kRegistry);
  for (const std::string& text : texts) {
    list.items.push_back(config::component_of(kRegistry, text));
  }
  return build_batch_transforms(kRegistry, list, fields, classes);
}

std::string choice_of_both() {
  return R"(random-choice transforms=[{"mixup":{"variant":"timm","mode":"elem"}},"cutmix"] p=[1,2])";
}

std::vector<std::string> all_variants() {
  std::vector<std::string> all = {
      choice_of_both(), "timm-mixup mixup_alpha=0.8 cutmix_alpha=1 mode=elem",
      "timm-mixup mixup_alpha=0.8 cutmix_minmax=[0.2,0.8] mode=pair switch_prob=0.3"};
  for (const char* transform : {"mixup", "cutmix"}) {
    for (const char* options : {"", " variant=timm", " variant=timm mode=pair",
                                " variant=timm mode=elem p=0.5", " variant=fastai alpha=0.4"}) {
      all.push_back(std::string(transform) + options);
    }
  }
  return all;
}

struct Loaded {
  at::Tensor inputs, targets;
};

// The batches of an epoch, each put together from the slices of `parts` processes.
std::vector<Loaded> load(const Samples& samples, const std::string& transform, int parts,
                         int threads, LoaderState start = {.seed = 5}) {
  const auto transforms = transforms_of({transform}, samples.fields());
  std::vector<Loaded> all;
  std::vector<std::unique_ptr<DeviceLoader>> loaders;
  for (int part = 0; part < parts; ++part) {
    loaders.push_back(std::make_unique<DeviceLoader>(samples,
                                                     LoaderConfig{.batch = 8,
                                                                  .threads = threads,
                                                                  .one_epoch = true,
                                                                  .part = part,
                                                                  .parts = parts,
                                                                  .transforms = transforms},
                                                     start, c10::kCPU));
  }
  for (;;) {
    std::vector<at::Tensor> inputs, targets;
    for (const auto& loader : loaders) {
      const auto batch = loader->next();
      if (!batch) return all;
      EXPECT_EQ(batch->partner_rows, 0);
      inputs.push_back(batch->input().clone());
      targets.push_back(batch->target().clone());
    }
    all.push_back({at::cat(inputs), at::cat(targets)});
  }
}

void expect_equal(const std::vector<Loaded>& found, const std::vector<Loaded>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_TRUE(found[i].inputs.equal(wanted[i].inputs));
    EXPECT_TRUE(found[i].targets.equal(wanted[i].targets));
  }
}

TEST(Mixing, DependsNeitherOnProcessesNorThreadsNorAResume) {
  Indices samples(37);  // The last batch has 5.
  for (const bool has_broken : {false, true}) {
    if (has_broken) samples.broken = {3, 17, 18, 30};
    for (const std::string& transform : all_variants()) {
      SCOPED_TRACE(transform);
      const auto whole = load(samples, transform, 1, 0);
      expect_equal(load(samples, transform, 1, 3), whole);
      for (const int parts : {2, 3, 7}) expect_equal(load(samples, transform, parts, 2), whole);
      const auto resumed = load(samples, transform, 2, 0, {.seed = 5, .position = 16});
      expect_equal(resumed, {whole.begin() + 2, whole.end()});
    }
  }
}

// As pixels and labels of a row have the same lambda, the target follows from the pixels.
TEST(Mixing, MixesTargetsLikeInputs) {
  const Indices samples(64);
  for (const std::string& transform : all_variants()) {
    SCOPED_TRACE(transform);
    bool is_changed = false;
    for (const Loaded& batch : load(samples, transform, 1, 0)) {
      EXPECT_EQ(batch.targets.sizes(), (std::vector<int64_t>{8, kClasses}));
      EXPECT_LT((batch.targets.sum(1) - 1).abs().max().item<double>(), 1e-6);
      is_changed |= batch.targets.max().item<float>() < 1 ||
                    batch.targets.gt(0).sum(1).gt(1).any().item<bool>();
    }
    EXPECT_TRUE(is_changed);
  }
  // Regression: numbers are mixed as pixels are.
  class Numbers final : public Samples {
   public:
    Numbers() : Samples({{.name = "x", .shape = {{3}}}, {.name = "y", .shape = {{1}}}}) {}
    int64_t size() const override { return 16; }
    bool fill(int64_t index, int64_t, const SampleRow& row, Scratch&) const override {
      std::fill_n(row.as<float>(0), 3, static_cast<float>(index));
      *row.as<float>(1) = static_cast<float>(index);
      return true;
    }
  } const numbers;
  const auto batches = load(numbers, "mixup", 1, 0);
  for (const Loaded& batch : batches) {
    EXPECT_TRUE(batch.inputs.slice(1, 0, 1).equal(batch.targets));
    EXPECT_FALSE(batch.targets.equal(batch.targets.round()));
  }
}

std::vector<MixedRow> plans(const std::unique_ptr<BatchTransform>& transform,
                            const Samples& samples, int64_t batches, int64_t size) {
  const auto& mixing = dynamic_cast<const Mixing&>(*transform);
  std::vector<MixedRow> all;
  Batch batch;
  batch.fields = &samples.fields();
  batch.tensors = {at::empty({size, 1, 6, 6}), at::empty({size})};
  batch.whole_size = size;
  for (int64_t i = 0; i < batches; ++i) {
    batch.position = batch.whole_position = i * size;
    for (const MixedRow& row : mixing.plan({.seed = 3}, batch)) all.push_back(row);
  }
  return all;
}

// The distribution function of Beta(1, 1), and of max(l, 1 - l).
TEST(Mixing, DrawsLambdasFromTheBetaDistribution) {
  const Indices samples(1);
  std::vector<double> batch_lambdas, larger, squares;
  for (const MixedRow& row : plans(make_mixup({}), samples, 100'000, 1)) {
    batch_lambdas.push_back(row.keep);
  }
  expect_distribution_function(batch_lambdas, [](double x) { return x; });
  for (const MixedRow& row : plans(make_mixup({.variant = "fastai"}), samples, 1000, 100)) {
    larger.push_back(row.keep);
  }
  expect_distribution_function(larger, [](double x) { return std::max(0.0, 2 * x - 1); });
  // Beta(2, 2).
  for (const MixedRow& row :
       plans(make_mixup({.alpha = 2, .variant = "timm", .mode = "elem"}), samples, 1000, 100)) {
    squares.push_back(row.keep);
  }
  expect_distribution_function(squares, [](double x) { return x * x * (3 - 2 * x); });
  // p: lambda stays 1 with probability 0.75.
  int64_t changed = 0;
  for (const MixedRow& row : plans(make_mixup({.p = 0.25}), samples, 100'000, 1)) {
    changed += row.keep < 1 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(changed), 25'000, 500);
}

TEST(TimmMixup, SwitchesBetweenMixUpAndCutMix) {
  const Indices samples(1);
  for (const char* mode : {"batch", "pair", "elem"}) {
    std::map<std::string, int64_t> counts;
    std::vector<double> lambdas;
    const int64_t size = 2;  // One pair.
    const auto rows = plans(
        make_timm_mixup(
            {.mixup_alpha = 1, .cutmix_alpha = 1, .prob = 0.8, .switch_prob = 0.3, .mode = mode}),
        samples, 50'000, size);
    int64_t same = 0;
    for (size_t i = 0; i < rows.size(); i += 2) {
      const MixedRow& row = rows[i];
      ++counts[row.box ? "cutmix" : row.keep < 1 ? "mixup" : "none"];
      if (!row.box && row.keep < 1) lambdas.push_back(row.keep);
      same += row.keep == rows[i + 1].keep ? 1 : 0;
    }
    expect_distribution(counts, {{"cutmix", 0.24}, {"mixup", 0.56}, {"none", 0.2}}, 50'000);
    expect_distribution_function(lambdas, [](double x) { return x; });
    if (std::string(mode) == "elem") {
      EXPECT_LT(same, 10'000) << "samples have their own lambdas";
    } else {
      EXPECT_EQ(same, 50'000);
    }
  }
}

// rand_bbox_minmax of timm: sides from int(6 * 0.2) = 1 to int(6 * 0.8) - 1 = 3 of 6 pixels.
TEST(TimmMixup, DrawsBoxesByTheirSides) {
  const Indices samples(1);
  std::map<std::string, int64_t> heights, places;
  for (const MixedRow& row : plans(make_timm_mixup({.mixup_alpha = 0, .cutmix_minmax = {0.2, 0.8}}),
                                   samples, 100'000, 1)) {
    ++heights[std::to_string(row.box->height)];
    ++places[std::to_string(row.box->width) + " at " + std::to_string(row.box->left)];
    ASSERT_FLOAT_EQ(row.keep, 1 - row.box->height * row.box->width / 36.0);
  }
  std::map<std::string, double> thirds, expected;
  for (int side = 1; side <= 3; ++side) {
    thirds[std::to_string(side)] = 1.0 / 3;
    for (int at = 0; at <= 6 - side; ++at) {
      expected[std::to_string(side) + " at " + std::to_string(at)] = 1.0 / 3 / (7 - side);
    }
  }
  expect_distribution(heights, thirds, 100'000);
  expect_distribution(places, expected, 100'000);
}

TEST(TimmMixup, RefusesToMixNothing) {
  EXPECT_THROW(make_timm_mixup({.mixup_alpha = 0}), UsageError);
  EXPECT_THROW(make_timm_mixup({.cutmix_minmax = {0.5}}), UsageError);
  EXPECT_THROW(make_timm_mixup({.cutmix_minmax = {0.5, 0.2}}), UsageError);
  EXPECT_NO_THROW(make_timm_mixup({.mixup_alpha = 0, .cutmix_alpha = 1}));
}

// A lambda of a fixed size has every centre with the same probability.
TEST(Mixing, DrawsCentersOfBoxesUniformly) {
  const Indices samples(1);
  std::map<std::string, int64_t> counts;
  std::map<std::string, double> expected;
  // For alpha this small, lambda is 0 or 1: boxes of 0 pixels, or of 3 on each side.
  const auto all = plans(make_cutmix({.alpha = 1e-9}), samples, 100'000, 1);
  int64_t draws = 0;
  for (const MixedRow& row : all) {
    if (row.box->height == 0) continue;
    counts[std::to_string(row.box->top) + std::to_string(row.box->height) + " " +
           std::to_string(row.box->left) + std::to_string(row.box->width)]++;
    ++draws;
  }
  EXPECT_NEAR(static_cast<double>(draws), 50'000, 800);
  for (int y = 0; y < 6; ++y) {
    for (int x = 0; x < 6; ++x) {
      const Region box = cutmix_box(MixingVariant::kTorchvision, 6, 6, 0, y, x);
      expected[std::to_string(box.top) + std::to_string(box.height) + " " +
               std::to_string(box.left) + std::to_string(box.width)] += 1.0 / 36;
    }
  }
  expect_distribution(counts, expected, draws);
}

TEST(Mixing, ChoosesBetweenTransformsByTheirProbabilities) {
  const Indices samples(80'000);
  const auto transforms =
      transforms_of({R"(random-choice transforms=[{"mixup":{"alpha":1000}},"cutmix"] p=[1,3])"},
                    samples.fields());
  DeviceLoader loader(samples, {.batch = 2, .one_epoch = true, .transforms = transforms},
                      {.seed = 1}, c10::kCPU);
  int64_t mixed = 0;
  while (const auto batch = loader.next()) {
    const float* const pixels = batch->input().const_data_ptr<float>();
    mixed += pixels[0] != std::floor(pixels[0]) ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(mixed), 10'000, 350);
}

TEST(Mixing, RejectsWhatCannotBeMixed) {
  const Fields tokens({.name = "tokens", .shape = {{4}, c10::kLong}},
                      {.name = "label", .shape = {{}, c10::kLong}});
  const Fields masks({.name = "image", .shape = {{3, 8, 8}}},
                     {.name = "mask", .shape = {{8, 8}, c10::kLong}});
  const Fields rows({.name = "features", .shape = {{3}}},
                    {.name = "label", .shape = {{}, c10::kLong}});
  const Fields weighted({{.name = "image", .role = FieldRole::kInput, .shape = {{3, 8, 8}}},
                         {.name = "label", .role = FieldRole::kTarget, .shape = {{}, c10::kLong}},
                         {.name = "weight", .shape = {{}}}});
  const auto error = [](const std::string& transform, const Fields& fields, int64_t classes = 3) {
    return error_of([&] { transforms_of({transform}, fields, classes); });
  };
  EXPECT_NE(error("mixup", tokens).find("tokens"), std::string::npos);
  EXPECT_NE(error("mixup", masks).find("use cutmix"), std::string::npos);
  EXPECT_NE(error("cutmix", rows).find("use mixup"), std::string::npos);
  EXPECT_NE(error("mixup", weighted).find("'weight'"), std::string::npos);
  EXPECT_NE(error("mixup", rows, 0).find("not a class label"), std::string::npos);
  EXPECT_NE(error("mixup mode=pair", rows).find("variant: timm"), std::string::npos);
  EXPECT_NE(error("random-choice", rows).find("[mixup, cutmix]"), std::string::npos);
  EXPECT_NE(error("random-choice transforms=[mixup] p=[1,2]", rows).find("2 probabilities"),
            std::string::npos);
  EXPECT_NE(error("random-choice transforms=[mixup] p=[0]", rows).find("all 0"), std::string::npos);
  EXPECT_NE(error_of([&] {
              transforms_of({"mixup", "cutmix"}, image_fields({3, 8, 8}));
            }).find("random-choice"),
            std::string::npos);
  transforms_of({"cutmix"}, masks);
  transforms_of({"mixup", "gaussian-noise"}, rows);
}

TEST(Mixing, RejectsLabelsWithoutAClass) {
  const Indices samples(8);
  const auto transforms = transforms_of({"mixup"}, samples.fields(), 3);
  DeviceLoader loader(samples, {.batch = 8, .transforms = transforms}, {.seed = 1}, c10::kCPU);
  EXPECT_NE(error_of([&] { loader.next(); }).find("0 to 2"), std::string::npos);
}

}  // namespace
}  // namespace gallop::data
