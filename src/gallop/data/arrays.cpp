#include "gallop/data/arrays.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include <c10/util/Half.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/array_files.h"
#include "gallop/data/data_config.h"
#include "gallop/data/find.h"
#include "gallop/data/normalize.h"
#include "gallop/data/text_samples.h"

namespace gallop::data {

namespace {

using Dtype = c10::ScalarType;
using Names = std::vector<std::string>;

bool has(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// An array as a field of samples.
struct ArrayField {
  Field field;
  const NpyArray* array = nullptr;
  bool is_normalized = false;
};

template <typename From, typename To>
void convert(const char* from, size_t count, To* to) {
  if constexpr (std::is_same_v<From, To>) {
    std::memcpy(to, from, count * sizeof(To));
  } else {
    for (size_t i = 0; i < count; ++i, from += sizeof(From)) {
      From value{};
      std::memcpy(&value, from, sizeof value);
      to[i] = static_cast<To>(value);
    }
  }
}

template <typename To>
void convert(Dtype dtype, const char* from, size_t count, To* to) {
  switch (dtype) {
    case Dtype::Bool:
      convert<uint8_t>(from, count, to);
      // Other bytes than 0 and 1 are no values of the type bool.
      std::for_each_n(to, count, [](To& value) { value = static_cast<To>(value != 0); });
      return;
    case Dtype::Byte: return convert<uint8_t>(from, count, to);
    case Dtype::Char: return convert<int8_t>(from, count, to);
    case Dtype::Short: return convert<int16_t>(from, count, to);
    case Dtype::UInt16: return convert<uint16_t>(from, count, to);
    case Dtype::Int: return convert<int32_t>(from, count, to);
    case Dtype::UInt32: return convert<uint32_t>(from, count, to);
    case Dtype::Long: return convert<int64_t>(from, count, to);
    case Dtype::Half: return convert<c10::Half>(from, count, to);
    case Dtype::Float: return convert<float>(from, count, to);
    case Dtype::Double: return convert<double>(from, count, to);
    default: throw InternalError("an array of a dtype that is not read");
  }
}

const char* row_of(const NpyArray& array, int64_t index) {
  return array.values.data() + static_cast<size_t>(index) * array.row_bytes();
}

class ArraySamples final : public Samples {
 public:
  ArraySamples(const std::string& name, std::vector<ArrayField> fields, Normalization normalization,
               bool has_labels, bool every_target_counts)
      : Samples(Fields(fields_of(fields))),
        name_(name),
        fields_(std::move(fields)),
        normalization_(std::move(normalization)),
        has_labels_(has_labels),
        every_target_counts_(every_target_counts) {}

  int64_t size() const override { return fields_[0].array->sizes[0]; }
  bool every_target_counts() const override { return every_target_counts_; }
  std::optional<int64_t> label(int64_t index) const override {
    if (!has_labels_) return std::nullopt;
    int64_t label = 0;
    const NpyArray& array = *fields_[fields().target_index()].array;
    convert(array.dtype, row_of(array, index), 1, &label);
    return label;
  }
  std::string describe(int64_t index) const override {
    return fmt::format("{}: row {}", printable(name_), index);
  }
  bool fill(int64_t index, int64_t /*epoch*/, const SampleRow& row, Scratch&) const override {
    for (size_t i = 0; i < fields_.size(); ++i) {
      const NpyArray& array = *fields_[i].array;
      const size_t count = array.row_bytes() / c10::elementSize(array.dtype);
      if (fields_[i].field.shape.dtype == Dtype::Long) {
        convert(array.dtype, row_of(array, index), count, row.as<int64_t>(i));
        continue;
      }
      convert(array.dtype, row_of(array, index), count, row.as<float>(i));
      if (fields_[i].is_normalized) normalize(row.as<float>(i), count);
    }
    return true;
  }

 private:
  static std::vector<Field> fields_of(const std::vector<ArrayField>& fields) {
    std::vector<Field> list;
    for (const ArrayField& one : fields) list.push_back(one.field);
    return list;
  }
  // Normalizes by the first dimension of a row: by channel or feature.
  void normalize(float* values, size_t count) const {
    const size_t groups = normalization_.mean.size(), each = count / groups;
    for (size_t i = 0; i < count; ++i) {
      const size_t group = i / each;
      values[i] = static_cast<float>((values[i] - normalization_.mean[group]) /
                                     normalization_.deviation[group]);
    }
  }

  std::string name_;
  std::vector<ArrayField> fields_;
  Normalization normalization_;
  bool has_labels_;
  bool every_target_counts_;
};

bool changes(const Normalization& normalization) {
  const auto is_not = [](double number) { return [=](double other) { return other != number; }; };
  return std::any_of(normalization.mean.begin(), normalization.mean.end(), is_not(0)) ||
         std::any_of(normalization.deviation.begin(), normalization.deviation.end(), is_not(1));
}

/// The smallest and largest value of an array of whole numbers, optionally of those that are no
/// ignored targets.
std::pair<int64_t, int64_t> range_of(const NpyArray& array, bool ignores) {
  constexpr size_t kBlock = 1 << 16;
  const size_t size = c10::elementSize(array.dtype), count = array.values.size() / size;
  std::vector<int64_t> block(std::min(kBlock, count));
  std::pair<int64_t, int64_t> range{INT64_MAX, INT64_MIN};
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t length = std::min(kBlock, count - begin);
    convert(array.dtype, array.values.data() + begin * size, length, block.data());
    for (size_t i = 0; i < length; ++i) {
      if (ignores && block[i] == kIgnoredTarget) continue;
      range = {std::min(range.first, block[i]), std::max(range.second, block[i])};
    }
  }
  return range;
}

std::array<fs::path, kParts> find_arrays(const std::string& path) {
  const fs::path root = find_user_data("arrays", path);
  std::error_code ignored;
  if (!fs::is_directory(root, ignored)) return {root, {}, {}};
  std::array<fs::path, kParts> found;
  for (size_t i = 0; i < kParts; ++i) {
    for (const std::string& word : part_words(static_cast<Part>(i))) {
      for (const fs::path& place : {root / (word + ".npz"), root / word}) {
        if (!fs::exists(place, ignored)) continue;
        if (!found[i].empty()) {
          throw DataError(fmt::format("{} and {} are both the {} split; keep one of them",
                                      printable(found[i].string()), printable(place.string()),
                                      kPartNames[i]));
        }
        found[i] = place;
      }
    }
  }
  if (found[0].empty()) found[0] = root;  // A folder of .npy files.
  return found;
}

class ArraysModule final : public DataModule {
 public:
  ArraysModule(const ArraysConfig& config, const DataContext& context)
      : config_(config), context_(context) {
    if (!context.config.augment.items.empty()) {
      throw UsageError("data.augment is for images in files, and this data set has arrays");
    }
    const auto paths = find_arrays(context.config.path);
    std::unique_ptr<Samples>* const splits[] = {&train, &validation, &test};
    for (size_t i = 0; i < kParts; ++i) {
      if (paths[i].empty()) continue;
      parts_[i] = std::make_unique<ArrayFiles>(paths[i]);
      for (const std::string& file : parts_[i]->files()) files.push_back(file);
      if (i == 0) choose_fields();
      check_part(*parts_[i]);
      *splits[i] = samples_of(*parts_[i]);
    }
  }
  ~ArraysModule() override { release_samples(); }  // Before the arrays that they read.

 private:
  const NpyArray& array(const ArrayFiles& part, const std::string& name) const {
    const auto found = part.arrays().find(name);
    if (found != part.arrays().end()) return found->second;
    Names names;
    for (const auto& [known, array] : part.arrays()) names.push_back(known);
    const std::string nearest = nearest_name(name, names);
    throw DataError(fmt::format("{}: has no array '{}'{} Its arrays: {}", printable(part.name()),
                                printable(name),
                                nearest.empty() ? "." : "; did you mean '" + nearest + "'?",
                                printable(join_names(names, "and"))));
  }

  // Names and task, by the training split.
  void choose_fields() {
    const ArrayFiles& part = *parts_[0];
    target_ = config_.target;
    for (const char* name : {"y", "target", "targets", "label", "labels"}) {
      if (target_.empty() && part.arrays().contains(name)) target_ = name;
    }
    if (target_.empty()) {
      throw DataError(
          fmt::format("{}: none of its arrays is called y, target or label; set data.target to the "
                      "one to predict",
                      printable(part.name())));
    }
    inputs_ = config_.inputs;
    if (inputs_.empty()) {
      for (const auto& [name, ignored] : part.arrays()) {
        if (name != target_) inputs_.push_back(name);
      }
    }
    if (inputs_.empty()) throw DataError(printable(part.name()) + ": has no array but the target");
    if (has(inputs_, target_)) {
      throw UsageError(fmt::format("data.inputs names the target '{}'", printable(target_)));
    }
    for (const std::string& name : config_.floats) array(part, name);
    choose_kind(array(part, inputs_[0]).row_sizes());
    choose_task_of(array(part, target_));
  }

  bool is_float(const std::string& name, const NpyArray& array) const {
    return c10::isFloatingType(array.dtype) || has(config_.floats, name);
  }

  void choose_kind(const std::vector<int64_t>& sizes) {
    constexpr size_t kImage = 3;
    signature.kind = sizes.size() == kImage ? "images" : "numbers";
    const int64_t groups = sizes.empty() ? 1 : sizes[0];
    if (signature.is_images()) {
      signature.channels = sizes[0];
      signature.height = sizes[1];
      signature.width = sizes[2];
    } else {
      const bool is_sequence = sizes.size() == 2;
      if (is_sequence) signature.context = sizes[0];
      for (int64_t i = 0; (is_sequence || sizes.size() == 1) && i < sizes.back(); ++i) {
        signature.columns.push_back(fmt::format("{}[{}]", inputs_[0], i));
      }
    }
    const DataConfig& config = context_.config;
    if (config.normalize == "imagenet") {
      throw UsageError(
          "data.normalize=imagenet is for images in files; set data.mean and data.std");
    }
    const auto count = static_cast<size_t>(groups);
    const bool is_given = !config.mean.empty() || !config.deviation.empty();
    const auto given = is_given ? given_normalization(config, count,
                                                      "rows of the first input's "
                                                      "first dimension")
                                : std::nullopt;
    normalization_ = given.value_or(Normalization{});
    signature.mean = normalization_.mean;
    signature.deviation = normalization_.deviation;
    if (given || (!signature.is_images() && sizes.size() != 1)) return;
    signature.mean.assign(count, 0);
    signature.deviation.assign(count, 1);
  }

  void choose_task_of(const NpyArray& target) {
    const std::vector<int64_t> sizes = target.row_sizes();
    const bool has_numbers = is_float(target_, target);
    const auto [least, most] = has_numbers ? std::pair<int64_t, int64_t>() : range_of(target, true);
    const bool is_binary = !has_numbers && least >= 0 && most <= 1;
    std::string natural = "regression";
    if (!has_numbers && sizes.empty()) natural = "classification";
    if (!has_numbers && sizes.size() == 1 && is_binary) natural = "multi-label";
    if (!has_numbers && sizes.size() == 2) natural = "segmentation";
    Names tasks = {natural};
    for (const char* task : {"regression", "count-regression", "multi-label"}) {
      if (natural != task && sizes.size() <= 1) tasks.emplace_back(task);
    }
    if (has_numbers && sizes.size() == 1 && sizes[0] > 1) tasks.emplace_back("classification");
    signature.task = choose_task(context_.config, tasks);
    has_classes_ = signature.task == "classification" || signature.task == "segmentation";
    const int64_t count = sizes.empty() ? 1 : sizes[0];
    Names& names = signature.task == "multi-label" ? signature.classes : signature.targets;
    has_probabilities_ = has_classes_ && has_numbers;
    if (has_classes_) {
      set_classes(has_probabilities_ ? count - 1 : most);
    } else if (signature.task == "multi-label" && !config_.classes.empty()) {
      names = config_.classes;
    } else {
      for (int64_t i = 0; i < count; ++i) {
        names.push_back(count == 1 ? target_ : fmt::format("{}[{}]", target_, i));
      }
    }
    if (!has_classes_ && static_cast<int64_t>(names.size()) != count) {
      throw UsageError(fmt::format("data.classes has {} names, but '{}' has {} columns",
                                   names.size(), printable(target_), count));
    }
  }

  void set_classes(int64_t largest) {
    const Signature* const trained = context_.options.trained;
    if (trained != nullptr && trained->task == signature.task) {
      signature.classes = trained->classes;
    } else if (!config_.classes.empty()) {
      signature.classes = config_.classes;
    } else {
      constexpr int64_t kMostClasses = 1 << 20;
      if (largest < kMostClasses) {
        for (int64_t i = 0; i <= largest; ++i) signature.classes.push_back(std::to_string(i));
      }
    }
  }

  // Compares shapes and dtypes with those of the training split, and checks the classes.
  void check_part(const ArrayFiles& part) const {
    Names all = inputs_;
    all.push_back(target_);
    for (const std::string& name : all) {
      const NpyArray &here = array(part, name), &first = array(*parts_[0], name);
      if (here.row_sizes() != first.row_sizes() || is_float(name, here) != is_float(name, first)) {
        throw DataError(fmt::format("{}: rows of '{}' are {} [{}], but those of {} are {} [{}]",
                                    printable(part.name()), printable(name),
                                    c10::toString(here.dtype), fmt::join(here.row_sizes(), ", "),
                                    printable(parts_[0]->name()), c10::toString(first.dtype),
                                    fmt::join(first.row_sizes(), ", ")));
      }
    }
    if (!has_classes_ && signature.task != "multi-label") return;
    if (has_probabilities_) check_probabilities(part);
    if (is_float(target_, array(part, target_))) return;
    const auto [least, most] = range_of(array(part, target_), has_classes_);
    const auto classes = has_classes_ ? static_cast<int64_t>(signature.classes.size()) : 2;
    if (least >= 0 && most < classes) return;
    throw DataError(fmt::format("{}: '{}' has values from {} to {}, but classes are 0 to {}",
                                printable(part.name()), printable(target_), least, most,
                                classes - 1));
  }

  void check_probabilities(const ArrayFiles& part) const {
    constexpr double kMostError = 1e-3;
    const NpyArray& target = array(part, target_);
    const auto classes = static_cast<size_t>(target.row_sizes()[0]);
    if (classes != signature.classes.size()) {
      throw DataError(fmt::format("{}: '{}' has probabilities of {} classes, but there are {}",
                                  printable(part.name()), printable(target_), classes,
                                  signature.classes.size()));
    }
    std::vector<float> row(classes);
    for (int64_t i = 0; i < target.sizes[0]; ++i) {
      convert(target.dtype, row_of(target, i), classes, row.data());
      double sum = 0;
      for (const float probability : row) {
        if (!(probability >= 0)) sum = std::numeric_limits<double>::quiet_NaN();
        sum += double{probability};
      }
      if (std::abs(sum - 1) <= kMostError) continue;
      throw DataError(fmt::format(
          "{}: row {} of '{}' has no class probabilities, which are 0 or more and whose "
          "sum is 1; set data.task to regression for other numbers",
          printable(part.name()), i, printable(target_)));
    }
  }

  std::unique_ptr<Samples> samples_of(const ArrayFiles& part) const {
    std::vector<ArrayField> fields;
    for (const std::string& name : inputs_) {
      fields.push_back(field_of(part, name, FieldRole::kInput));
      fields.back().is_normalized = fields.size() == 1 && changes(normalization_);
      if (fields.back().is_normalized && fields.back().field.shape.dtype != Dtype::Float) {
        throw UsageError(
            fmt::format("data.mean is for numbers, but '{}' has integers; name it in data.floats",
                        printable(name)));
      }
    }
    fields.push_back(field_of(part, target_, FieldRole::kTarget));
    RowShape& target = fields.back().field.shape;
    if (!has_classes_) {
      target.dtype = Dtype::Float;
      if (target.sizes.empty()) target.sizes = {1};
    }
    const bool has_labels = signature.task == "classification" && !has_probabilities_;
    const bool all_count = has_labels && range_of(array(part, target_), false).first >= 0;
    return std::make_unique<ArraySamples>(part.name(), std::move(fields), normalization_,
                                          has_labels, all_count);
  }

  ArrayField field_of(const ArrayFiles& part, const std::string& name, FieldRole role) const {
    const NpyArray& from = array(part, name);
    return {.field = {.name = name,
                      .role = role,
                      .shape = {.sizes = from.row_sizes(),
                                .dtype = is_float(name, from) ? Dtype::Float : Dtype::Long}},
            .array = &from};
  }

  const ArraysConfig config_;
  const DataContext context_;
  std::array<std::unique_ptr<ArrayFiles>, kParts> parts_;
  std::string target_;
  Names inputs_;
  Normalization normalization_;
  bool has_classes_ = false;
  bool has_probabilities_ = false;  // Targets are probabilities of the classes.
};

}  // namespace

void visit(config::Visitor& visitor, ArraysConfig& config) {
  visitor.field(
      {.name = "inputs", .help = "arrays that the model reads; empty: all but the target"},
      config.inputs);
  visitor.field({.name = "target", .help = "array to predict; empty: y, target or label"},
                config.target);
  visitor.field({.name = "floats", .help = "integer arrays to convert to floating-point"},
                config.floats);
  visitor.field({.name = "classes", .help = "names of the classes or labels; empty: numbers"},
                config.classes);
}

std::unique_ptr<DataModule> open_arrays(const ArraysConfig& config, const DataContext& context) {
  return std::make_unique<ArraysModule>(config, context);
}

}  // namespace gallop::data
