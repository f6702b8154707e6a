#include "gallop/data/table.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/data_config.h"
#include "gallop/data/exclusion.h"
#include "gallop/data/find.h"
#include "gallop/data/quality/column_quality.h"
#include "gallop/data/skips.h"
#include "gallop/data/split.h"
#include "gallop/data/table/scaling.h"
#include "gallop/data/table/table_reader.h"
#include "gallop/data/table/target_task.h"
#include "gallop/data/table_options.h"
#include "gallop/data/table_samples.h"

namespace gallop::data {

namespace {

using Names = std::vector<std::string>;

bool is_in(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// A table, and what check_quality() reports of its columns.
class TableModule final : public DataModule {
 public:
  DataQuality check_quality(int threads) const override {
    DataQuality quality = DataModule::check_quality(threads);
    check_columns(columns, quality);
    return quality;
  }

  std::vector<ColumnFacts> columns;
};

/// Opens the files of a table one after the other.
class Opening {
 public:
  Opening(const TableConfig& config, const DataContext& context)
      : config_(config),
        context_(context),
        trained_(context.options.trained),
        skips_(context.config.on_error == "skip"),
        module_(std::make_unique<TableModule>()) {
    if (trained_ != nullptr && trained_->features.empty()) trained_ = nullptr;
  }

  std::unique_ptr<DataModule> open() {
    if (!context_.config.augment.items.empty()) {
      throw UsageError("data.augment is for images, and this data set is a table");
    }
    const auto paths =
        find_part_shards(config_.numbers_only ? "csv" : "table", context_.config.path,
                         config_.numbers_only ? Names{".csv"} : table_endings());
    for (size_t i = 0; i < kParts; ++i) {
      if (!paths[i].empty()) read_part(i, paths[i]);
    }
    set_targets();
    split();
    exclude();
    fit();
    std::unique_ptr<Samples>* const splits[] = {&module_->train, &module_->validation,
                                                &module_->test};
    EncodedRows encoded;
    for (size_t i = 0; i < kParts; ++i) {
      if (rows_[i].empty()) continue;
      // Validation rows may be of the training file.
      const Table& table = parts_[i] ? *parts_[i] : *parts_[0];
      if (parts_[i]) encoded = encode(table, encoder_.features, encoder_.normalization);
      *splits[i] = std::make_unique<TableSamples>(table, encoded, targets_of(table),
                                                  weights_of(table), rows_[i]);
    }
    for (const SkipCount& skipped : skips_.counts()) module_->notes.push_back(describe(skipped));
    for (const TableColumn& column : parts_[0]->columns) {
      // A trained model may not read all columns.
      const bool is_read = column.type.kind != ColumnKind::kIgnored;
      if (is_read && is_in(feature_names_, column.name)) {
        module_->columns.push_back(facts_of(column, rows_[0]));
      }
    }
    return std::move(module_);
  }

 private:
  Signature& signature() { return module_->signature; }

  void read_part(size_t part, const std::vector<std::string>& paths) {
    TableReader file(paths, table_options(config_));
    for (const std::string& path : paths) module_->files.push_back(path);
    for (const std::string& note : file.notes()) module_->notes.push_back(note);
    if (part == 0) choose_columns(file);
    std::vector<ColumnType> types(file.names().size(), {.kind = ColumnKind::kIgnored});
    for (size_t i = 0; i < names_.size(); ++i) types[file.find(names_[i])] = types_[i];
    parts_[part] = file.read(types, skips_);
    if (config_.numbers_only) {
      for (TableColumn& column : parts_[part]->columns) {
        for (double& value : column.numbers) value = static_cast<float>(value);
      }
    }
    rows_[part] = valid_rows(*parts_[part]);
  }

  // Finds the columns and their types in the training file.
  void choose_columns(TableReader& file) {
    for (const Names* const names :
         {&config_.ignore, &config_.numbers, &config_.categories, &config_.dates}) {
      for (const std::string& name : *names) file.find(name);
    }
    if (trained_ != nullptr) {
      for (const std::string& name : trained_->columns) file.find(name);
    }
    choose_targets(file);
    const std::vector<ColumnScan>& scans = file.scan();
    choose_task_of(file, scans);
    for (size_t i = 0; i < file.names().size(); ++i) {
      const std::string& name = file.names()[i];
      if (name.empty() || is_in(config_.ignore, name) || is_in(target_names_, name)) continue;
      names_.push_back(name);
      if (name == config_.weight) {
        types_.push_back({.kind = ColumnKind::kNumber, .is_required = true});
        continue;
      }
      feature_names_.push_back(name);
      types_.push_back(type_of(name, scans[i]));
    }
    if (feature_names_.empty()) {
      throw DataError(printable(file.file()) + ": has no column besides the targets");
    }
    for (const std::string& name : target_names_) {
      const ColumnScan& scan = scans[file.find(name)];
      ColumnKind kind =
          scan.type.kind == ColumnKind::kBoolean ? ColumnKind::kBoolean : ColumnKind::kNumber;
      if (signature().task == "classification") kind = ColumnKind::kCategory;
      names_.push_back(name);
      types_.push_back({.kind = kind, .is_required = true});
    }
    if (!config_.weight.empty()) file.find(config_.weight);
  }

  void choose_targets(const TableReader& file) {
    if (!config_.target.empty() && !config_.targets.empty()) {
      throw UsageError("data.target and data.targets are both set; take one of them");
    }
    target_names_ = config_.target.empty() ? config_.targets : Names{config_.target};
    if (!target_names_.empty()) return;
    target_names_ = {file.names().back()};
    if (config_.numbers_only) return;
    module_->notes.push_back(
        fmt::format("data.target is not set, so the last column, '{}', is predicted",
                    printable(target_names_[0])));
  }

  void choose_task_of(const TableReader& file, const std::vector<ColumnScan>& scans) {
    if (trained_ != nullptr) {
      signature().task = trained_->task;
      return;
    }
    std::vector<const ColumnScan*> targets;
    for (const std::string& name : target_names_) targets.push_back(&scans[file.find(name)]);
    declared_ = file.classes(file.find(target_names_[0]));
    const std::string natural = natural_task(targets, config_.numbers_only);
    const bool was_number = targets[0]->type.kind == ColumnKind::kNumber;
    if (natural == "classification" && was_number && context_.config.task == "auto") {
      module_->notes.push_back(fmt::format(
          "target '{}' has the values {}, which are taken as classes; data.task: regression takes "
          "them as numbers",
          printable(target_names_[0]), join_names(sorted_values(targets[0]->distinct), "and")));
    }
    std::vector<std::string> tasks = {natural};
    for (const char* task : {"regression", "count-regression", "classification", "multi-label"}) {
      if (natural != task) tasks.emplace_back(task);
    }
    signature().task = choose_task(context_.config, tasks);
    if (signature().task == "classification" && target_names_.size() != 1) {
      throw UsageError(
          fmt::format("data.task: classification predicts one column, but data.targets names {}",
                      target_names_.size()));
    }
  }

  ColumnType type_of(const std::string& name, const ColumnScan& scan) {
    if (trained_ != nullptr) {
      for (const TableFeature& feature : trained_->features) {
        if (feature.column == name) return column_type(feature);
      }
      return {.kind = ColumnKind::kIgnored};
    }
    if (config_.numbers_only) return {.kind = ColumnKind::kNumber, .is_required = true};
    if (is_in(config_.numbers, name)) return {.kind = ColumnKind::kNumber};
    if (is_in(config_.categories, name)) return {.kind = ColumnKind::kCategory};
    ColumnType type = scan.type;
    if (is_in(config_.dates, name) && type.kind != ColumnKind::kDate) {
      type = {.kind = ColumnKind::kDate, .date_format = "year-first"};
    }
    if (!scan.mistake.empty()) {
      if (!skips_.skips()) throw DataError(scan.mistake);
      type.kind = ColumnKind::kNumber;
    }
    if (scan.has_ambiguous_dates) {
      module_->notes.push_back(
          fmt::format("the dates of column '{}' may begin with the month or the day; the {} is "
                      "taken (data.day_first)",
                      printable(name), config_.day_first ? "day" : "month"));
    }
    return type;
  }

  // All rows, without those whose targets are not valid.
  std::vector<int64_t> valid_rows(const Table& table) {
    std::vector<int64_t> rows;
    for (int64_t row = 0; row < table.rows(); ++row) {
      const std::string wrong = wrong_target(table, static_cast<size_t>(row));
      if (wrong.empty()) {
        rows.push_back(row);
      } else {
        skips_.add("invalid target", fmt::format("{}: {}", printable(table.place(row)), wrong));
      }
    }
    if (rows.empty())
      throw DataError(printable(table.files.front()) + ": has no row with a valid target");
    return rows;
  }

  std::string wrong_target(const Table& table, size_t row) {
    const std::string& task = signature().task;
    if (task == "classification") {
      const TableColumn& column = *table.find(target_names_[0]);
      const std::string& text = column.values[static_cast<size_t>(column.codes[row])];
      if (labels_.empty()) set_classes(column);
      if (labels_.contains(text)) return {};
      return fmt::format("class '{}' does not occur in the training part", printable(text));
    }
    if (task == "regression") return {};
    for (const std::string& name : target_names_) {
      const double value = table.find(name)->numbers[row];
      if (task == "multi-label" && value != 0 && value != 1) {
        return fmt::format("label '{}' is neither 0 nor 1", value);
      }
      if (task == "count-regression" && value < 0) {
        return fmt::format("target '{}' is no count, which is 0 or more", value);
      }
    }
    return {};
  }

  void set_classes(const TableColumn& column) {
    signature().classes = trained_ != nullptr  ? trained_->classes
                          : !declared_.empty() ? declared_
                                               : sorted_values(column.values);
    for (size_t i = 0; i < signature().classes.size(); ++i) {
      labels_[signature().classes[i]] = static_cast<int64_t>(i);
    }
  }

  void set_targets() {
    signature().kind = "numbers";
    if (signature().task == "classification") {
      signature().label = target_names_[0];
      return;
    }
    (signature().task == "multi-label" ? signature().classes : signature().targets) = target_names_;
  }

  // Holds validation rows out, so that they have no part in the statistics.
  void split() {
    const Holdout holdout = holdout_of(context_.config, context_.options.seed);
    const bool has_validation = parts_[static_cast<size_t>(Part::kValidation)].has_value();
    if (!holdout.group.empty()) {
      throw UsageError("data.group is for samples with names, and the rows of a table have none");
    }
    module_->held_out = holds_out(holdout, has_validation);
    if (!module_->held_out) return;
    std::vector<int64_t> labels;
    if (signature().task == "classification") {
      const TableTargets targets = targets_of(*parts_[0]);
      for (const int64_t row : rows_[0]) labels.push_back(targets.labels[static_cast<size_t>(row)]);
    }
    const IndexCut cut = cut_rows(static_cast<int64_t>(rows_[0].size()), labels,
                                  signature().classes.size(), holdout);
    const std::vector<int64_t> all = std::move(rows_[0]);
    rows_[0].clear();
    auto& taken = rows_[static_cast<size_t>(Part::kValidation)];
    for (const int64_t i : cut.kept) rows_[0].push_back(all[static_cast<size_t>(i)]);
    for (const int64_t i : cut.taken) taken.push_back(all[static_cast<size_t>(i)]);
  }

  // Before the statistics, which are those of the remaining rows.
  void exclude() {
    Exclusion exclusion(context_.config.exclude);
    module_->excluded = true;
    if (exclusion.empty()) return;
    for (size_t i = 0; i < kParts; ++i) {
      if (rows_[i].empty()) continue;
      const Table& table = parts_[i] ? *parts_[i] : *parts_[0];
      const std::vector<int64_t> all = std::move(rows_[i]);
      rows_[i].clear();
      const auto name = [&](int64_t place) { return table.place(all[static_cast<size_t>(place)]); };
      const auto kept =
          exclusion.keep(static_cast<Part>(i), static_cast<int64_t>(all.size()), name);
      for (const int64_t place : kept) rows_[i].push_back(all[static_cast<size_t>(place)]);
    }
    module_->notes.push_back(exclusion.finish());
  }

  void fit() {
    const Table& train = *parts_[0];
    Signature& signed_as = signature();
    if (trained_ != nullptr) {
      encoder_ = {.features = trained_->features,
                  .normalization = {trained_->mean, trained_->deviation},
                  .notes = {}};
      signed_as.target_mean = trained_->target_mean;
      signed_as.target_deviation = trained_->target_deviation;
    } else {
      fit_inputs(train);
      fit_targets(train);
    }
    signed_as.features = encoder_.features;
    signed_as.mean = encoder_.normalization.mean;
    signed_as.deviation = encoder_.normalization.deviation;
    signed_as.missing = config_.missing;
    for (const std::string& name : feature_names_) {
      const bool is_used =
          std::any_of(encoder_.features.begin(), encoder_.features.end(),
                      [&](const TableFeature& feature) { return feature.column == name; });
      if (is_used) signed_as.columns.push_back(name);
    }
  }

  void fit_inputs(const Table& train) {
    if (context_.config.normalize == "imagenet") {
      throw UsageError("data.normalize=imagenet is for images, and these data are a table");
    }
    std::vector<size_t> columns;
    bool has_numbers = false;
    for (size_t i = 0; i < train.columns.size(); ++i) {
      const TableColumn& column = train.columns[i];
      if (!is_in(feature_names_, column.name)) continue;
      has_numbers = has_numbers || !column.numbers.empty();
      columns.push_back(i);
    }
    EncoderOptions options{.transform = config_.transform,
                           .is_one_hot = config_.encoding != "index" || !has_numbers,
                           .keeps_all = config_.numbers_only};
    for (const Names* const names : {&config_.numbers, &config_.categories, &config_.dates}) {
      options.kept.insert(options.kept.end(), names->begin(), names->end());
    }
    if (context_.config.normalize == "none") options.transform = "none";
    encoder_ = fit_encoder(train, columns, rows_[0], options);
    const size_t count = encoder_.normalization.mean.size();
    if (const auto given = given_normalization(context_.config, count, "columns")) {
      encoder_.normalization = *given;
    }
    for (const std::string& note : encoder_.notes) module_->notes.push_back(note);
  }

  void fit_targets(const Table& train) {
    if (!config_.standardize_targets || signature().task != "regression") return;
    for (const std::string& name : target_names_) {
      std::vector<double> values;
      for (const int64_t row : rows_[0]) {
        values.push_back(train.find(name)->numbers[static_cast<size_t>(row)]);
      }
      const MeanDeviation scale = mean_deviation(values);
      signature().target_mean.push_back(scale.mean);
      signature().target_deviation.push_back(scale.deviation);
    }
  }

  TableTargets targets_of(const Table& table) {
    TableTargets targets{.is_class = signature().task == "classification",
                         .columns = target_names_.size()};
    if (targets.is_class) {
      const TableColumn& column = *table.find(target_names_[0]);
      for (const int32_t code : column.codes) {
        const auto known = labels_.find(column.values[static_cast<size_t>(code)]);
        targets.labels.push_back(known == labels_.end() ? 0 : known->second);
      }
      return targets;
    }
    const Signature& scale = signature();
    for (size_t row = 0; row < table.lines.size(); ++row) {
      for (size_t i = 0; i < target_names_.size(); ++i) {
        double value = table.find(target_names_[i])->numbers[row];
        if (!scale.target_mean.empty()) {
          value = (value - scale.target_mean[i]) / scale.target_deviation[i];
        }
        targets.numbers.push_back(static_cast<float>(value));
      }
    }
    return targets;
  }

  std::vector<float> weights_of(const Table& table) {
    if (config_.weight.empty()) return {};
    const TableColumn& column = *table.find(config_.weight);
    for (size_t row = 0; row < column.numbers.size(); ++row) {
      if (column.numbers[row] >= 0) continue;
      throw DataError(fmt::format("{}: the weight {} is negative",
                                  printable(table.place(static_cast<int64_t>(row))),
                                  column.numbers[row]));
    }
    return {column.numbers.begin(), column.numbers.end()};
  }

  const TableConfig& config_;
  const DataContext& context_;
  const Signature* trained_;
  SkipPolicy skips_;
  std::unique_ptr<TableModule> module_;
  Names target_names_, feature_names_;
  Names declared_;  // Classes of the target, if the file declares them.
  Names names_;     // Of all columns that are read.
  std::vector<ColumnType> types_;
  std::map<std::string, int64_t> labels_;
  std::array<std::optional<Table>, kParts> parts_;
  std::array<std::vector<int64_t>, kParts> rows_;
  TableEncoder encoder_;
};

}  // namespace

std::unique_ptr<DataModule> open_table(const TableConfig& config, const DataContext& context) {
  return Opening(config, context).open();
}

std::unique_ptr<DataModule> open_csv(const CsvConfig& config, const DataContext& context) {
  TableConfig table;
  table.targets = config.targets;
  table.ignore = config.ignore;
  table.separator = config.separator;
  table.header = "yes";
  table.standardize_targets = false;
  table.numbers_only = true;
  return open_table(table, context);
}

}  // namespace gallop::data
