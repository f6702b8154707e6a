#include "gallop/data/sampling.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include "gallop/base/alias_table.h"
#include "gallop/base/error.h"
#include "gallop/base/philox.h"
#include "gallop/base/text.h"
#include "gallop/data/batch_slot.h"
#include "gallop/data/data_module.h"

namespace gallop::data {

namespace {

/// Samples drawn from others with replacement.
class DrawnSamples final : public Samples {
 public:
  /// `owned` may be null if `samples` outlive this.
  DrawnSamples(std::unique_ptr<Samples> owned, const Samples& samples, AliasTable table,
               int64_t draws, uint64_t seed)
      : Samples(samples.fields()),
        owned_(std::move(owned)),
        samples_(samples),
        table_(std::move(table)),
        draws_(draws),
        seed_(seed) {}

  int64_t size() const override { return draws_; }
  bool every_target_counts() const override { return samples_.every_target_counts(); }
  std::unique_ptr<Scratch> make_scratch() const override { return samples_.make_scratch(); }

  // Random changes of a sample are functions of its index and epoch. A number in place of the
  // epoch makes those of several draws different. Its parity is the epoch's, by which flips
  // alternate.
  bool fill(int64_t index, int64_t epoch, const SampleRow& row, Scratch& scratch) const override {
    Philox random = random_of(epoch, index);
    const int64_t drawn = table_.draw(random);
    const int64_t number = (random() >> 1 & ~uint32_t{1}) | (epoch & 1);
    return samples_.fill(drawn, number, row, scratch);
  }

  const Samples& source() const override { return samples_.source(); }
  int64_t source_index(int64_t epoch, int64_t draw) const override {
    Philox random = random_of(epoch, draw);
    return samples_.source_index(epoch, table_.draw(random));
  }

 private:
  Philox random_of(int64_t epoch, int64_t draw) const {
    return {seed_, Purpose::kDraw, static_cast<uint64_t>(epoch), static_cast<uint64_t>(draw)};
  }

  std::unique_ptr<Samples> owned_;
  const Samples& samples_;
  AliasTable table_;
  int64_t draws_;
  uint64_t seed_;
};

// Buffers for one sample at a time.
class OneRow {
 public:
  explicit OneRow(const Samples& samples)
      : samples_(samples), scratch_(samples.make_scratch()), lengths_(samples.fields().size()) {
    for (const Field& field : samples.fields()) {
      buffers_.push_back(make_rows(field, 1, /*pinned=*/false));
      rows_.push_back(buffers_.back().row(0));
    }
  }

  /// Reads a sample of the first epoch. Returns false if it is broken.
  bool read(int64_t index) {
    for (size_t i = 0; i < lengths_.size(); ++i) {
      const std::vector<int64_t>& sizes = samples_.fields()[i].shape.sizes;
      lengths_[i] = sizes.empty() ? 0 : sizes.front();
    }
    return samples_.fill(index, /*epoch=*/0, SampleRow(rows_, lengths_), *scratch_);
  }
  void* field(size_t index) { return rows_[index]; }
  int64_t length(size_t index) const { return lengths_[index]; }

 private:
  const Samples& samples_;
  std::unique_ptr<Scratch> scratch_;
  std::vector<BatchRows> buffers_;
  std::vector<void*> rows_;
  std::vector<int64_t> lengths_;
};

// Calls `take` with each sample's value of a field, which has one number, or with `broken`.
template <typename T>
void read_field(const Samples& samples, size_t wanted, T broken,
                const std::function<void(T)>& take) {
  OneRow row(samples);
  for (int64_t i = 0; i < samples.size(); ++i) {
    take(row.read(i) ? *static_cast<const T*>(row.field(wanted)) : broken);
  }
}

bool has_one_number(const Field& field, c10::ScalarType type) {
  return field.shape.sizes.empty() && field.shape.dtype == type;
}

std::vector<double> weights_by_class(const Samples& samples, const std::vector<int64_t>& labels,
                                     const std::vector<double>& of_class) {
  std::vector<double> weights;
  for (int64_t i = 0; i < samples.size(); ++i) {
    const int64_t label = labels[static_cast<size_t>(i)];
    weights.push_back(label < 0 ? 0 : of_class[static_cast<size_t>(label)]);
  }
  return weights;
}

std::vector<double> balancing_weights(const std::vector<int64_t>& labels, int64_t classes) {
  std::vector<double> counts(static_cast<size_t>(classes)), weights;
  for (const int64_t label : labels) {
    if (label >= 0) counts[static_cast<size_t>(label)] += 1;
  }
  for (const double count : counts) weights.push_back(count > 0 ? 1 / count : 0);
  return weights;
}

std::vector<double> weights_of_field(const Samples& samples, const std::string& name) {
  const size_t index = samples.fields().find(name);
  const Field& field = samples.fields()[index];
  if (!has_one_number(field, c10::ScalarType::Float)) {
    throw UsageError(fmt::format(
        "data.sampling.field: '{}' is not one floating-point number for each sample", name));
  }
  std::vector<double> weights;
  read_field<float>(samples, index, 0, [&](float weight) { weights.push_back(double{weight}); });
  return weights;
}

std::vector<double> weights_of(const Samples& samples, const SamplingConfig& config,
                               int64_t classes) {
  std::vector<double> weights;
  if (!config.field.empty()) {
    weights = weights_of_field(samples, config.field);
  } else {
    const std::vector<int64_t> labels = class_labels(samples, classes);
    if (config.name == "weighted" && static_cast<int64_t>(config.class_weights.size()) != classes) {
      throw UsageError(
          fmt::format("data.sampling.class_weights has {} numbers, but there are {} classes; give "
                      "one for each class",
                      config.class_weights.size(), classes));
    }
    weights = weights_by_class(
        samples, labels,
        config.name == "weighted" ? config.class_weights : balancing_weights(labels, classes));
  }
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] >= 0) || !std::isfinite(weights[i])) {
      throw DataError(fmt::format("data.sampling: {} has the weight {}, which must be 0 or more",
                                  samples.describe(static_cast<int64_t>(i)), weights[i]));
    }
    if (weights[i] > 0) weights[i] = std::pow(weights[i], config.power);
    sum += weights[i];
  }
  if (sum <= 0) throw DataError("data.sampling: the weights of all training samples are 0");
  return weights;
}

}  // namespace

std::string SamplingConfig::describe() const {
  std::string text = name;
  if (power != 1) text += fmt::format(", power {}", power);
  if (draws > 0) text += fmt::format(", {} draws an epoch", format_count(draws));
  return text;
}

void visit(config::Visitor& visitor, SamplingConfig& config) {
  visitor.field({.name = "name",
                 .help = "uniform: every sample once; class-balanced: every class equally often; "
                         "weighted: by class_weights or a field; the last two with replacement",
                 .choices = {"uniform", "class-balanced", "weighted"}},
                config.name);
  visitor.field({.name = "power",
                 .help = "power of the weights; 0.5 is halfway to uniform sampling, 0",
                 .min = 0},
                config.power);
  visitor.field({.name = "class_weights",
                 .help = "for weighted: weight of each class's samples, in the order of classes",
                 .min = 0},
                config.class_weights);
  visitor.field({.name = "field", .help = "for weighted: field with the weight of each sample"},
                config.field);
  visitor.field({.name = "draws",
                 .help = "samples drawn per epoch; 0: the number of training samples",
                 .min = 0,
                 .max = 1e15},
                config.draws);
}

void check(const SamplingConfig& config) {
  const bool has_weights = !config.class_weights.empty() || !config.field.empty();
  if (config.name == "weighted" && config.class_weights.empty() == config.field.empty()) {
    throw UsageError(
        "data.sampling: weighted needs either class_weights or a field with the weights");
  }
  if (config.name != "weighted" && has_weights) {
    throw UsageError(fmt::format(
        "data.sampling has weights, which belong to weighted sampling, but its name is {}",
        config.name));
  }
  if (config.is_uniform() && (config.draws > 0 || config.power != 1)) {
    throw UsageError(
        "data.sampling: uniform takes every sample once, and has neither draws nor power; use "
        "class-balanced or weighted");
  }
}

std::vector<int64_t> class_labels(const Samples& samples, int64_t classes) {
  const Field& target = samples.fields().target();
  if (classes < 1 || !has_one_number(target, c10::ScalarType::Long)) {
    throw UsageError(
        "the training samples have no class label each, as balancing classes needs; it works for "
        "classification");
  }
  std::vector<int64_t> labels;
  if (samples.size() > 0 && samples.label(0)) {
    for (int64_t i = 0; i < samples.size(); ++i) labels.push_back(*samples.label(i));
  } else {
    read_field<int64_t>(samples, samples.fields().target_index(), -1,
                        [&](int64_t label) { labels.push_back(label); });
  }
  for (const int64_t label : labels) {
    if (label >= classes) {
      throw DataError(fmt::format("a sample has the label {} of {} classes", label, classes));
    }
  }
  return labels;
}

std::vector<int64_t> count_classes(const Samples& samples, int64_t classes) {
  const std::vector<int64_t> labels = class_labels(samples, classes);
  std::vector<int64_t> counts(static_cast<size_t>(classes));
  for (const int64_t label : labels) {
    if (label >= 0) ++counts[static_cast<size_t>(label)];
  }
  return counts;
}

void draw_training_samples(DataModule& module, const SamplingConfig& config, uint64_t seed) {
  check(config);
  if (config.is_uniform()) return;
  const Samples& plain = *module.split(Part::kTrain);
  AliasTable table(
      weights_of(plain, config, static_cast<int64_t>(module.signature.classes.size())));
  std::unique_ptr<Samples> owned;
  if (module.unaugmented) {
    owned = std::move(module.train);
  } else {
    module.unaugmented = std::move(module.train);
  }
  const Samples& drawn = owned ? *owned : *module.unaugmented;
  const int64_t draws = config.draws > 0 ? config.draws : drawn.size();
  module.train =
      std::make_unique<DrawnSamples>(std::move(owned), drawn, std::move(table), draws, seed);
}

at::Tensor some_targets(const Samples& samples, int64_t most) {
  const Field& field = samples.fields().target();
  const size_t index = samples.fields().target_index();
  const int64_t count = std::min(most, samples.size());
  OneRow row(samples);
  std::vector<at::Tensor> targets;
  for (int64_t i = 0; i < count; ++i) {
    if (!row.read(i * samples.size() / count)) continue;
    targets.push_back(
        at::from_blob(row.field(index), field.shape.sizes, at::dtype(field.shape.dtype)).clone());
    if (field.padding) {
      targets.back().slice(0, row.length(index)).fill_(at::Scalar(*field.padding));
    }
  }
  std::vector<int64_t> sizes = field.shape.sizes;
  sizes.insert(sizes.begin(), 0);
  return targets.empty() ? at::empty(sizes, at::dtype(field.shape.dtype)) : at::stack(targets);
}

}  // namespace gallop::data
