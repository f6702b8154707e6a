#include "gallop/data/arrays.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/array_files.h"
#include "gallop/data/array_samples.h"
#include "gallop/data/array_sequences.h"
#include "gallop/data/array_views.h"
#include "gallop/data/data_config.h"
#include "gallop/data/find.h"
#include "gallop/data/normalize.h"

namespace gallop::data {

namespace {

using Dtype = c10::ScalarType;
using Names = std::vector<std::string>;

constexpr int64_t kPair = 2;
constexpr int64_t kMostClasses = 1 << 20;
// Fields of views that are no array of their own.
constexpr const char* kViews = "views";
constexpr const char* kMatch = "match";

bool has(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
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
    if (const NpyArray* const found = find_array(part, name)) return *found;
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
    embeds_ = context_.config.task == kPairEmbedding;
    aligns_ = context_.config.task == kSequenceRecognition;
    choose_target(part);
    inputs_ = config_.inputs;
    if (inputs_.empty()) {
      for (const auto& [name, ignored] : part.arrays()) {
        if (name != target_ && !(aligns_ && is_length(name))) inputs_.push_back(name);
      }
    }
    if (inputs_.empty()) throw DataError(printable(part.name()) + ": has no array but the target");
    if (has_target() && has(inputs_, target_)) {
      throw UsageError(fmt::format("data.inputs names the target '{}'", printable(target_)));
    }
    for (const std::string& name : config_.floats) array(part, name);
    if (embeds_) {
      signature.task = kPairEmbedding;
      choose_kind(choose_views(part));
      return;
    }
    choose_kind(array(part, inputs_[0]).row_sizes());
    choose_task_of(array(part, target_));
  }

  void choose_target(const ArrayFiles& part) {
    target_ = config_.target;
    for (const char* name : {"y", "target", "targets", "label", "labels"}) {
      if (!has_target() && part.arrays().contains(name)) target_ = name;
    }
    if (has_target() || embeds_) return;
    throw DataError(
        fmt::format("{}: none of its arrays is called y, target or label; set data.target to the "
                    "one to predict",
                    printable(part.name())));
  }

  bool has_target() const { return !target_.empty(); }

  static bool is_length(const std::string& name) {
    return name == kTargetLengths || name == kInputLengths;
  }
  // Null if there is none.
  static const NpyArray* find_array(const ArrayFiles& part, const std::string& name) {
    const auto found = part.arrays().find(name);
    return found == part.arrays().end() ? nullptr : &found->second;
  }

  // The sizes of a view.
  std::vector<int64_t> choose_views(const ArrayFiles& part) {
    const std::string file = printable(part.name());
    if (inputs_.size() > 1 && config_.inputs.empty()) {
      throw UsageError(
          fmt::format("{}: which views has a sample, and in which order? Its arrays are {}; name "
                      "one whose rows are [views, ...] in data.inputs, or one for each view, such "
                      "as data.inputs=[anchor, positive, negative]",
                      file, printable(join_names(inputs_, "and"))));
    }
    if (!config_.classes.empty()) {
      throw UsageError(
          "data.classes names classes, and data.task=pair-embedding has none; omit it");
    }
    NamedArrays inputs;
    for (const std::string& name : inputs_) inputs.emplace_back(name, &array(part, name));
    ArrayViews views = views_of(part.name(), inputs);
    signature.views = views.count;
    if (has_target() && views.count > kPair) {
      // An array that only has a usual name is no target if data.inputs leaves it out.
      if (!config_.target.empty() || config_.inputs.empty()) {
        throw UsageError(fmt::format(
            "{}: samples of {} views have no target, as their losses compare the views, but {} "
            "'{}'; {}",
            file, views.count, config_.target.empty() ? "there is an array" : "data.target is",
            printable(target_),
            config_.target.empty() ? "name the views in data.inputs" : "omit it"));
      }
      target_.clear();
    }
    return std::move(views.sizes);
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
      const std::string name = inputs_.size() > 1 && embeds_ ? kViews : inputs_[0];
      if (is_sequence) signature.context = sizes[0];
      for (int64_t i = 0; (is_sequence || sizes.size() == 1) && i < sizes.back(); ++i) {
        signature.columns.push_back(fmt::format("{}[{}]", name, i));
      }
    }
    const DataConfig& config = context_.config;
    if (config.normalize == "imagenet") {
      throw UsageError(
          "data.normalize=imagenet is for images in files; set data.mean and data.std");
    }
    const auto count = static_cast<size_t>(groups);
    const bool is_given = !config.mean.empty() || !config.deviation.empty();
    const char* const unit =
        embeds_ ? "rows of a view's first dimension" : "rows of the first input's first dimension";
    const auto given = is_given ? given_normalization(config, count, unit) : std::nullopt;
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
    tasks.emplace_back(kPairEmbedding);
    if (!has_numbers && sizes.size() == 1) tasks.emplace_back(kSequenceRecognition);
    signature.task = choose_task(context_.config, tasks);
    if (aligns_) {
      choose_sequence_classes(target);
      return;
    }
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

  void choose_sequence_classes(const NpyArray& target) {
    const Signature* const trained = context_.options.trained;
    if (trained != nullptr && trained->task == signature.task) {
      signature.classes = trained->classes;
      signature.blank = trained->blank;
      return;
    }
    check_sequence_lengths(*parts_[0], target);
    const SequenceClasses found = sequence_classes(*parts_[0], target);
    if (found.largest < 0) {
      throw DataError(fmt::format("{}: '{}' has no classes, as all its sequences are empty",
                                  printable(parts_[0]->name()), printable(target_)));
    }
    if (found.largest >= kMostClasses) return;  // check_part() reports it.
    ClassesWithBlank all = add_blank(found, config_.classes);
    signature.classes = std::move(all.names);
    signature.blank = all.blank;
  }

  static void check_sequence_lengths(const ArrayFiles& part, const NpyArray& target) {
    const int64_t rows = target.sizes[0];
    if (const NpyArray* const lengths = find_array(part, kTargetLengths)) {
      check_lengths(part.name(), kTargetLengths, *lengths, rows, 0, target.sizes[1]);
    }
    if (const NpyArray* const lengths = find_array(part, kInputLengths)) {
      check_lengths(part.name(), kInputLengths, *lengths, rows, 1, -1);
    }
  }

  SequenceClasses sequence_classes(const ArrayFiles& part, const NpyArray& target) const {
    return classes_of_sequences(part.name(), target_, target, find_array(part, kTargetLengths));
  }

  void check_sequences(const ArrayFiles& part) const {
    const NpyArray& target = array(part, target_);
    check_sequence_lengths(part, target);
    for (const char* name : {kTargetLengths, kInputLengths}) {
      if ((find_array(part, name) == nullptr) == (find_array(*parts_[0], name) == nullptr))
        continue;
      const bool is_here = find_array(part, name) != nullptr;
      throw DataError(fmt::format("{} has an array '{}', but {} has none",
                                  printable((is_here ? part : *parts_[0]).name()), name,
                                  printable((is_here ? *parts_[0] : part).name())));
    }
    const int64_t largest = sequence_classes(part, target).largest;
    const auto classes = static_cast<int64_t>(signature.classes.size());
    if (largest < classes) return;
    throw DataError(fmt::format("{}: '{}' has the class {}, but classes are 0 to {}",
                                printable(part.name()), printable(target_), largest, classes - 1));
  }

  void set_classes(int64_t largest) {
    const Signature* const trained = context_.options.trained;
    if (trained != nullptr && trained->task == signature.task) {
      signature.classes = trained->classes;
    } else if (!config_.classes.empty()) {
      signature.classes = config_.classes;
    } else {
      if (largest < kMostClasses) {
        for (int64_t i = 0; i <= largest; ++i) signature.classes.push_back(std::to_string(i));
      }
    }
  }

  // Compares shapes and dtypes with those of the training split, and checks the classes.
  void check_part(const ArrayFiles& part) const {
    Names all = inputs_;
    if (has_target()) all.push_back(target_);
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
    if (embeds_ && has_target()) check_pair_targets(part.name(), target_, array(part, target_));
    if (aligns_) return check_sequences(part);
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
      read_row(target, i, row.data());
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
    if (embeds_) {
      fields.push_back(views_field(part));
    } else {
      for (const std::string& name : inputs_) {
        fields.push_back(field_of(part, name, FieldRole::kInput));
      }
    }
    if (changes(normalization_)) {
      fields[0].is_normalized = true;
      if (fields[0].field.shape.dtype != Dtype::Float) {
        throw UsageError(
            fmt::format("data.mean is for numbers, but '{}' has integers; name it in data.floats",
                        printable(fields[0].field.name)));
      }
    }
    fields.push_back(embeds_ ? match_field(part) : field_of(part, target_, FieldRole::kTarget));
    if (aligns_) fields.back().lengths = find_array(part, kTargetLengths);
    RowShape& target = fields.back().field.shape;
    if (!has_classes_ && !embeds_ && !aligns_) {
      target.dtype = Dtype::Float;
      if (target.sizes.empty()) target.sizes = {1};
    }
    if (aligns_ && find_array(part, kInputLengths) != nullptr) {
      fields.push_back(field_of(part, kInputLengths, FieldRole::kOther));
    }
    const bool has_labels = signature.task == "classification" && !has_probabilities_;
    const bool all_count = has_labels && range_of(array(part, target_), false).first >= 0;
    return make_array_samples({.name = part.name(),
                               .normalization = normalization_,
                               .views = signature.views,
                               .has_labels = has_labels,
                               .every_target_counts = all_count},
                              std::move(fields));
  }

  ArrayField field_of(const ArrayFiles& part, const std::string& name, FieldRole role) const {
    const NpyArray& from = array(part, name);
    return {.field = {.name = name,
                      .role = role,
                      .shape = {.sizes = from.row_sizes(),
                                .dtype = is_float(name, from) ? Dtype::Float : Dtype::Long}},
            .arrays = {&from}};
  }

  // All inputs as one: an array whose rows have the views, or several that are stacked.
  ArrayField views_field(const ArrayFiles& part) const {
    ArrayField field = field_of(part, inputs_[0], FieldRole::kInput);
    if (inputs_.size() == 1) return field;
    RowShape& shape = field.field.shape;
    field.field.name = kViews;
    shape.sizes.insert(shape.sizes.begin(), signature.views);
    field.arrays.clear();
    for (const std::string& name : inputs_) {
      field.arrays.push_back(&array(part, name));
      if (is_float(name, *field.arrays.back())) shape.dtype = Dtype::Float;
    }
    return field;
  }

  // Without a target, the views of every sample match.
  ArrayField match_field(const ArrayFiles& part) const {
    return {.field = {.name = has_target() ? target_ : kMatch,
                      .role = FieldRole::kTarget,
                      .shape = {.sizes = {}, .dtype = Dtype::Float}},
            .arrays =
                has_target() ? std::vector{&array(part, target_)} : std::vector<const NpyArray*>()};
  }

  const ArraysConfig config_;
  const DataContext context_;
  std::array<std::unique_ptr<ArrayFiles>, kParts> parts_;
  std::string target_;
  Names inputs_;
  Normalization normalization_;
  bool embeds_ = false;  // The task is pair-embedding: each input consists of views.
  bool aligns_ = false;  // The task is sequence-recognition: targets are sequences of classes.
  bool has_classes_ = false;
  bool has_probabilities_ = false;  // Targets are probabilities of the classes.
};

}  // namespace

void visit(config::Visitor& visitor, ArraysConfig& config) {
  visitor.field(
      {.name = "inputs",
       .help = "arrays that the model reads; empty: all but the target. With "
               "data.task=pair-embedding, one whose rows are [views, ...], or one for each view"},
      config.inputs);
  visitor.field(
      {.name = "target",
       .help = "array to predict; empty: y, target or label. With data.task=pair-embedding, "
               "1 or -1 for each pair; none: all pairs match"},
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
