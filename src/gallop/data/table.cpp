#include "gallop/data/table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/csv_reader.h"
#include "gallop/data/data_config.h"
#include "gallop/data/find.h"
#include "gallop/data/skips.h"

namespace gallop::data {

namespace {

/// The indices of the columns in a line.
struct Columns {
  std::vector<std::string> features, targets;
  std::vector<size_t> feature_places, target_places;  ///< Empty if the file has no targets.
};

/// The rows of a file, as written.
struct Rows {
  std::string file;
  std::vector<float> features;       ///< [rows, columns]
  std::vector<std::string> targets;  ///< [rows, targets]
  std::vector<int64_t> lines;        ///< 1-based lines in the file.

  int64_t size() const { return static_cast<int64_t>(lines.size()); }
};

std::optional<float> number_of(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  const auto value = parse_number<float>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

char separator_of(const std::string& text) {
  if (text == "tab" || text == "\\t") return '\t';
  if (text.size() == 1 && text != "\"" && text != "\n") return text.front();
  throw UsageError(
      fmt::format("data.separator is '{}', and must be one character, or tab", printable(text)));
}

Columns choose_columns(const TableConfig& config, const CsvReader& reader) {
  const std::vector<std::string>& header = reader.columns();
  Columns columns;
  columns.targets = config.targets;
  for (const std::string& name : config.ignore) reader.find(name);
  const auto is_in = [](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  if (columns.targets.empty()) columns.targets.push_back(header.back());
  for (const std::string& name : columns.targets) {
    columns.target_places.push_back(reader.find(name));
  }
  for (size_t i = 0; i < header.size(); ++i) {
    if (is_in(columns.targets, header[i]) || is_in(config.ignore, header[i])) continue;
    columns.features.push_back(header[i]);
    columns.feature_places.push_back(i);
  }
  if (columns.features.empty()) {
    throw DataError(printable(reader.file()) + ": has no column besides the targets");
  }
  return columns;
}

/// Finds the same columns in another file.
Columns find_columns(const Columns& known, const CsvReader& reader) {
  Columns columns{.features = known.features,
                  .targets = known.targets,
                  .feature_places = {},
                  .target_places = {}};
  for (const auto& name : known.features) {
    columns.feature_places.push_back(reader.find(name));
  }
  for (const auto& name : known.targets) {
    columns.target_places.push_back(reader.find(name));
  }
  return columns;
}

Rows read_rows(CsvReader& reader, const Columns& columns, SkipPolicy& skips) {
  Rows rows;
  rows.file = reader.file();
  while (const auto row = reader.next(skips)) {
    const std::vector<std::string>& fields = *row;
    const int64_t line = reader.line();
    std::vector<float> values;
    for (size_t i = 0; i < columns.feature_places.size(); ++i) {
      const std::string& field = fields[columns.feature_places[i]];
      if (const auto value = number_of(field)) {
        values.push_back(*value);
        continue;
      }
      skips.add("value that is no number",
                fmt::format("{}:{}: column '{}' is '{}', which is no number; name the column in "
                            "data.ignore, or leave such rows out with data.on_error: skip",
                            printable(rows.file), line, printable(columns.features[i]),
                            printable(field)));
      break;
    }
    if (values.size() != columns.feature_places.size()) continue;
    rows.features.insert(rows.features.end(), values.begin(), values.end());
    for (const size_t place : columns.target_places) rows.targets.push_back(fields[place]);
    rows.lines.push_back(line);
  }
  if (rows.size() == 0) throw DataError(printable(rows.file) + ": has no rows");
  return rows;
}

/// Converts target texts to a row.
class Targets {
 public:
  Targets(std::string task, const std::vector<std::string>& classes, size_t columns)
      : task_(std::move(task)), columns_(columns) {
    for (size_t i = 0; i < classes.size(); ++i) labels_[classes[i]] = static_cast<int64_t>(i);
  }

  bool is_class() const { return task_ == "classification"; }
  RowShape shape() const {
    if (is_class()) return {.sizes = {}, .dtype = c10::ScalarType::Long};
    return {.sizes = {static_cast<int64_t>(columns_)}};
  }
  size_t columns() const { return columns_; }

  /// Returns what is wrong; empty if the texts are valid.
  std::string write(const std::string* texts, std::vector<float>& values,
                    std::vector<int64_t>& labels) const {
    if (is_class()) {
      const auto found = labels_.find(*texts);
      if (found == labels_.end()) {
        return fmt::format("class '{}' does not occur in the training part", printable(*texts));
      }
      labels.push_back(found->second);
      return {};
    }
    std::vector<float> row;
    for (size_t i = 0; i < columns_; ++i) {
      const auto value = number_of(texts[i]);
      if (!value) return fmt::format("target '{}' is no number", printable(texts[i]));
      if (task_ == "multi-label" && *value != 0 && *value != 1) {
        return fmt::format("label '{}' is neither 0 nor 1", printable(texts[i]));
      }
      if (task_ == "count-regression" && *value < 0) {
        return fmt::format("target '{}' is no count, which is 0 or more", printable(texts[i]));
      }
      row.push_back(*value);
    }
    values.insert(values.end(), row.begin(), row.end());
    return {};
  }

 private:
  std::string task_;
  size_t columns_;
  std::map<std::string, int64_t> labels_;
};

/// The rows of a table as training samples.
class TableSamples final : public Samples {
 public:
  TableSamples(Rows rows, const Normalization& normalization, const Targets& targets,
               SkipPolicy* skips)
      : Samples({{.name = "features",
                  .shape = {.sizes = {static_cast<int64_t>(normalization.mean.size())}}},
                 {.name = "target", .shape = targets.shape()}}),
        file_(std::move(rows.file)),
        columns_(normalization.mean.size()),
        target_columns_(targets.columns()),
        is_class_(targets.is_class()) {
    for (int64_t i = 0; i < rows.size(); ++i) {
      const auto row = static_cast<size_t>(i);
      if (skips != nullptr) {
        const std::string wrong =
            targets.write(rows.targets.data() + row * target_columns_, values_, labels_);
        if (!wrong.empty()) {
          skips->add("invalid target",
                     fmt::format("{}:{}: {}", printable(file_), rows.lines[row], wrong));
          continue;
        }
      }
      for (size_t c = 0; c < columns_; ++c) {
        const double value = rows.features[row * columns_ + c];
        features_.push_back(
            static_cast<float>((value - normalization.mean[c]) / normalization.deviation[c]));
      }
      lines_.push_back(rows.lines[row]);
    }
    if (lines_.empty()) throw DataError(printable(file_) + ": has no row with a valid target");
  }

  int64_t size() const override { return static_cast<int64_t>(lines_.size()); }
  bool every_target_counts() const override { return is_class_; }
  std::string describe(int64_t index) const override {
    return fmt::format("{}:{}", file_, lines_[static_cast<size_t>(index)]);
  }

  bool fill(int64_t index, int64_t /*epoch*/, const SampleRow& row, Scratch&) const override {
    const auto i = static_cast<size_t>(index);
    std::copy_n(features_.begin() + static_cast<ptrdiff_t>(i * columns_), columns_,
                row.as<float>(0));
    if (is_class_) {
      *row.as<int64_t>(1) = labels_.empty() ? 0 : labels_[i];
    } else if (values_.empty()) {
      std::fill_n(row.as<float>(1), target_columns_, 0.0F);
    } else {
      std::copy_n(values_.begin() + static_cast<ptrdiff_t>(i * target_columns_), target_columns_,
                  row.as<float>(1));
    }
    return true;
  }

 private:
  std::string file_;
  size_t columns_, target_columns_;
  bool is_class_;
  std::vector<float> features_, values_;
  std::vector<int64_t> labels_, lines_;
};

Normalization normalization_of(const Rows& rows, size_t columns, const DataConfig& config) {
  if (const auto given = given_normalization(config, columns, "columns")) return *given;
  if (config.normalize != "data") {
    throw UsageError("data.normalize=imagenet is for images, and these data are a table");
  }
  Normalization normalization{std::vector<double>(columns, 0), std::vector<double>(columns, 1)};
  const auto count = static_cast<double>(rows.size());
  for (size_t c = 0; c < columns; ++c) {
    double sum = 0, squares = 0;
    for (size_t i = c; i < rows.features.size(); i += columns) sum += rows.features[i];
    const double mean = sum / count;
    for (size_t i = c; i < rows.features.size(); i += columns) {
      squares += (rows.features[i] - mean) * (rows.features[i] - mean);
    }
    normalization.mean[c] = mean;
    // A constant column becomes 0.
    if (squares > 0) normalization.deviation[c] = std::sqrt(squares / count);
  }
  return normalization;
}

std::string natural_task(const Rows& rows, size_t targets) {
  const auto is_number = [](const std::string& text) { return number_of(text).has_value(); };
  const auto is_binary = [](const std::string& text) {
    const auto value = number_of(text);
    return value && (*value == 0 || *value == 1);
  };
  const auto all = [&](const auto& test) {
    return std::all_of(rows.targets.begin(), rows.targets.end(), test);
  };
  if (targets == 1) return all(is_number) ? "regression" : "classification";
  return all(is_binary) ? "multi-label" : "regression";
}

/// The distinct classes, sorted by value if they are numbers, otherwise by text.
std::vector<std::string> classes_of(const Rows& rows) {
  const std::set<std::string> distinct(rows.targets.begin(), rows.targets.end());
  std::vector<std::string> classes(distinct.begin(), distinct.end());
  std::stable_sort(classes.begin(), classes.end(), [](const auto& a, const auto& b) {
    const auto first = number_of(a), second = number_of(b);
    if (first && second) return *first < *second;
    return first.has_value() && !second.has_value();
  });
  return classes;
}

}  // namespace

void visit(config::Visitor& visitor, TableConfig& config) {
  visitor.field({.name = "targets", .help = "columns to predict; none: the last one"},
                config.targets);
  visitor.field({.name = "ignore", .help = "columns that are not read, such as ids"},
                config.ignore);
  visitor.field({.name = "separator", .help = "what separates fields: one character, or tab"},
                config.separator);
}

std::unique_ptr<DataModule> open_table(const TableConfig& config, const DataContext& context) {
  if (!context.config.augment.items.empty()) {
    throw UsageError("data.augment is for images, and this data set is a table");
  }
  const char separator = separator_of(config.separator);
  const auto paths = find_part_files("csv", context.config.path, {".csv"});
  SkipPolicy skips(context.config.on_error == "skip");
  auto module = std::make_unique<DataModule>();
  Columns columns;
  std::array<std::optional<Rows>, kParts> parts;
  for (size_t i = 0; i < kParts; ++i) {
    if (paths[i].empty()) continue;
    CsvReader reader(paths[i].string(), separator);
    module->files.push_back(reader.file());
    columns = i == 0 ? choose_columns(config, reader) : find_columns(columns, reader);
    parts[i] = read_rows(reader, columns, skips);
  }
  const Rows& train = *parts[0];
  Signature& signature = module->signature;
  signature.kind = "numbers";
  const std::string natural = natural_task(train, columns.targets.size());
  std::vector<std::string> tasks = {natural};
  for (const char* task : {"regression", "count-regression", "classification", "multi-label"}) {
    if (natural != task) tasks.emplace_back(task);
  }
  signature.task = choose_task(context.config, tasks);
  if (signature.task == "classification" && columns.targets.size() != 1) {
    throw UsageError(
        fmt::format("data.task: classification predicts one column, but data.targets names {}",
                    columns.targets.size()));
  }
  const Normalization normalization =
      normalization_of(train, columns.features.size(), context.config);
  signature.columns = columns.features;
  signature.mean = normalization.mean;
  signature.deviation = normalization.deviation;
  if (signature.task == "classification") {
    signature.classes = classes_of(train);
  } else {
    (signature.task == "multi-label" ? signature.classes : signature.targets) = columns.targets;
  }
  const Targets targets(signature.task, signature.classes, columns.targets.size());
  std::unique_ptr<Samples>* const splits[] = {&module->train, &module->validation, &module->test};
  for (size_t i = 0; i < kParts; ++i) {
    if (!parts[i]) continue;
    *splits[i] =
        std::make_unique<TableSamples>(std::move(*parts[i]), normalization, targets, &skips);
  }
  for (const SkipCount& skipped : skips.counts()) module->notes.push_back(describe(skipped));
  return module;
}

std::unique_ptr<Samples> table_rows(const std::string& file, const Signature& trained) {
  CsvReader reader(file);
  const Columns columns = find_columns(
      {.features = trained.columns, .targets = {}, .feature_places = {}, .target_places = {}},
      reader);
  SkipPolicy skips(/*skips=*/false);
  Rows rows = read_rows(reader, columns, skips);
  const size_t outputs =
      trained.task == "multi-label" ? trained.classes.size() : trained.targets.size();
  const Targets targets(trained.task, trained.classes,
                        trained.task == "classification" ? 1 : outputs);
  return std::make_unique<TableSamples>(
      std::move(rows), Normalization{trained.mean, trained.deviation}, targets, nullptr);
}

}  // namespace gallop::data
