#include "gallop/data/table.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/data_config.h"
#include "gallop/data/data_file.h"
#include "gallop/data/exclusion.h"
#include "gallop/data/find.h"
#include "gallop/data/group_split.h"
#include "gallop/data/quality/column_quality.h"
#include "gallop/data/skip_summary.h"
#include "gallop/data/skips.h"
#include "gallop/data/table/scaling.h"
#include "gallop/data/table/table_reader.h"
#include "gallop/data/table_options.h"
#include "gallop/data/table_samples.h"
#include "gallop/data/table_schema.h"

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
    // A training does not ask for them.
    if (!context_.builds_samples) find_facts();
    return std::move(module_);
  }

 private:
  Signature& signature() { return module_->signature; }

  void find_facts() {
    for (const TableColumn& column : parts_[0]->columns) {
      // A trained model may not read all columns.
      const bool is_read = column.type.kind != ColumnKind::kIgnored;
      if (is_read && is_in(schema_.features, column.name)) {
        module_->columns.push_back(facts_of(column, rows_[0]));
      }
    }
  }

  void read_part(size_t part, const std::vector<std::string>& paths) {
    TableReader file(paths, table_options(config_));
    for (const std::string& path : paths) module_->files.push_back(path);
    for (const std::string& note : file.notes()) module_->notes.push_back(note);
    if (part == 0) {
      schema_ = find_schema(file, config_, context_, trained_);
      signature().task = schema_.task;
      for (const std::string& note : schema_.notes) module_->notes.push_back(note);
    }
    std::vector<ColumnType> types(file.names().size(), {.kind = ColumnKind::kIgnored});
    for (size_t i = 0; i < schema_.names.size(); ++i) {
      const std::string& name = schema_.names[i];
      // Groups divide the training rows alone.
      if (part == 0 || name != context_.config.group) types[file.find(name)] = schema_.types[i];
    }
    parts_[part] = file.read(types, skips_);
    if (config_.numbers_only) {
      for (TableColumn& column : parts_[part]->columns) {
        for (double& value : column.numbers) value = static_cast<float>(value);
      }
    }
    rows_[part] = valid_rows(*parts_[part]);
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
      throw DataError(fmt::format("{}: has no row with a valid target{}",
                                  printable(table.files.front()), skip_summary(skips_)));
    return rows;
  }

  std::string wrong_target(const Table& table, size_t row) {
    const std::string& task = signature().task;
    if (task == "classification") {
      const TableColumn& column = *table.find(schema_.targets[0]);
      const std::string& text = column.values[static_cast<size_t>(column.codes[row])];
      if (labels_.empty()) set_classes(column);
      if (labels_.contains(text)) return {};
      return fmt::format("class '{}' does not occur in the training split", shown_value(text));
    }
    if (task == "regression") return {};
    for (const std::string& name : schema_.targets) {
      const double value = table.find(name)->numbers[row];
      if (task == "multi-label" && value != 0 && value != 1) {
        return fmt::format("label '{}' is neither 0 nor 1", value);
      }
      if (task == "count-regression" && value < 0) {
        return fmt::format("target '{}' is not a count (an integer of at least 0)", value);
      }
    }
    return {};
  }

  void set_classes(const TableColumn& column) {
    signature().classes = trained_ != nullptr        ? trained_->classes
                          : !schema_.classes.empty() ? schema_.classes
                                                     : sorted_values(column.values);
    for (size_t i = 0; i < signature().classes.size(); ++i) {
      labels_[signature().classes[i]] = static_cast<int64_t>(i);
    }
  }

  void set_targets() {
    signature().kind = "numbers";
    if (signature().task == "classification") {
      signature().label = schema_.targets[0];
      return;
    }
    (signature().task == "multi-label" ? signature().classes : signature().targets) =
        schema_.targets;
  }

  // Holds validation rows out, so that they have no part in the statistics.
  void split() {
    const Holdout holdout = holdout_of(context_.config, context_.options.seed);
    const bool has_validation = parts_[static_cast<size_t>(Part::kValidation)].has_value();
    module_->held_out = holds_out(holdout, has_validation);
    if (!module_->held_out) return;
    std::vector<int64_t> labels;
    if (signature().task == "classification") {
      const TableTargets targets = targets_of(*parts_[0]);
      for (const int64_t row : rows_[0]) labels.push_back(targets.labels[static_cast<size_t>(row)]);
    }
    const IndexCut cut = holdout.group.empty()
                             ? cut_rows(static_cast<int64_t>(rows_[0].size()), labels,
                                        signature().classes.size(), holdout)
                             : cut_groups(groups(), labels, holdout);
    const std::vector<int64_t> all = std::move(rows_[0]);
    rows_[0].clear();
    auto& taken = rows_[static_cast<size_t>(Part::kValidation)];
    for (const int64_t i : cut.kept) rows_[0].push_back(all[static_cast<size_t>(i)]);
    for (const int64_t i : cut.taken) taken.push_back(all[static_cast<size_t>(i)]);
  }

  // The groups of the training rows.
  Names groups() const {
    const TableColumn& column = *parts_[0]->find(context_.config.group);
    Names names;
    for (const int64_t row : rows_[0]) {
      const auto code = static_cast<size_t>(column.codes[static_cast<size_t>(row)]);
      names.push_back(column.values[code]);
    }
    return names;
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
    signed_as.header = config_.header;
    signed_as.separator = config_.separator;
    for (const std::string& name : schema_.features) {
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
    for (size_t i = 0; i < train.columns.size(); ++i) {
      if (is_in(schema_.features, train.columns[i].name)) columns.push_back(i);
    }
    EncoderOptions options{.transform = config_.transform,
                           .is_one_hot = config_.encoding != "index",
                           .keeps_all = config_.numbers_only,
                           .given = {context_.config.mean, context_.config.deviation}};
    for (const Names* const names : {&config_.numbers, &config_.categories, &config_.dates}) {
      options.kept.insert(options.kept.end(), names->begin(), names->end());
    }
    if (context_.config.normalize == "none") options.transform = "none";
    if (options.transform == "quantile" && !options.given.mean.empty()) {
      throw UsageError(
          "data.mean and data.std have no effect on data.transform=quantile; omit them, or set "
          "data.transform=standard");
    }
    encoder_ = fit_encoder(train, columns, rows_[0], options);
    if (encoder_.width() == 0) {
      // Models that embed categories read at least one other input.
      options.is_one_hot = true;
      encoder_ = fit_encoder(train, columns, rows_[0], options);
    }
    const size_t count = encoder_.normalization.mean.size();
    if (const auto given = given_normalization(context_.config, count, "columns")) {
      encoder_.normalization = *given;
    }
    for (const std::string& note : encoder_.notes) module_->notes.push_back(note);
  }

  void fit_targets(const Table& train) {
    if (!config_.standardize_targets || signature().task != "regression") return;
    for (const std::string& name : schema_.targets) {
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
                         .columns = schema_.targets.size()};
    if (targets.is_class) {
      const TableColumn& column = *table.find(schema_.targets[0]);
      for (const int32_t code : column.codes) {
        const auto known = labels_.find(column.values[static_cast<size_t>(code)]);
        targets.labels.push_back(known == labels_.end() ? 0 : known->second);
      }
      return targets;
    }
    const Signature& scale = signature();
    for (size_t row = 0; row < table.lines.size(); ++row) {
      for (size_t i = 0; i < schema_.targets.size(); ++i) {
        double value = table.find(schema_.targets[i])->numbers[row];
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
  TableSchema schema_;
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
